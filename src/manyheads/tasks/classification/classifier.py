"""A trained classifier: raw text in, a label and its probability out.

Shapes: N texts, C classes, B batch, S length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.batch import Ids
from manyheads.data.examples import cut_text
from manyheads.data.labelled import join_texts, split_texts
from manyheads.data.letters import has_text
from manyheads.errors import OverflowedError, UsageError
from manyheads.interop.huggingface.task_model import TaskModel
from manyheads.model.encoder_only import TextClassifier
from manyheads.tasks.labels import Labels
from manyheads.tasks.loading import LoadableModel
from manyheads.tasks.texts import compute_batches, encode_texts, longest_text
from manyheads.text.tokenizer import EOS, PAD, Tokenizer
from manyheads.training.log import Advance, no_advance


@dataclass(frozen=True)
class Classification:
    """The class of a text.

    Attributes:
        text: the input text.
        label: the most probable class; "" for an empty text.
        probability: probability of that label, 0 to 1.
        probabilities: probability of every label; empty for an empty text.
        truncated: whether the text is longer than the model's limit (data.max_length), so that only its beginning
            was classified.
    """

    text: str
    label: str
    probability: float
    probabilities: dict[str, float]
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `classify --json` prints."""
        return dict(vars(self))


class Classifier(LoadableModel):
    """A model, its tokenizer and its labels.

    The result of a text does not depend on the other texts of a call, their number or their order.
    """

    task = "classification"
    model: TextClassifier

    def __init__(self, config: Config, tokenizer: Tokenizer, labels: Labels, model: TextClassifier) -> None:
        """Make a classifier from objects in memory; `load` opens a run."""
        super().__init__(config, tokenizer, model)
        self.labels = labels

    @classmethod
    def of_run(cls, run: RunDirectory, config: Config) -> Self:
        """See `LoadableModel.of_run`."""
        labels, tokenizer = Labels.of_run(run), run.tokenizers(config).source
        model = run.load(config, lambda: TextClassifier(config.model, tokenizer.size, len(labels.names), pad=PAD))
        return cls(config, tokenizer, labels, model)

    @classmethod
    def of_pretrained(cls, pretrained: TaskModel) -> Self:
        """See `LoadableModel.of_pretrained`."""
        assert isinstance(pretrained.model, TextClassifier)
        labels = Labels(pretrained.labels, 1, trained=pretrained.trained)
        return cls(pretrained.config, pretrained.tokenizer, labels, pretrained.model)

    def classify(self, texts: Sequence[str | tuple[str, str]]) -> list[Classification]:
        """Classify texts; the result has one entry a text, in the same order.

        Args:
            texts: texts; for a classifier of pairs, (text, text) or one string with a tab between the two texts.

        Raises:
            UsageError: an entry is a pair but the classifier takes single texts, or `texts` is a string.
        """
        if isinstance(texts, str):
            raise UsageError("the classifier takes a list of texts, not one text. Use classify([text])[0].")
        joined = [self.joined(text) for text in texts]
        rows = encode_texts(self.tokenizer.encode, joined, self.tokenizer.marks_between)
        not_empty = [index for index, text in enumerate(joined) if has_text(text)]
        computed = self.probabilities([rows[index] for index in not_empty])
        probabilities = dict(zip(not_empty, computed.tolist(), strict=True))
        return [
            self.classification(text, probabilities.get(index), truncated=len(rows[index]) > self.longest)
            for index, text in enumerate(texts)
        ]

    def joined(self, text: str | tuple[str, str]) -> str:
        """Return one or two texts as one string, in the format of the training data."""
        parts = split_texts(text) if isinstance(text, str) and self.labels.texts == 2 else text
        if isinstance(parts, str):
            return join_texts([parts])
        if len(parts) > self.labels.texts:
            raise UsageError(f"{len(parts)} texts in one example, but this model knows {self.labels.texts}.")
        return join_texts(list(parts))

    def probabilities(self, rows: Sequence[Ids]) -> NDArray[np.float64]:
        """Return the probability of every class (N, C); rows: ids without begin and end marks, of any length.

        Raises:
            OverflowedError: a probability is not a number.
        """
        found = class_probabilities(self.model, [cut_text(row, self.longest, eos=EOS) for row in rows])
        if np.isnan(found).any():
            raise OverflowedError
        return found

    @property
    def warning(self) -> str | None:
        """A warning about all results of this model; None if there is nothing to warn of."""
        if self.labels.trained:
            return None
        return (
            "the head of this model was never trained: its labels mean nothing. Fine-tune it first: "
            "manyheads train CONFIG --set model.init_from=RUN"
        )

    @property
    def longest(self) -> int:
        """Maximum number of tokens of a text; longer texts are cut."""
        return longest_text(self.config)

    def classification(
        self, text: str | tuple[str, str], probabilities: Sequence[float] | None, *, truncated: bool
    ) -> Classification:
        """Return the result of a text from its class probabilities; None for an empty text."""
        joined = text if isinstance(text, str) else join_texts(list(text))
        if probabilities is None:
            return Classification(joined, "", 0.0, {}, truncated=False)
        best = int(np.argmax(probabilities))
        by_label = dict(zip(self.labels.names, probabilities, strict=True))
        return Classification(joined, self.labels.names[best], probabilities[best], by_label, truncated)


def class_probabilities(
    model: TextClassifier, rows: Sequence[Ids], advance: Advance = no_advance
) -> NDArray[np.float64]:
    """Return class probabilities (N, C) of N texts, given as ids without begin and end marks.

    The model is in evaluation mode during the call. A batch holds texts of similar length. `advance` is called with
    the number of texts of each batch.
    """
    logits = compute_batches(model, rows, model.output.out_features, model, advance)
    return torch.from_numpy(logits).softmax(-1).numpy()
