"""Pivoting: a translation by way of a third language, where two served translators meet in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from bitext.languages import match_language
from manyheads.inference.translation.translator import STAGES, Translation

Pair = tuple[str, str]
_PREFERRED = "en"  # of several pivot languages


def find_pivots(pairs: Collection[Pair]) -> dict[Pair, tuple[Pair, Pair]]:
    """Return the directions that no pair of languages offers, but two of them one after the other.

    Of several pivot languages, English is preferred, then the first.
    """
    pivots: dict[Pair, tuple[Pair, Pair]] = {}
    in_order = sorted(pairs, key=lambda pair: match_language(pair[1], [_PREFERRED]) is None)
    for first in in_order:
        for second in pairs:
            meet = match_language(first[1], second[:1]) is not None
            new, back = (first[0], second[1]), match_language(second[1], first[:1]) is not None
            if meet and not back and new not in pairs:
                pivots.setdefault(new, (first, second))
    return pivots


def join(first: Translation, second: Translation) -> Translation:
    """Return the translation of a source by way of another language, from the two translations on the way."""
    joined = replace(
        second,
        source=first.source,
        truncated=first.truncated or second.truncated,
        alignment=_join_alignments(first.alignment, second.alignment),
        warnings=list(dict.fromkeys([*first.warnings, *second.warnings])),
    )
    for stage in STAGES:
        joined = stage.after_pivot(first, joined)
    return joined


def _join_alignments(first: str | None, second: str | None) -> str | None:
    """Return the links of source words to the words that both alignments reach; None without an alignment."""
    if first is None or second is None:
        return None
    sources = defaultdict[str, list[str]](list)  # of each word of the pivot language
    for source, middle in (link.split("-") for link in first.split()):
        sources[middle].append(source)
    links = (link.split("-") for link in second.split())
    return " ".join(f"{source}-{target}" for middle, target in links for source in sources[middle])
