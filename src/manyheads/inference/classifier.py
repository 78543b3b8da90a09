"""A trained classifier: raw text in, a label and its probability out.

Shapes: N texts, C classes, B batch, S length.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bitext.letters import has_text
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.batches import fixed_batches
from manyheads.errors import OverflowedError, UsageError
from manyheads.inference.labels import Labels
from manyheads.inference.loading import LoadableModel, open_model
from manyheads.inference.native.classifier import NativeClassifier
from manyheads.inference.native.model import FloatArray
from manyheads.inference.texts import encode_texts, longest_text
from manyheads.inference.torch_parts import torch_module
from manyheads.search.arrays import log_softmax
from manyheads.text.joined_texts import cut_text, join_texts, split_texts
from manyheads.text.tokenizer import BOS, EOS, Tokenizer

if TYPE_CHECKING:
    from manyheads.interop.huggingface.task_model import TaskModel

_BATCH_TOKENS = 2_048  # tokens of a batch in C


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

    def __init__(self, config: Config, tokenizer: Tokenizer, labels: Labels, model: Any) -> None:
        """Make a classifier from objects in memory, as `LoadableModel`; `load` opens a run."""
        super().__init__(config, tokenizer, model)
        self.labels = labels

    @classmethod
    def of_run(cls, run: RunDirectory, config: Config, device: str) -> Self:
        """Open a classifier of a run; `config` is its configuration, `device` as in `load`."""
        labels, tokenizer = Labels.of_run(run), run.tokenizers(config).source
        sizes = tokenizer.size, len(labels.names)

        def pack(tensors: Mapping[str, FloatArray], code: ctypes.CDLL) -> NativeClassifier:
            return NativeClassifier(tensors, config.model, sizes, "fp32", code)

        return cls(config, tokenizer, labels, open_model(run, config, tokenizer, sizes[1], device, pack))

    @classmethod
    def of_pretrained(cls, pretrained: TaskModel) -> Self:
        """Open a classifier that was converted from the format of transformers."""
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

    def probabilities(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return the probability of every class (N, C); rows: ids without begin and end marks, of any length.

        Raises:
            OverflowedError: a probability is not a number.
        """
        rows = [cut_text(row, self.longest, eos=EOS) for row in rows]
        if (native := self.native) is not None:
            found = np.exp(log_softmax(_native_logits(native, rows)))
        else:
            model = self.model
            found = torch_module("text_batches", "The model itself").class_probabilities(model, rows)
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


def _native_logits(model: NativeClassifier, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return the logits of the classes (N, C) of texts, given as ids without begin and end marks."""
    logits = np.zeros((len(rows), model.output.outputs), dtype=np.float32)
    marked = [[BOS, *row, EOS] for row in rows]
    for indices in fixed_batches(np.array([*map(len, marked)], np.int64), _BATCH_TOKENS):
        texts = [marked[index] for index in indices]
        types = [_token_types(text) for text in texts] if model.config.token_types > 1 else None
        logits[indices] = model.logits(texts, types)
    return logits


def _token_types(text: Sequence[int]) -> list[int]:
    """Return the type of each token: 0 up to the first end mark, then 1."""
    first = text.index(EOS)
    return [int(number > first) for number in range(len(text))]
