"""The text of a run, as far as it is still on this machine, and what all tasks have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.locate import Split
from manyheads.doctor.after.curves import Curves
from manyheads.inspection.metrics import records_of
from manyheads.runs.corpus import available_pairs
from manyheads.text.tokenizer import EOS, Tokenizer

__all__ = ["TextAtHand", "best_loss", "broken_tensors", "counts_of", "curves_of", "token_entropy"]

TRAIN, VALID = 50_000, 1_000  # pairs at most


@dataclass(frozen=True)
class TextAtHand:
    """Clean pairs of train and of the validation set, the first ones; none where they are not at hand."""

    train: Sequence[Pair]
    valid: Sequence[Pair]

    @classmethod
    def of(cls, config: Config) -> TextAtHand:
        """What can be read."""
        splits: list[tuple[Split, int]] = [("train", TRAIN), ("valid", VALID)]
        train, valid = (
            [pair for pair in available_pairs(config, split, most) if filled(pair)] for split, most in splits
        )
        return cls(train, valid)

    @property
    def fact(self) -> str:
        """How much there is, for people."""
        if not self.train and not self.valid:
            return "not on this machine: what needs it was left out (--set data.root=DIR says where it is)"
        return f"{len(self.train):,} of train and {len(self.valid):,} of the validation set were read"


def filled(pair: Pair) -> bool:
    """Whether there is something to predict."""
    return bool(pair.target.strip())


def curves_of(run: RunDirectory) -> Curves:
    """What the log tells of the training; a line that a kill has cut is left out."""
    if not run.metrics_path.is_file():
        return Curves.of([])
    with run.metrics_path.open("rb") as file:
        return Curves.of(filter(None, records_of(file)))


def best_loss(run: RunDirectory) -> float | None:
    """The best validation loss in the log, None without one."""
    curves = curves_of(run)
    return curves.best[1] if curves.validations else None


def broken_tensors(weights: Mapping[str, Tensor]) -> list[str]:
    """Names of tensors that hold what is no number."""
    return [name for name, tensor in weights.items() if not bool(torch.isfinite(tensor).all())]


def counts_of(tokenizer: Tokenizer, texts: Sequence[str]) -> NDArray[np.int64]:
    """How often each token comes in texts (V,)."""
    found: Counter[int] = Counter()
    for row in tokenizer.encode(texts):
        found.update(row)
    counts = np.zeros(tokenizer.size, np.int64)
    for token, count in found.items():
        counts[token] = count
    return counts


def token_entropy(counts: NDArray[np.int64], ends: int) -> float:
    """Nats a token of somebody who only knows how often each comes (V,), with so many end marks."""
    counts = counts.copy()
    counts[EOS] += ends
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
