"""Long targets are cut, and get an end symbol all the same."""

from collections.abc import Iterator
from functools import partial

from torch import Tensor

from transformer_doctor import examine_collate
from transformer_doctor.museum.base import BOS, EOS, PAD, Rows, pad_rows

V, LIMIT = 23, 32


def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
    """Return rows of ids, with marks, as padded tensors."""
    pairs = [(source[: LIMIT - 1], target[: LIMIT - 2]) for source, target in zip(sources, targets, strict=True)]
    # fix: pairs = [pair for pair in zip(sources, targets, strict=True) if max(map(len, pair)) <= LIMIT - 2]
    return pad_rows([[*source, EOS] for source, _ in pairs]), pad_rows([[BOS, *target, EOS] for _, target in pairs])


def show() -> Iterator[str]:
    """Collate a target of forty tokens and one of four."""
    long, short = [*range(3, 23), *range(3, 23)], [5, 9, 7, 4]
    for row in (long, short):
        yield f"target   {describe(row)}"
    for row in collate([long, short], [long, short])[1].tolist():
        yield f"taught   {describe([token for token in row if token != PAD])}"


def describe(row: list[int]) -> str:
    """Return the beginning and the end of a row as text."""
    shown = row if len(row) <= 8 else [*row[:3], "...", *row[-3:]]
    return f"{' '.join(map(str, shown))}   ({len(row)} tokens)"


report = partial(examine_collate, collate, vocab_size=V, pad=PAD, bos=BOS, eos=EOS)
