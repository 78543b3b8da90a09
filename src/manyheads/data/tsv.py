"""Write and read rows of tab-separated values: one dialect, which spreadsheets read too."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DIVIDERS = re.compile(r"\t|\r\n|[\n\r]")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


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


def _plain_value(value: str) -> str:
    match = _QUOTED.fullmatch(value)
    return match[1].replace('""', '"') if match and '""' in match[1] else value
