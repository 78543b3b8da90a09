"""Every row is padded to 64, however short it is."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine_collate
from transformer_doctor.museum.base import BOS, EOS, PAD, Rows

V, LIMIT = 23, 64


def padded(rows: Rows) -> Tensor:
    """Pad rows to one length."""
    length = LIMIT
    # fix: length = max(map(len, rows))
    return torch.tensor([row + [PAD] * (length - len(row)) for row in rows])


def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
    """Return rows of ids, with marks, as padded tensors.

    Raises:
        ValueError: a row is too long.
    """
    if max(map(len, [*sources, *targets])) > LIMIT - 2:
        raise ValueError(f"a row is longer than {LIMIT - 2} tokens")
    return padded([[*row, EOS] for row in sources]), padded([[BOS, *row, EOS] for row in targets])


def show() -> Iterator[str]:
    """Collate sentences as short as those of Multi30k: about a dozen tokens."""
    rows = [[5] * length for length in (9, 14, 11, 12)]
    for side, ids in zip(("source", "target"), collate(rows, rows), strict=True):
        yield f"{side}  {tuple(ids.shape)}  {float((ids == PAD).float().mean()):.0%} of it padding"


report = partial(examine_collate, collate, vocab_size=V, pad=PAD, bos=BOS, eos=EOS)
