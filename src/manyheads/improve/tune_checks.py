"""Checks of corrections before a training: their languages, and whether they look like translations at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bitext.defects import LEAST_WORDS, letters_of
from bitext.languages import base_language, language_name
from bitext.pairs import Pair
from bitext.scripts import FREQUENT
from manyheads.config.schema import Config
from manyheads.data.sampler import evenly
from manyheads.errors import DataError
from manyheads.improve.corrections import target_means
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener

_LEAST_HITS, _OUTWEIGHED = 20, 2  # frequent words that tell a language, and how many times those of the right one
_CORRECTIONS_PER_CALL = 64  # corrections that are translated at once
_LEAST_PAIRS, _MOST_ODD = 10, 0.2  # pairs of which a share says something, and the largest share of odd ones
_MOST_RATIO = 2.0  # of the lengths of both sides, compared with general text
_MOST_COMPARED, _OTHERS = 100, 3  # pairs whose target is compared with the sources of others, and those others
_MOST_USUAL = 0.1  # share of misfits in general text, up to which the model can tell


def check_languages(path: Path, pairs: Sequence[Pair], config: Config) -> None:
    """Raise `DataError` if the frequent words of a side are those of another language."""
    sides = {"sources": [pair.source for pair in pairs], "targets": [pair.target for pair in pairs]}
    for (side, texts), code in zip(sides.items(), config.languages, strict=True):
        words = Counter(word for text in texts for word in text.lower().split())
        hits = {name: sum(words[word] for word in known.split()) for name, known in FREQUENT.items()}
        best, own = max(hits, key=lambda name: hits[name]), base_language(code)
        if own in hits and hits[best] >= max(_LEAST_HITS, _OUTWEIGHED * hits[own]):
            raise DataError(
                f"{path}: the {side} look like {language_name(best)}, and the model translates from "
                f"{config.data.source} to {config.data.target}. Put the source first, then its right translation."
            )


def check_news(path: Path, pairs: Sequence[Pair], translator: Translator) -> None:
    """Raise `DataError` if the model says already what the corrections say."""
    for start in range(0, len(pairs), _CORRECTIONS_PER_CALL):
        group = pairs[start : start + _CORRECTIONS_PER_CALL]
        outputs = translator.translate([pair.source for pair in group])
        if any(output.translation != pair.target for output, pair in zip(outputs, group, strict=True)):
            return
    raise DataError(f"{path}: the model says already what the {len(pairs):,} corrections say. Nothing is to learn.")


def find_doubts(
    translator: Translator, corrections: Sequence[Pair], general: Sequence[Pair], listener: Listener
) -> Iterator[str]:
    """Yield each fault that more than a fifth of the corrections have, in words."""
    long = [pair for pair in corrections if len(pair.source.split()) >= LEAST_WORDS]
    if len(long) >= _LEAST_PAIRS:
        copies = sum(letters_of(pair.source) == letters_of(pair.target) for pair in long) / len(long)
        if copies > _MOST_ODD:
            yield f"{copies:.0%} of the corrections are copies of their sources"
    if len(long) >= _LEAST_PAIRS and general:
        usual = median(len(pair.target) / len(pair.source) for pair in general)
        ratios = [len(pair.target) / len(pair.source) / usual for pair in long]
        odd = sum(not 1 / _MOST_RATIO < ratio < _MOST_RATIO for ratio in ratios) / len(long)
        if odd > _MOST_ODD:
            yield f"{odd:.0%} of the corrections are less than half or more than twice as long as is usual"
    enough = len(corrections) >= _LEAST_PAIRS <= len(general)
    if enough and misfit_share(translator, general, listener) < _MOST_USUAL:
        share = misfit_share(translator, corrections, listener)
        if share > _MOST_ODD:
            yield f"{share:.0%} of the corrections fit the sources of others: are the lines of both sides in order?"


def misfit_share(translator: Translator, pairs: Sequence[Pair], listener: Listener) -> float:
    """Return the share of comparisons in which a target is as likely after the source of another pair.

    It is near 0 for translations, and 0.5 for lines in a wrong order.
    """
    chosen = [pairs[index] for index in evenly(len(pairs), _MOST_COMPARED)]
    sources = translator.tokenizers.source.encode([pair.source for pair in chosen])
    targets = translator.tokenizers.target.encode([pair.target for pair in chosen])
    with listener.phase("comparing sources and targets"):
        own, *others = (
            target_means(translator, [*sources[shift:], *sources[:shift]], targets)[0]
            for shift in range(_OTHERS + 1)
        )
    return float(np.mean([other <= own for other in others]))
