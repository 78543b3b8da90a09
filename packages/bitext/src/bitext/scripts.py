"""Scripts as regular expressions, and frequent words of languages in Latin letters."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources

from bitext.languages import base_language, script_of

_DATA = tomllib.loads(resources.files("bitext").joinpath("scripts.toml").read_text(encoding="utf-8"))
SCRIPTS: Mapping[str, re.Pattern[str]] = {name: re.compile(letters) for name, letters in _DATA["scripts"].items()}
_SCRIPTS_OF: Mapping[str, Sequence[str]] = _DATA["scripts_of"]  # ISO 15924 -> names of scripts
FREQUENT: Mapping[str, str] = _DATA["frequent_words"]


def scripts_of(code: str) -> Sequence[str]:
    """Return the names of the scripts that a language is written in; none for an unknown language or script."""
    return _SCRIPTS_OF.get(script_of(code), ())


def frequent_words(code: str) -> Sequence[str]:
    """Return frequent words of a language in Latin letters; none for an unknown language or another script."""
    return FREQUENT.get(base_language(code), "").split() if script_of(code) == "Latn" else ()
