"""The languages of a translator's text as character n-grams, kept in the run: a server needs them."""

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
    """What is kept in a run: for each language its most frequent sequences of characters."""
    return {name: profile.to_json() for name, profile in profiles_of(config, text).items()}


def profiles_of(config: Config, text: TextStore) -> dict[str, LanguageProfile]:
    """The profiles of both sides of a text."""
    sides = text.sides(PAIRS_READ)
    return {language: make_profile(side) for language, side in zip(config.languages, sides, strict=True)}


def languages_of(run: RunDirectory) -> dict[str, LanguageProfile]:
    """The profiles of a run: those kept in it, else made of the training text in its cache; none without both.

    Raises:
        RunError: what is kept is damaged.
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
