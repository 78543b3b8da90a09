"""The words of charts in the language of the reader: English in the code, other languages in a table beside it.

`ko.json` maps each English text to the Korean one; {names} in braces stand for values in both.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from manyheads.errors import UsageError

_LANGUAGES = ("en", "ko")
_CURRENT = ContextVar("language of the charts", default="en")


@contextmanager
def written_in(language: str) -> Iterator[None]:
    """Make charts in this language within a `with` block; raise `UsageError` for other languages."""
    if language not in _LANGUAGES:
        raise UsageError(f'there are no words in "{language}" for charts. Use {" or ".join(_LANGUAGES)}.')
    token = _CURRENT.set(language)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def localize(text: str, **values: object) -> str:
    """Return an English text in the language of the reader, with its values; English where it has no entry."""
    chosen = _words_of(_CURRENT.get()).get(text, text)
    return chosen.format(**values) if values else chosen


def names_of(*texts: str) -> tuple[str, ...]:
    """Return English texts, such as the names of columns, in the language of the reader."""
    return tuple(map(localize, texts))


@cache
def _words_of(language: str) -> dict[str, str]:
    """Read the table of a language: English text -> its translation."""
    if language == "en":
        return {}
    content = pkgutil.get_data(__package__, f"{language}.json")
    assert content is not None
    words: dict[str, str] = json.loads(content)
    return words
