"""Sentences of a verdict, and those that only --verbose prints."""

from __future__ import annotations

from collections.abc import Sequence


class Note(str):
    """A sentence or line that asks for no action; the command line prints it with --verbose only."""

    __slots__ = ()


def verdict_lines(sentences: Sequence[str]) -> list[str]:
    """Return the sentences of a verdict as lines of text; the line of a `Note` is one."""
    lines = [f"verdict: {sentence}" for sentence in sentences]
    return [
        Note(line) if isinstance(sentence, Note) else line for line, sentence in zip(lines, sentences, strict=True)
    ]
