"""Write and read rows of tab-separated values: one dialect, which spreadsheets read too."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bitext.languages import base_language, language_name

_DIVIDERS = re.compile(r"\t|\r\n|[\n\r]")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_COLUMNS = {  # words that name the columns of pairs, none of which translates the other
    ("source", "target"), ("src", "tgt"), ("src", "trg"), ("source term", "target term"), ("term", "translation"),
    ("quelle", "ziel"), ("원문", "번역"), ("원문", "번역문"), ("용어", "번역"), ("소스", "타깃"),
}  # fmt: skip


def join_row(values: Iterable[object]) -> str:
    """Return values as a row without its line end.

    A value with quotation marks is quoted, and they are doubled. Tabs and line ends become blanks.
    """
    texts = (_DIVIDERS.sub(" ", str(value)) for value in values)
    return "\t".join('"{}"'.format(text.replace('"', '""')) if '"' in text else text for text in texts)


def split_row(line: str) -> list[str]:
    """Return the values of a row.

    A value counts as quoted only if it holds doubled quotation marks: a quotation in a file that quotes nothing,
    such as "No.", stays as it is.
    """
    values = line.split("\t")
    return list(map(_plain_value, values)) if '""' in line else values


def split_quoted_row(line: str) -> list[str]:
    """Return the values of a row in which a spreadsheet may have quoted any value."""
    return list(map(without_quotes, line.split("\t")))


def without_quotes(value: str) -> str:
    """Return a value without the quotation marks around it; marks inside are doubled, else all stay."""
    match = _QUOTED.fullmatch(value.strip())
    return match[1].replace('""', '"') if match else value


def names_columns(first: str, second: str, languages: tuple[str, str]) -> bool:
    """Return whether two values name the columns of a file of pairs.

    They do as words such as "source" and "target", and as the codes or English names of the two languages.
    """
    cells = first.strip('" ').lower(), second.strip('" ').lower()
    return cells in _COLUMNS or all(
        cell == language_name(code).lower() or base_language(cell) == base_language(code)
        for cell, code in zip(cells, languages, strict=True)
    )


def _plain_value(value: str) -> str:
    match = _QUOTED.fullmatch(value)
    return match[1].replace('""', '"') if match and '""' in match[1] else value
