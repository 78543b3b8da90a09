"""Load the texts of the doctor and of the museum, in English and Korean, from TOML files beside the code."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any, Literal

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")
# Keys of the English file alone, as they hold no words.
_NOT_TEXTS = {"severity", "exhibit", "check", "number", "origin"}


def load_texts(package: str, name: str) -> dict[Language, dict[str, Any]]:
    """Return the content of the files name.en.toml and name.ko.toml of a package, by language.

    Raises:
        ValueError: the files do not agree, see `_check_agreement`.
    """
    texts = {language: _parse(package, f"{name}.{language}.toml") for language in LANGUAGES}
    for language in LANGUAGES:
        _check_agreement(texts["en"], texts[language], f"{name}.{language}.toml")
    return texts


def load_check_texts(package: str) -> dict[str, str]:
    """Return the Korean names of checks, and of reasons why they are not made, from checks.ko.toml of a package."""
    return _parse(package, "checks.ko.toml")


def _parse(package: str, file: str) -> dict[str, Any]:
    data = pkgutil.get_data(package, file)
    assert data is not None
    return tomllib.loads(data.decode())


def _check_agreement(english: Mapping[str, Any], other: Mapping[str, Any], file: str) -> None:
    """Check that two files hold the same names in the same order, and each pair of texts the same placeholders.

    Raises:
        ValueError: they differ; the message names the file of the other language and the first text that differs.
    """
    english_texts, other_texts = dict(_flatten(english)), dict(_flatten(other))
    if list(english_texts) != list(other_texts):
        differing = sorted(english_texts.keys() ^ other_texts.keys()) or ["the order of the names"]
        raise ValueError(f"{file} differs from the English texts in {differing[0]}")
    for name, text in english_texts.items():
        if placeholders(text) != placeholders(other_texts[name]):
            raise ValueError(f"{file} differs from the English texts in the placeholders of {name}")


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif name not in _NOT_TEXTS:
            yield f"{prefix}{name}", value


def placeholders(text: str) -> set[str]:
    """Return the names in braces of a text."""
    return {field for _, field, _, _ in Formatter().parse(text) if field is not None}


FINDING_TEXTS = load_texts("transformer_doctor", "findings")
CHECKS_IN_KOREAN = load_check_texts("transformer_doctor")
