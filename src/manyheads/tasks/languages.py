"""The language profiles of a run, by which a server tells which language a text is in."""

from __future__ import annotations

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError
from manyheads.text.languages import LanguageProfile

LANGUAGES = "languages.json"  # in a run directory: language profiles of both sides


def languages_of(run: RunDirectory) -> dict[str, LanguageProfile]:
    """Return the language profiles of a run; none of an older run or one that was made elsewhere.

    Raises:
        RunError: the stored document is damaged.
    """
    if not (run.path / LANGUAGES).is_file():
        return {}
    try:
        return {name: LanguageProfile.from_json(stored) for name, stored in run.document(LANGUAGES).items()}
    except ValueError as error:
        raise RunError(f"{run.path / LANGUAGES} is damaged: it holds no profiles of languages.") from error
