"""Scripts as regular expressions, the scripts of languages, and frequent words of languages in Latin letters."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources

__all__ = ["FREQUENT", "SCRIPTS", "SCRIPTS_OF", "base_code", "scripts_of"]

DATA = tomllib.loads(resources.files("manyheads.data").joinpath("languages.toml").read_text(encoding="utf-8"))
SCRIPTS: Mapping[str, re.Pattern[str]] = {name: re.compile(letters) for name, letters in DATA["scripts"].items()}
SCRIPTS_OF: Mapping[str, Sequence[str]] = DATA["languages"]
FREQUENT: Mapping[str, str] = DATA["frequent_words"]


def base_code(code: str) -> str:
    """Return a language code without script or country, in lower case: "pt" for "pt-BR"."""
    return code.replace("_", "-").partition("-")[0].lower()


def scripts_of(code: str) -> Sequence[str]:
    """Return the names of the scripts of a language; none for an unknown language."""
    base = base_code(code)
    return SCRIPTS_OF.get(base, ("latin",) if base in FREQUENT else ())
