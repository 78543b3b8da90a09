"""The one or two texts of an example as one text, joined by a tab, and as token ids."""

from __future__ import annotations

from collections.abc import Sequence

BETWEEN = "\t"


def join_texts(texts: list[str]) -> str:
    """Join one or two texts."""
    return BETWEEN.join(text.replace(BETWEEN, " ") for text in texts)


def split_texts(joined: str) -> list[str]:
    """Split the result of `join_texts` into its texts."""
    return joined.split(BETWEEN)


def cut_text(ids: Sequence[int], limit: int, *, eos: int) -> Sequence[int]:
    """Cut a text to the length that a model takes; the end of the longer of two texts is cut first.

    In `ids`, which have no begin and end symbols, an end symbol separates two texts. The `limit` counts all
    symbols.
    """
    if len(ids) <= limit:
        return ids
    plain = [int(token) for token in ids]
    if eos not in plain:
        return plain[:limit]
    first, marks = plain.index(eos), plain.count(eos)
    begin = first + marks  # start of the second text
    capacity, second = max(0, limit - marks), len(plain) - begin
    first_length = min(first, max(capacity - second, capacity - capacity // 2))  # ids of the first text
    return [*plain[:first_length], *[eos] * marks, *plain[begin : begin + capacity - first_length]]
