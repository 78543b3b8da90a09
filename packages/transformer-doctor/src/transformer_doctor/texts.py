"""Load the texts of the doctor and of the museum, in English and Korean, from TOML files beside the code."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from string import Formatter
from typing import Any, Literal

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")


def load_texts(package: str, name: str) -> dict[Language, dict[str, Any]]:
    """Return the content of the files name.en.toml and name.ko.toml of a package, by language."""
    return {language: _parse(package, f"{name}.{language}.toml") for language in LANGUAGES}


def load_sentences(package: str, *names: str) -> dict[str, str]:
    """Return the Korean forms of English sentences, from the files name.ko.toml of a package; see `translate`."""
    return {english: korean for name in names for english, korean in _parse(package, f"{name}.ko.toml").items()}


def translate(text: str, sentences: Mapping[str, str]) -> str:
    """Return a text in the language of a table of sentences, or as it is where the table lacks it.

    A sentence of the table may hold placeholders, as in "{count} of {all} updates". Each stands for a part of a
    sentence, the last one for all that follows where it ends the translation too; it is translated as well. Of the
    sentences that fit the one with most letters counts; where none does, the clauses of the text are translated.
    """
    if (whole := _fit(text, sentences)) is not None:
        return whole
    for separator in (". ", "; ", ", "):
        parts = text.split(separator)
        heads = [separator.join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
        if heads:
            head = next((head for head in heads if _fit(head, sentences) is not None), heads[-1])
            clauses = head, text[len(head) + len(separator) :]
            translated = tuple(translate(clause, sentences) for clause in clauses)
            return text if translated == clauses else separator.replace(";", ".").join(translated)
    return text


def _fit(text: str, sentences: Mapping[str, str]) -> str | None:
    """Return the translation of the longest sentence that fits a whole text; None where none fits."""
    if text in sentences:
        return sentences[text]
    fitting = {
        sentence: found.groupdict()
        for sentence, translation in sentences.items()
        if "{" in sentence and (found := _pattern(sentence, translation).fullmatch(text))
    }
    if not fitting:
        return None
    longest = max(fitting, key=lambda sentence: sum(len(fixed) for fixed, *_ in Formatter().parse(sentence)))
    return sentences[longest].format_map(
        {name: translate(part, sentences) for name, part in fitting[longest].items()}
    )


@cache
def _pattern(sentence: str, translation: str) -> re.Pattern[str]:
    """Return the pattern of texts that are a sentence with something in the place of each placeholder."""
    pattern = ""
    for fixed, name, _, _ in Formatter().parse(sentence):
        free = all(text.endswith(f"{{{name}}}") for text in (sentence, translation))
        part = f"(?P<{name}>{'.*?' if free else '(?:(?!; |[.] ).)*?'})" if name else ""
        pattern += re.escape(fixed) + part
    return re.compile(pattern, re.DOTALL)


def _parse(package: str, file: str) -> dict[str, Any]:
    data = pkgutil.get_data(package, file)
    assert data is not None
    return tomllib.loads(data.decode())


def placeholders(text: str) -> set[str]:
    """Return the names in braces of a text."""
    return {field for _, field, _, _ in Formatter().parse(text) if field is not None}


FINDING_TEXTS = load_texts("transformer_doctor", "findings")
SENTENCES_IN_KOREAN = load_sentences("transformer_doctor", "checks", "observations")
