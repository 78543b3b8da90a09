"""Translate many texts in groups, so that a long translation can show its progress and end early."""

from __future__ import annotations

from collections.abc import Sequence

from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.translator import DEFAULTS, Translator
from manyheads.reports import Advance, no_advance
from manyheads.search.options import SearchOptions

_TEXTS_PER_CALL = 64  # texts in one call; on a CPU as fast as all texts in one call


def translate_in_groups(
    translator: Translator,
    sources: Sequence[str],
    advance: Advance = no_advance,
    *,
    beam_size: int | None = None,
    options: SearchOptions = DEFAULTS,
) -> list[Translation]:
    """Translate texts as `Translator.translate` does, in groups of similar length.

    Args:
        translator: the translator.
        sources: texts; the result has the same order.
        advance: called with the number of texts of each group.
        beam_size: see `Translator.translate`.
        options: see `Translator.translate`.
    """
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    results: dict[int, Translation] = {}
    for start in range(0, len(order), _TEXTS_PER_CALL):
        group = order[start : start + _TEXTS_PER_CALL]
        translations = translator.translate(
            [sources[index] for index in group], beam_size=beam_size, options=options
        )
        results |= zip(group, translations, strict=True)
        advance(len(group))
    return [results[index] for index in range(len(sources))]


def spread_groups(count: int) -> list[range]:
    """Divide the indices below `count` into groups, each spread evenly over all of them."""
    number = -(-count // _TEXTS_PER_CALL)
    return [range(first, count, number) for first in range(number)]
