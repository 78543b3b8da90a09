"""Texts of an encoder as token ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from manyheads.config.schema import Config
from manyheads.text.interface import Encode
from manyheads.text.joined_texts import split_texts
from manyheads.text.normalize import clean
from manyheads.text.tokenizer import EOS


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
    return min(config.data.max_length, config.model.position_limit - 2)
