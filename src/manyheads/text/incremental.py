"""Decode a stream of tokens to growing text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from manyheads.text.interface import Tokenizer

__all__ = ["growing_text"]

UNFINISHED = "\ufffd"  # stands for bytes that later bytes may complete to a character


def growing_text(tokenizer: Tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """Yield the text that each token adds, as soon as no later token can change it."""
    ids: list[int] = []
    shown = ""
    for token in tokens:
        ids.append(token)
        text = tokenizer.decode(ids).rstrip(UNFINISHED)
        if len(text) > len(shown) and text.startswith(shown):
            yield text[len(shown) :]
            shown = text
    rest = tokenizer.decode(ids)[len(shown) :]
    if rest:
        yield rest
