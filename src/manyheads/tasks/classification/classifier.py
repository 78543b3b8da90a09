"""A trained classifier: raw text in, a label and its probability out.

Shapes: N texts, C classes, B batch, S length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.batch import Ids
from manyheads.data.examples import cut_text, make_texts
from manyheads.data.labelled import join_texts, split_texts
from manyheads.data.letters import has_text
from manyheads.data.sampler import fixed_batches
from manyheads.data.store import Encode
from manyheads.errors import OverflowedError, RunError, UsageError
from manyheads.interop.huggingface.task_model import TaskModel
from manyheads.model.encoder_only import EncoderOnly, TextClassifier
from manyheads.model.positions import position_limit
from manyheads.tasks.loading import LoadableModel, evaluating
from manyheads.text.normalize import clean
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.training.log import Advance, no_advance

LABELS = "labels.json"  # file name in a run directory
_BATCH_TOKENS = 8_192  # tokens of a batch, padding included


@dataclass(frozen=True)
class Labels:
    """The classes of a classifier.

    Attributes:
        names: names of the classes, in the order of the model's outputs.
        texts: number of texts of an example, 1 or 2.
        trained: whether the classification head was trained.
    """

    names: tuple[str, ...]
    texts: int
    trained: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the content of `labels.json`."""
        document = {"labels": list(self.names), "texts": self.texts}
        return document if self.trained else {**document, "trained": False}

    @classmethod
    def of_run(cls, run: RunDirectory) -> Self:
        """Read the labels of a run.

        Raises:
            RunError: the file of the labels is missing or damaged.
        """
        content = run.document(LABELS)
        names, texts = content.get("labels"), content.get("texts")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or texts not in (1, 2):
            raise RunError(f"{run.path / LABELS} is damaged: it holds no list of labels. Copy the run again.")
        return cls(tuple(names), texts, trained=content.get("trained") is not False)


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


def encode_texts(encode: Encode, joined: Sequence[str], marks: int) -> list[list[int]]:
    """Encode texts to ids without begin and end marks around them.

    Args:
        encode: method of a tokenizer.
        joined: texts; the two texts of a pair are joined by a tab.
        marks: number of end marks between the two texts of a pair.
    """
    parts = [split_texts(text) for text in joined]
    ids = iter(encode([clean(text) for texts in parts for text in texts]))
    return [_join_ids((next(ids) for _ in texts), marks) for texts in parts]


def _join_ids(rows: Iterable[list[int]], marks: int) -> list[int]:
    first, *others = rows
    return [*first, *(token for other in others for token in (*[EOS] * marks, *other))]


def longest_text(config: Config) -> int:
    """Return the maximum number of ids of a text without begin and end marks; longer texts are cut."""
    return min(config.data.max_length, position_limit(config.model) - 2)


def class_probabilities(
    model: TextClassifier, rows: Sequence[Ids], advance: Advance = no_advance
) -> NDArray[np.float64]:
    """Return class probabilities (N, C) of N texts, given as ids without begin and end marks.

    The model is in evaluation mode during the call. A batch holds texts of similar length. `advance` is called with
    the number of texts of each batch.
    """
    logits = compute_batches(model, rows, model.output.out_features, model, advance)
    return torch.from_numpy(logits).softmax(-1).numpy()


def compute_batches(
    model: EncoderOnly,
    rows: Sequence[Ids],
    width: int,
    compute: Callable[[Tensor, Tensor | None], Tensor],
    advance: Advance = no_advance,
) -> NDArray[np.float64]:
    """Apply a function to N texts in batches of similar length; return its results (N, width).

    Args:
        model: the model that `compute` calls; in evaluation mode during the call.
        rows: ids of each text, without begin and end marks.
        width: number of results for each text.
        compute: ids (B, S), and token types (B, S) or None -> (B, width).
        advance: called with the number of texts of each batch.
    """
    device = next(model.parameters()).device
    results = np.zeros((len(rows), width), np.float64)
    lengths = np.array([len(row) + 2 for row in rows], np.int64)
    with evaluating(model), torch.inference_mode():
        for indices in fixed_batches(lengths, _BATCH_TOKENS):
            ids, types = make_texts(
                [rows[index] for index in indices],
                pad=model.pad,
                bos=BOS,
                eos=EOS,
                with_types=model.config.token_types > 1,
            )
            batch = compute(ids.to(device), None if types is None else types.to(device))
            results[indices] = batch.cpu().double().numpy()
            advance(len(indices))
    return results
