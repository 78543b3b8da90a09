"""A trained classifier: raw text in, a label and its probability out.

Shapes: N texts, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from manyheads.data.sampler import fixed_batches
from manyheads.data.store import Encode
from manyheads.errors import RunError, UsageError
from manyheads.interop.huggingface import assemble_for, is_pretrained
from manyheads.interop.sources import folder_of
from manyheads.model.encoder_only import EncoderOnly, TextClassifier
from manyheads.text.normalize import clean
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.training.precision import pick_device

__all__ = [
    "LABELS",
    "Classification",
    "Classifier",
    "Labels",
    "class_probabilities",
    "computed",
    "encode_texts",
    "longest_text",
]

LABELS = "labels.json"  # in a run directory
BATCH_TOKENS = 8_192  # positions computed together


@dataclass(frozen=True)
class Labels:
    """What a classifier tells apart.

    Attributes:
        names: the classes, in the order of the model's outputs.
        texts: how many texts an example has, 1 or 2.
        trained: whether anything has taught the model to tell them apart.
    """

    names: tuple[str, ...]
    texts: int
    trained: bool = True

    def to_json(self) -> dict[str, Any]:
        """As it stands in a run directory."""
        plain = {"labels": list(self.names), "texts": self.texts}
        return plain if self.trained else {**plain, "trained": False}

    @classmethod
    def of_run(cls, run: RunDirectory) -> Self:
        """Those of a run.

        Raises:
            RunError: their file is missing or damaged.
        """
        content = run.document(LABELS)
        names, texts = content.get("labels"), content.get("texts")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or texts not in (1, 2):
            raise RunError(f"{run.path / LABELS} is damaged: it holds no list of labels. Copy the run again.")
        return cls(tuple(names), texts, trained=content.get("trained") is not False)


@dataclass(frozen=True)
class Classification:
    """What a classifier says of a text.

    Attributes:
        text: as it was given.
        label: the most probable class; "" where there is no text.
        probability: of that label, 0 to 1.
        probabilities: of every label; none where there is no text.
        truncated: the text is longer than the model takes (data.max_length), and only its beginning was read.
    """

    text: str
    label: str
    probability: float
    probabilities: dict[str, float]
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        """The shape that `classify --json` prints."""
        return {
            "text": self.text,
            "label": self.label,
            "probability": self.probability,
            "probabilities": self.probabilities,
            "truncated": self.truncated,
        }


class Classifier:
    """A model, its tokenizer and its labels.

    What comes out for a text does not depend on the texts beside it, their number or their order.
    """

    def __init__(self, config: Config, tokenizer: Tokenizer, labels: Labels, model: TextClassifier) -> None:
        """From parts in memory; `load` opens a run."""
        self.config = config
        self.tokenizer = tokenizer
        self.labels = labels
        self.model = model

    @classmethod
    def load(cls, run: str | Path, *, device: str = "auto") -> Self:
        """Open a run directory.

        Args:
            run: the directory.
            device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.

        Raises:
            RunError: the directory is missing, none of ours, no classifier, or damaged.
        """
        directory = RunDirectory.existing(Path(run))
        config = directory.config_of("classification")
        labels, tokenizer = Labels.of_run(directory), directory.tokenizers(config).source
        model = directory.fill(TextClassifier(config.model, tokenizer.size, len(labels.names), pad=PAD))
        return cls(config, tokenizer, labels, model.to(pick_device(device)))

    @classmethod
    def from_pretrained(cls, name: str, *, device: str = "auto") -> Self:
        """Open a classifier: a name on the Hugging Face hub (extra hf), or a folder (a run or one of transformers).

        Args:
            name: user/name, or the folder.
            device: as `load`.

        Raises:
            RunError: there is no such classifier, or it cannot be read.
            MissingExtraError: a name on the hub without huggingface_hub.
        """
        folder = folder_of(name)
        if not is_pretrained(folder):
            return cls.load(folder, device=device)
        made = assemble_for("classification", folder)
        assert isinstance(made.model, TextClassifier)
        labels = Labels(made.labels, 1, trained=made.trained)
        return cls(made.config, made.tokenizer, labels, made.model.to(pick_device(device)))

    def classify(self, texts: Sequence[str | tuple[str, str]]) -> list[Classification]:
        """Say what each text is; the result has the same number of entries in the same order.

        Args:
            texts: one text each, or for a classifier of pairs (text, text) or both with a tab between them.

        Raises:
            UsageError: a pair is given to a classifier of single texts, or a string in the place of a list.
        """
        if isinstance(texts, str):
            raise UsageError("the classifier takes a list of texts, not one text. Use classify([text])[0].")
        joined = [self.joined(text) for text in texts]
        rows = encode_texts(self.tokenizer.encode, joined, self.tokenizer.marks_between)
        filled = [place for place, text in enumerate(joined) if text.strip()]
        found = self.probabilities([rows[place] for place in filled])
        said = dict(zip(filled, found.tolist(), strict=True))
        return [
            self.classification(text, said.get(place), truncated=len(rows[place]) > self.longest)
            for place, text in enumerate(texts)
        ]

    def joined(self, text: str | tuple[str, str]) -> str:
        """One or two texts as the model knows them."""
        parts = split_texts(text) if isinstance(text, str) and self.labels.texts == 2 else text
        if isinstance(parts, str):
            return join_texts([parts])
        if len(parts) > self.labels.texts:
            raise UsageError(f"{len(parts)} texts in one example, but this model knows {self.labels.texts}.")
        return join_texts(list(parts))

    def probabilities(self, rows: Sequence[Ids]) -> NDArray[np.float64]:
        """Of every class: ids of texts without marks, of any length -> (N, C)."""
        return class_probabilities(self.model, [cut_text(row, self.longest, eos=EOS) for row in rows])

    @property
    def warning(self) -> str | None:
        """What there is to be said against all that it says."""
        if self.labels.trained:
            return None
        return (
            "the head of this model was never trained: its labels mean nothing. Fine-tune it first: "
            "manyheads train CONFIG --set model.init_from=RUN"
        )

    @property
    def longest(self) -> int:
        """Most tokens of a text; longer ones are cut."""
        return longest_text(self.config)

    def classification(
        self, text: str | tuple[str, str], found: Sequence[float] | None, *, truncated: bool
    ) -> Classification:
        """Probabilities of the classes as a result."""
        shown = text if isinstance(text, str) else join_texts(list(text))
        if found is None:
            return Classification(shown, "", 0.0, {}, truncated=False)
        best = int(np.argmax(found))
        named = dict(zip(self.labels.names, found, strict=True))
        return Classification(shown, self.labels.names[best], found[best], named, truncated)


def encode_texts(encode: Encode, joined: Sequence[str], marks: int) -> list[list[int]]:
    """Ids of texts without marks around them, by a tokenizer's `encode`; between two stand so many end marks."""
    parts = [split_texts(text) for text in joined]
    ids = iter(encode([clean(text) for texts in parts for text in texts]))
    return [put_between((next(ids) for _ in texts), marks) for texts in parts]


def put_between(rows: Iterable[list[int]], marks: int) -> list[int]:
    """Rows of ids as one, with end marks between them."""
    first, *others = rows
    return [*first, *(token for other in others for token in (*[EOS] * marks, *other))]


def longest_text(config: Config) -> int:
    """Most ids of a text without the marks around it; longer ones are cut."""
    model = config.model
    return min(config.data.max_length, model.max_positions - 2 if model.positions == "learned" else 2**31)


def class_probabilities(model: TextClassifier, rows: Sequence[Ids]) -> NDArray[np.float64]:
    """Probabilities of the classes: ids of N texts without marks -> (N, C), in batches of like lengths.

    The model is in evaluation mode meanwhile.
    """
    logits = computed(model, rows, model.output.out_features, model)
    return torch.from_numpy(logits).softmax(-1).numpy()


def computed(
    model: EncoderOnly, rows: Sequence[Ids], width: int, compute: Callable[[Tensor, Tensor | None], Tensor]
) -> NDArray[np.float64]:
    """What a model makes of N texts: their ids without marks -> (N, width), in batches of like lengths.

    Args:
        model: in evaluation mode meanwhile.
        rows: the texts.
        width: of what is made.
        compute: ids (B, S), and for models with token types which of two texts each is of (B, S) -> (B, width).
    """
    device, was = next(model.parameters()).device, model.training
    found = np.zeros((len(rows), width), np.float64)
    lengths = np.array([len(row) + 2 for row in rows], np.int64)
    model.eval()
    with torch.inference_mode():
        for places in fixed_batches(lengths, BATCH_TOKENS):
            ids, types = make_texts(
                [rows[place] for place in places],
                pad=model.pad,
                bos=BOS,
                eos=EOS,
                with_types=model.config.token_types > 1,
            )
            made = compute(ids.to(device), None if types is None else types.to(device))
            found[places] = made.cpu().double().numpy()
    model.train(was)
    return found
