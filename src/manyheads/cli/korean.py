"""Help and usage errors in Korean: help.ko.toml and usage.ko.toml have the Korean form of each English text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import click

_WIDE = re.compile("([가-힣])")
_ESCAPED_NAME = re.compile(r"\\\{(\w+)\\\}")  # a name in braces, as re.escape writes it
_FILLER = "\u2060"  # after each letter in Hangul, because it takes two columns, and click counts letters


@cache
def korean_texts() -> Mapping[str, str]:
    """Return the Korean form of each English text: a paragraph, a line of a table, a default or a range."""
    return tomllib.loads(Path(__file__).with_name("help.ko.toml").read_text("utf-8"))


def is_korean(context: click.Context) -> bool:
    """Return whether the help of a command line is in Korean."""
    return getattr(context.find_root().obj, "language", None) == "ko"


def in_korean(text: str) -> str:
    """Return the Korean form of a text, with fillers that `KoreanFormatter` removes, or the text if it has none."""
    return _WIDE.sub(rf"\1{_FILLER}", korean_texts().get(text, text))


@cache
def _usage_errors() -> list[tuple[re.Pattern[str], str]]:
    """Return the pattern of each usage error with its Korean form."""
    texts = tomllib.loads(Path(__file__).with_name("usage.ko.toml").read_text("utf-8"))
    patterns = (re.compile(_ESCAPED_NAME.sub(r"(?P<\1>.+)", re.escape(english))) for english in texts)
    return list(zip(patterns, texts.values(), strict=True))


def usage_error_in_korean(message: str) -> str:
    """Return the Korean form of a usage error, or the message if it has none."""
    for pattern, korean in _usage_errors():
        if found := pattern.fullmatch(message):
            return korean.format_map(
                {name: usage_error_in_korean(part) for name, part in found.groupdict().items()}
            )
    return message


class KoreanFormatter(click.HelpFormatter):
    """Write a help in Korean. Names, placeholders and commands stay as they are typed."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """See click; a further line, whose `prefix` is blank, is aligned with the first."""
        first = in_korean("Usage: ")
        args = args.replace("[OPTIONS]", in_korean("[OPTIONS]"))
        super().write_usage(prog, args, first if prefix is None else " " * len(first))

    def write_heading(self, heading: str) -> None:
        """See click."""
        super().write_heading(in_korean(heading))

    def write_text(self, text: str) -> None:
        """See click; a table, which follows a backspace, is translated line by line."""
        super().write_text("\n\n".join(map(_paragraph_in_korean, text.split("\n\n"))))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """See click; default and range, which follow two blanks, are in Korean already but for their label."""
        translated = []
        for name, text in rows:
            help_text, mark, facts = text.partition("  [")
            facts = facts.replace("default: ", in_korean("default: "), 1)
            translated.append((name, in_korean(help_text) + mark + facts))
        super().write_dl(translated, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return the help without fillers."""
        return super().getvalue().replace(_FILLER, "")


def _paragraph_in_korean(text: str) -> str:
    if not text.startswith("\b"):
        return in_korean(" ".join(text.split()))
    lines = [(line, line.strip()) for line in text.split("\n")]
    return "\n".join(line.removesuffix(bare) + in_korean(bare) for line, bare in lines)
