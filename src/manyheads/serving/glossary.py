"""The glossaries of a server: one for its translator, and further terms that a request may have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from manyheads.errors import UsageError
from manyheads.inference.translation.glossary import Glossary, Term
from manyheads.inference.translation.translator import Translator
from manyheads.serving.fields import Fields, replace_surrogates
from manyheads.serving.pivots import Pair
from manyheads.serving.responses import ApiError

_MAX_TERMS, _MAX_TERM_LENGTH = 100, 100  # of a request; characters of each side


def set_glossary(translators: dict[Pair, Translator], path: Path) -> None:
    """Read a glossary for the only translator, and use both once.

    Raises:
        UsageError: there are several translators or none, or a translation cannot come out.
        DataError: the glossary cannot be read.
    """
    if len(translators) != 1:
        raise UsageError(f"--glossary is for one translator, and {len(translators)} are served. Serve each alone.")
    for pair, translator in translators.items():
        glossary = Glossary.read(path, pair)
        translators[pair] = translator.with_glossary(glossary)
        if glossary.terms:
            translator.translate(["a"], required=[[glossary.terms[0].target]])


def requested_terms(fields: Fields) -> list[Term]:
    """Return the terms of the field `glossary`: an object of terms and translations, or a list of pairs.

    A form has the object as text. The number of terms and the length of each side are limited.

    Raises:
        ApiError: 400, the field has another form, or is too large.
    """
    value = fields.single("glossary")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = False
    pairs = list(value.items()) if isinstance(value, dict) else [] if value is None else value
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise ApiError(400, "Invalid request: glossary parameter must be an object of texts or a list of pairs")
    longest = max((len(side) for pair in pairs for side in pair), default=0)
    for size, limit in ((len(pairs), _MAX_TERMS), (longest, _MAX_TERM_LENGTH)):
        if size > limit:
            raise ApiError(400, f"Invalid request: glossary ({size}) exceeds text limit ({limit})")
    return [
        Term(replace_surrogates(source), replace_surrogates(target), f"glossary, pair {number}")
        for number, (source, target) in enumerate(pairs, start=1)
    ]


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(side, str) for side in pair)


def with_terms(translator: Translator, terms: Sequence[Term]) -> Translator:
    """Return a translator whose glossary has further terms.

    Raises:
        DataError, UsageError: a term has two translations, or one that cannot come out.
    """
    return translator.with_glossary((translator.glossary or Glossary(())).extended(terms))
