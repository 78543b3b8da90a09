"""Character n-gram models of the languages of a translator, with which the server identifies languages."""

from __future__ import annotations

from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.texts import TextStore
from manyheads.errors import RunError
from manyheads.runs.corpus import TEXT
from manyheads.text.identification import LanguageProfile, make_profile

__all__ = ["LANGUAGES", "languages_document", "languages_of"]

LANGUAGES = "languages.json"  # in a run directory
PAIRS_READ = 5_000  # evenly spread over the corpus


def languages_document(config: Config, text: TextStore) -> dict[str, Any]:
    """Return the document stored in a run: the most frequent character n-grams of each language."""
    return {name: profile.to_json() for name, profile in profiles_of(config, text).items()}


def profiles_of(config: Config, text: TextStore) -> dict[str, LanguageProfile]:
    """Return the language profiles of both sides of a text."""
    sides = text.sides(PAIRS_READ)
    return {language: make_profile(side) for language, side in zip(config.languages, sides, strict=True)}


def languages_of(run: RunDirectory) -> dict[str, LanguageProfile]:
    """Return the language profiles of a run: stored ones, else made from the cached training text, else none.

    Raises:
        RunError: the stored document is damaged.
    """
    if (run.path / LANGUAGES).is_file():
        try:
            return {name: LanguageProfile.from_json(one) for name, one in run.document(LANGUAGES).items()}
        except ValueError as error:
            raise RunError(f"{run.path / LANGUAGES} is damaged: it holds no profiles of languages.") from error
    folder = run.path / TEXT
    try:
        return profiles_of(run.config(), TextStore(folder)) if (folder / "index.json").is_file() else {}
    except (OSError, ValueError, KeyError):  # a cache may be anything
        return {}
