"""Comparison of an exported model with the original on sentences, by log-probabilities and by outputs.

It compares the log-probabilities, in nats, of each token of the original's greedy outputs with their end marks,
which both models compute by teacher forcing; and the greedy outputs of both. Padding and the begin mark are
forbidden on both sides, as in every search.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitext.file_names import Split
from manyheads.errors import ParityError
from manyheads.interop.bundle import LoadedModel
from manyheads.tasks.corpus import available_pairs
from manyheads.text.tokenizer import SPECIALS, Tokenizer

# Largest mean difference of a token in nats, by the number format of the matrices. In float32, the largest
# difference counts too, and the outputs must be the same. A Multi30k model of width 256 has 1e-6 in float32 and
# 0.006 in int8.
_TOLERANCES = {"float32": 1e-4, "float16": 0.02, "bfloat16": 0.1}
_ROUGH = 0.3  # int8
_MAX_DIFFERENCE = 1e-3
_OTHER_OUTPUTS = 0.1  # share of outputs that a tie between two tokens may change in float32
_SENTENCES = 100  # of a run, on which an export is compared
MAX_SAMPLE_TOKENS = 60  # tokens of a sample
RANDOM_PIECES = "random pieces of the vocabulary"


@dataclass(frozen=True)
class Samples:
    """Sentences to compare on: source ids without marks, and their origin for messages."""

    rows: list[list[int]]
    origin: str


@dataclass(frozen=True)
class Reference:
    """The outputs of the original model on the samples.

    Attributes:
        samples: the sentences.
        limits: length limit of each output, in tokens.
        outputs: greedy output of each sentence, without the end mark.
        scores: log-probability of each token of each output, the end mark last.
        prefix: tokens that every output was forced to begin with.
    """

    samples: Samples
    limits: list[int]
    outputs: list[list[int]]
    scores: list[list[float]]
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Parity:
    """The differences of an exported model from the original.

    Attributes:
        sentences, tokens: number of compared sentences and tokens.
        origin: origin of the sentences.
        mean, largest: difference of the log-probabilities of a token, in nats.
        same_outputs: number of equal outputs.
        compared: number of compared outputs; None is one for each sentence.
        outputs: name of the outputs.
    """

    sentences: int
    tokens: int
    origin: str
    mean: float
    largest: float
    same_outputs: int
    compared: int | None = None
    outputs: str = "greedy outputs"

    def to_json(self) -> dict[str, Any]:
        """Return all fields, and the verdict."""
        return {**vars(self), "verdict": self.verdict()}

    def verdict(self) -> str:
        """Return a sentence on the differences; `compare` has refused larger ones."""
        count = self.compared or self.sentences
        if self.same_outputs < count:
            return (
                f"both give the same results up to rounding, but {count - self.same_outputs} of {count} "
                f"{self.outputs} differ: where two tokens are nearly as likely, rounding decides"
            )
        if self.largest <= _MAX_DIFFERENCE:
            return "both give the same results: what is left is rounding"
        return "both give the same outputs; the probabilities differ by the rounding of the stored weights"

    def line(self) -> str:
        """Return the comparison and its result for people."""
        return (
            f"compared on {self.sentences} sentences ({self.origin}), {self.tokens} tokens: log-probabilities "
            f"differ by {self.mean:.2g} nats in the mean, {self.largest:.2g} at most; {self.same_outputs} of "
            f"{self.compared or self.sentences} {self.outputs} are the same"
        )


def random_rows(tokenizer: Tokenizer, count: int, shortest: int, longest: int, seed: int = 1) -> list[list[int]]:
    """Return rows of random pieces without marks, of lengths from `shortest` to `longest`."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, count)
    return [rng.integers(len(SPECIALS), tokenizer.size, length).tolist() for length in lengths]


def random_samples(tokenizer: Tokenizer) -> Samples:
    """Return 16 rows of random pieces, for a run whose text is not available."""
    return Samples(random_rows(tokenizer, 16, 3, 19), RANDOM_PIECES)


def samples_of(opened: LoadedModel) -> Samples:
    """Return the first test or validation sentences of a run; random pieces if its text is not on this machine."""
    splits: list[Split] = ["test", "valid"]
    for split in splits:
        pairs = available_pairs(opened.config, split, _SENTENCES)
        rows = opened.tokenizers.source.encode([pair.source for pair in pairs])
        if any(rows):
            return Samples([row for row in rows if row], f"the first of the run's {split} set")
    return random_samples(opened.tokenizers.source)


def compare(
    expected: Reference,
    scores: Sequence[Sequence[float]],
    outputs: Sequence[Sequence[int]],
    numbers: str,
    name: str,
) -> Parity:
    """Compare an exported model with the original.

    Args:
        expected: outputs of the original model.
        scores: as `Reference.scores`, by the exported model.
        outputs: greedy outputs of the exported model; tokens beyond the limits of the original are ignored.
        numbers: number format of its matrices, which decides the tolerance.
        name: name of the exported model, for the message.

    Raises:
        ParityError: the difference is larger than the number format explains.
    """
    gaps = [
        abs(original - exported)
        for original_row, exported_row in zip(expected.scores, scores, strict=True)
        for original, exported in zip(original_row, exported_row, strict=True)
    ]
    rows = zip(expected.outputs, outputs, expected.limits, strict=True)
    same = sum(list(original) == list(exported[:limit]) for original, exported, limit in rows)
    count = len(expected.outputs)
    parity = Parity(count, len(gaps), expected.samples.origin, sum(gaps) / len(gaps), max(gaps), same)
    exact = numbers == "float32"
    near = parity.mean <= _TOLERANCES.get(numbers, _ROUGH) and (not exact or parity.largest <= _MAX_DIFFERENCE)
    if not near or (exact and count - same > _OTHER_OUTPUTS * count):
        raise ParityError(
            f"{name} does not give what the run gives, and was not kept: {parity.line()}. "
            "Please report this with the configuration of the run."
        )
    return parity


def has_transformers() -> bool:
    """Return whether transformers is installed, to compare with."""
    return importlib.util.find_spec("transformers") is not None


@contextmanager
def no_progress_bars(transformers: Any) -> Iterator[None]:
    """Switch off the progress bars of transformers while the context is open."""
    logging = transformers.utils.logging
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()
