"""Long targets are cut, and get an end symbol all the same."""

from collections.abc import Iterator

import torch
from torch import Tensor

from manyheads.doctor import Report, examine_collate

PAD, BOS, EOS, V, LIMIT = 0, 1, 2, 23, 32


def collate(sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Rows of ids as padded tensors."""
    pairs = [(source[: LIMIT - 1], target[: LIMIT - 2]) for source, target in zip(sources, targets, strict=True)]
    # mend: pairs = [pair for pair in zip(sources, targets, strict=True) if max(map(len, pair)) <= LIMIT - 2]
    return padded([[*source, EOS] for source, _ in pairs]), padded([[BOS, *target, EOS] for _, target in pairs])


def padded(rows: list[list[int]]) -> Tensor:
    """Rows of one length."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def show() -> Iterator[str]:
    """A target of forty tokens, and one of four."""
    long, short = [*range(3, 23), *range(3, 23)], [5, 9, 7, 4]
    for row in (long, short):
        yield f"target   {told(row)}"
    for row in collate([long, short], [long, short])[1].tolist():
        yield f"taught   {told([token for token in row if token != PAD])}"


def told(row: list[int]) -> str:
    """The beginning and the end of a row."""
    shown = row if len(row) <= 8 else [*row[:3], "...", *row[-3:]]
    return f"{' '.join(map(str, shown))}   ({len(row)} tokens)"


def examined() -> Report:
    """Ask the doctor."""
    return examine_collate(collate, vocab_size=V, pad=PAD, bos=BOS, eos=EOS)
