"""Read JSON of translations: nested keys as in i18next, ARB of Flutter, `messages.json` of browser extensions.

There is one language in the file: a translation replaces its text, unless a placeholder is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from bitext.plurals import plural_rule
from manyheads.documents.document import Document, ReadOptions, text_document
from manyheads.documents.messages import ReplacedMessage, message_block, message_tokens, texts_of_branches
from manyheads.documents.units import Edit, Unit
from manyheads.errors import DataError

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|[{}\[\],:]')
# Messages of ICU; "{" in quotes is text.
_SELECTOR = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_SIGN = re.compile(r"'[{}][^']*'|[{}]")
_NON_ASCII = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_ESCAPED = {"/": "\\/", "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"}  # by some programs
_CATEGORIES = "zero", "one", "two", "few", "many", "other"  # of plurals
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character, which is no text


class _Value(NamedTuple):
    """A string of a JSON file that is a value of a key or an item of a list.

    Attributes:
        keys: the keys of the objects that it is in, the last one its own; "" stands for a list.
        start, end: offsets of what stands between its quotes.
        before: offset behind the bracket or comma before it and its key.
    """

    keys: tuple[str, ...]
    start: int
    end: int
    before: int


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of a JSON file; see `Format.read`."""
    return text_document(data, [partial(_read_values, options=options)], options)


def _read_values(text: str, options: ReadOptions) -> Iterator[Unit | Edit]:
    is_message = _message_rule(text, options.name)
    values = list(_values(text))
    present = {value.keys for value in values}
    categories = plural_rule(options.target)[1].split() if options.target else []
    escape = _escape_of(text)
    for value in values:
        raw = text[value.start : value.end]
        if value.keys == ("@@locale",) and options.target:
            yield Edit(value.start, value.end, options.target.replace("-", "_"))
        if not is_message(value.keys):
            continue
        spans = texts_of_branches(raw, _SELECTOR, _SIGN)
        further = _further_plurals(text, value, present, categories) if len(spans) == 1 else []
        for start, end in spans:
            message = json.loads(f'"{raw[start:end]}"', strict=False)
            if not _SURROGATE.search(message):
                block, key = message_block([*message_tokens(message)])
                write = partial(_write_plurals, escape, further) if further else escape
                first = value.start + start
                yield ReplacedMessage(block, first, value.start + end, access_key=key, write=write)


def _message_rule(text: str, name: str) -> Callable[[tuple[str, ...]], bool]:
    """Return whether the text at some keys is a message, by what the file is.

    Raises:
        DataError: the file is no JSON.
    """
    try:
        content: Any = json.loads(text, parse_int=str, strict=False)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} is no JSON that can be read: {error}.") from error
    if not isinstance(content, dict):
        return lambda keys: True
    if all(isinstance(value, dict) and isinstance(value.get("message"), str) for value in content.values()):
        return lambda keys: len(keys) == 2 and keys[1] == "message"  # of browser extensions
    is_arb = "@@locale" in content or name.lower().endswith(".arb")
    return lambda keys: not (is_arb and keys[0].startswith("@"))


def _values(text: str) -> Iterator[_Value]:
    """Yield the strings of a JSON file that are values."""
    keys: list[str] = []
    brackets, before, is_key = "", 0, False
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in ("{", "["):
            keys.append("")
            brackets += sign
        elif sign in ("}", "]"):
            keys.pop()
            brackets = brackets[:-1]
        elif sign not in (":", ","):
            if is_key:
                keys[-1] = json.loads(sign, strict=False)
            elif keys:
                yield _Value(tuple(keys), *token.span(1), before)
            continue
        if sign != ":":
            before, is_key = token.end(), sign in ("{", ",") and brackets.endswith("{")
        else:
            is_key = False


def _further_plurals(text: str, value: _Value, present: set[tuple[str, ...]], categories: list[str]) -> list[str]:
    """Return what stands before the plural forms of i18next that the target language needs beside "_other"."""
    *outer, key = value.keys
    name, is_other = key.removesuffix("_other"), key.endswith("_other") and not key.endswith("_ordinal_other")
    known = [category for category in _CATEGORIES if (*outer, f"{name}_{category}") in present]
    missing = [category for category in categories if is_other and known[1:] and category not in known]
    head, _, tail = text[value.before : value.start].rpartition("_other")
    return [f'",{head}_{category}{tail}' for category in missing]


def _write_plurals(escape: Callable[[str], str], further: list[str], text: str) -> str:
    written = escape(text)
    return written + "".join(before + written for before in further)


def _escape_of(text: str) -> Callable[[str], str]:
    """Return a function that escapes a text as the strings of a JSON file are."""
    ascii_only = text.isascii() and _NON_ASCII.search(text) is not None
    escaped = [(sign, form) for sign, form in _ESCAPED.items() if form in text.replace("\\u003C", "\\u003c")]

    def escape(translation: str) -> str:
        written = json.dumps(translation, ensure_ascii=ascii_only)[1:-1]
        for sign, form in escaped:
            written = written.replace(sign, form)
        return written

    return escape
