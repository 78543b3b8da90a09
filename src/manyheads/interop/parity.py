"""Whether an exported model still is the model: compared on sentences, by log-probabilities and by outputs.

What is compared, in nats: the log-probability of each token of our greedy outputs, the end mark included, which
both compute with the whole output given; and the greedy outputs themselves. Padding and the begin mark are
forbidden on both sides, as in every search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from manyheads.data.batch import pad_rows
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import ParityError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.greedy import greedy_search
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, Tokenizer

__all__ = ["TOLERANCES", "Parity", "Reference", "Samples", "compare", "random_samples", "reference"]

# Largest mean difference of a token in nats, by what the matrices are stored as. In float32 the largest one counts
# too, and the outputs must be the same. A Multi30k model of width 256 has 1e-6 in float32 and 0.006 in int8.
TOLERANCES = {"float32": 1e-4, "float16": 0.02, "bfloat16": 0.1}
ROUGH = 0.3  # int8
LARGEST = 1e-3
OTHER_OUTPUTS = 0.1  # share of outputs that a tie between two tokens may change in float32
LONGEST = 60  # tokens of a sample


@dataclass(frozen=True)
class Samples:
    """Sentences to compare on: source ids without marks, and where they come from."""

    rows: list[list[int]]
    origin: str


@dataclass(frozen=True)
class Reference:
    """What our model says of the samples.

    Attributes:
        samples: the sentences.
        limits: where outputs are cut, in tokens.
        outputs: its greedy output of each, without the end mark.
        scores: the log-probability of each token of it, the end mark's last.
    """

    samples: Samples
    limits: list[int]
    outputs: list[list[int]]
    scores: list[list[float]]


@dataclass(frozen=True)
class Parity:
    """How far an exported model is from ours.

    Attributes:
        sentences, tokens: how much was compared.
        origin: where the sentences come from.
        mean, largest: difference of the log-probabilities of a token, in nats.
        same_outputs: how many outputs are the same.
        compared: of how many, a greedy output of each sentence unless given.
        outputs: what they are.
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
        """All of it."""
        return dict(vars(self))

    def line(self) -> str:
        """What was compared, and what came of it, for people."""
        return (
            f"compared on {self.sentences} sentences ({self.origin}), {self.tokens} tokens: log-probabilities "
            f"differ by {self.mean:.2g} nats in the mean, {self.largest:.2g} at most; {self.same_outputs} of "
            f"{self.compared or self.sentences} {self.outputs} are the same"
        )


def random_samples(tokenizer: Tokenizer, count: int = 16, seed: int = 1) -> Samples:
    """Rows of random pieces, for a run whose text is not at hand."""
    dice = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 20, (count,), generator=dice).tolist()
    rows = [torch.randint(len(SPECIALS), tokenizer.size, (n,), generator=dice).tolist() for n in lengths]
    return Samples(rows, "random pieces of the vocabulary")


@torch.inference_mode()
def reference(model: EncoderDecoder, samples: Samples) -> Reference:
    """Decode the samples greedily, and score what came out, in float32 on the CPU."""
    most = min(LONGEST, model.config.max_positions - 1)
    rows = [row[:most] for row in samples.rows]
    source = pad_rows(rows, PAD, last=EOS)
    limits = [min(len(row) + 10, most) for row in rows]
    stepper = EncoderDecoderStepper(model, source)
    found = greedy_search(stepper, max_lengths=torch.tensor(limits), bos=BOS, eos=EOS, forbidden=(PAD, BOS))
    outputs = [list(one.tokens) for one in found]
    scores = token_scores(model(source, decoder_input(outputs)), outputs)
    return Reference(Samples(rows, samples.origin), limits, outputs, scores)


def decoder_input(outputs: Sequence[Sequence[int]]) -> torch.Tensor:
    """What a decoder is given to score outputs: the begin mark, then the tokens, padded: (B, T)."""
    return pad_rows([[BOS, *row] for row in outputs], PAD)


def token_scores(logits: torch.Tensor, outputs: Sequence[Sequence[int]]) -> list[list[float]]:
    """Log-probabilities of the tokens of outputs and of their end marks: logits (B, T, V)."""
    logits = logits.float().clone()
    logits[..., [PAD, BOS]] = -torch.inf
    chosen = logits.log_softmax(-1).gather(2, pad_rows([[*row, EOS] for row in outputs], EOS)[:, :, None])
    return [row[: len(output) + 1].tolist() for row, output in zip(chosen[:, :, 0], outputs, strict=True)]


def compare(
    right: Reference, scores: Sequence[Sequence[float]], outputs: Sequence[Sequence[int]], numbers: str, what: str
) -> Parity:
    """Compare what an exported model says with what ours says.

    Args:
        right: our model.
        scores: as `Reference.scores`, by the other.
        outputs: its own greedy outputs; what goes beyond the limits of ours is not looked at.
        numbers: what its matrices are stored as; it decides what is tolerated.
        what: the exported model, for the message.

    Raises:
        ParityError: it is further off than such numbers explain.
    """
    pairs = [(one, other) for row, given in zip(right.scores, scores, strict=True)
             for one, other in zip(row, given, strict=True)]  # fmt: skip
    gaps = [abs(one - other) for one, other in pairs]
    both = zip(right.outputs, outputs, right.limits, strict=True)
    same = sum(list(one) == list(other[:limit]) for one, other, limit in both)
    count = len(right.outputs)
    parity = Parity(count, len(gaps), right.samples.origin, sum(gaps) / len(gaps), max(gaps), same)
    exact = numbers == "float32"
    near = parity.mean <= TOLERANCES.get(numbers, ROUGH) and (not exact or parity.largest <= LARGEST)
    if not near or (exact and count - same > OTHER_OUTPUTS * count):
        raise ParityError(
            f"{what} does not give what the run gives, and was not kept: {parity.line()}. "
            "Please report this with the configuration of the run."
        )
    return parity
