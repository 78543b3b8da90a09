"""Texts of the museum, in English and Korean, from texts.en.toml and texts.ko.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manyheads.doctor.texts import LANGUAGES, Language, load_texts

__all__ = ["EXHIBIT_TEXTS", "LABELS", "SYSTEMS", "ExhibitText", "Labels"]


@dataclass(frozen=True)
class ExhibitText:
    """Texts of one exhibit: its title, what a person sees, what is wrong, and what mends it."""

    title: str
    seen: str
    wrong: str
    mend: str


@dataclass(frozen=True)
class Labels:
    """Headings of a visit."""

    met_in: str
    seen: str
    wrong: str
    doctor: str
    mend: str
    after: str


TEXTS: Mapping[Language, Mapping[str, Any]] = load_texts("manyheads.doctor.museum", "texts")

EXHIBIT_TEXTS: Mapping[Language, Mapping[str, ExhibitText]] = {
    language: {name: ExhibitText(**texts) for name, texts in TEXTS[language]["exhibits"].items()}
    for language in LANGUAGES
}
LABELS: Mapping[Language, Labels] = {language: Labels(**TEXTS[language]["labels"]) for language in LANGUAGES}
# Where defects were met, by the name of the system.
SYSTEMS: Mapping[Language, Mapping[str, str]] = {language: TEXTS[language]["systems"] for language in LANGUAGES}
