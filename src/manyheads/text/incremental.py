"""Decode a stream of tokens to growing text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from manyheads.text.interface import Tokenizer

__all__ = ["growing_text"]

UNFINISHED = "\ufffd"  # how bytes show that may become a character with those to come


def growing_text(tokenizer: Tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """Yield the text that each token adds, as soon as no later token can change it."""
    ids: list[int] = []
    said = ""
    for token in tokens:
        ids.append(token)
        text = tokenizer.decode(ids).rstrip(UNFINISHED)
        if len(text) > len(said) and text.startswith(said):
            yield text[len(said) :]
            said = text
    rest = tokenizer.decode(ids)[len(said) :]
    if rest:
        yield rest
