"""The warning about a text that is unlike the sources that a translator learned from.

A bigram model of the pieces of the training sources gives each piece of a text a surprise, its negative
log-probability after the piece before it. A text is unlike the sources if its mean surprise, or its total surprise
for its length, is above almost all of the validation text: another language, another domain, or no language at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from manyheads.errors import RunError
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.text.tokenizer import BOS, EOS

if TYPE_CHECKING:
    from manyheads.checkpoint import RunDirectory
    from manyheads.inference.translation.translator import Translator
    from manyheads.text.tokenizer import TokenizerPair

SOURCES = "source_model.json"  # name of the model in a run directory
_KEPT = 16_000  # pairs of neighbouring pieces
_CACHED = 32_000  # pairs whose surprise is kept
_USUAL = 0.992  # share of the validation text below each of the two limits
_FEW = 0.1  # share of sources of several sentences from which on a model is trusted to translate such lines whole


class SourceModel:
    """Bigram model of pieces (Witten and Bell 1991), and what is usual of a text.

    Args:
        counts: occurrences of each piece in the training sources (V).
        pairs: pairs of neighbouring pieces and their occurrences, one after the other: first, second, count (3N).
        mean: mean surprise of a piece of the validation text, in nats.
        limits: largest usual mean surprise of a text, and largest usual excess of its total over `mean` times its
            pieces, divided by the square root of their number.
        several: share of the training sources that have more than one sentence; 1 where it is not known.
    """

    def __init__(
        self,
        counts: Sequence[int],
        pairs: Sequence[int],
        mean: float,
        limits: Sequence[float],
        several: float = 1.0,
    ) -> None:
        self.counts, self.flat_pairs, self.mean, self.limits = counts, pairs, mean, limits
        self.several = several
        self._total = sum(counts) + len(counts)
        self._pairs = {
            (first, second): count
            for first, second, count in zip(pairs[::3], pairs[1::3], pairs[2::3], strict=True)
        }
        self._after: Counter[int] = Counter()  # occurrences of each piece with one of the kept pieces after it
        self._kinds: Counter[int] = Counter()  # different pieces after it
        for (first, _), count in self._pairs.items():
            self._after[first] += count
            self._kinds[first] += 1
        self._surprise_after = lru_cache(_CACHED)(lambda first, second: -math.log(self.probability(first, second)))

    def probability(self, first: int, second: int) -> float:
        """Return the probability of a piece after another; `BOS` begins a text, and `EOS` ends it."""
        alone, kinds = (self.counts[second] + 1) / self._total, self._kinds[first]
        if not kinds:
            return alone
        return (self._pairs.get((first, second), 0) + kinds * alone) / (self._after[first] + kinds)

    def surprise(self, ids: Sequence[int]) -> float:
        """Return the surprise of the pieces of a text and of its end, summed, in nats."""
        return sum(map(self._surprise_after, [BOS, *ids], [*ids, EOS]))

    def is_unlike(self, rows: Sequence[Sequence[int]]) -> bool:
        """Return whether a text of one or several rows of ids is unlike the training sources."""
        nats, pieces = sum(map(self.surprise, rows)), sum(len(ids) + 1 for ids in rows)
        return pieces > 0 and any(
            value > limit for value, limit in zip(_measures(nats, pieces, self.mean), self.limits, strict=True)
        )

    @property
    def single_sentences(self) -> bool:
        """Whether nearly all training sources are single sentences: of several, such a model often drops some."""
        return self.several < _FEW

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that is stored in a run directory; long lists are numbers separated by blanks."""
        counts, pairs = (" ".join(map(str, numbers)) for numbers in (self.counts, self.flat_pairs))
        limits = list(self.limits)
        return {"counts": counts, "pairs": pairs, "mean": self.mean, "limits": limits, "several": self.several}

    @classmethod
    def from_json(cls, content: Any, size: int) -> SourceModel:
        """Read the JSON form of `to_json` for a vocabulary of `size` pieces.

        Raises:
            ValueError: the content has another form, or is of another vocabulary.
        """
        try:
            counts, pairs = ([int(number) for number in content[name].split()] for name in ("counts", "pairs"))
            mean, (longest, total) = float(content["mean"]), map(float, content["limits"])
            several = float(content.get("several", 1))  # an older run has none
            if len(counts) != size or min(*counts, *pairs) < 0 or max(*pairs[::3], *pairs[1::3]) >= size:
                raise ValueError
            return cls(counts, pairs, mean, (longest, total), several)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("no model of sources") from error


def fit_source_model(
    sources: Sequence[Sequence[int]], valid: Iterable[Sequence[int]], size: int, several: float = 1.0
) -> SourceModel:
    """Count the pieces of training sources, and find what is usual of the validation text.

    Args:
        sources: ids of training sources.
        valid: ids of the validation sources.
        size: number of pieces of the vocabulary.
        several: see `SourceModel`.
    """
    ids = np.concatenate([part for row in sources for part in ([BOS], row, [EOS])]).astype(np.int64)
    neighbours = (ids[:-1] * size + ids[1:])[ids[:-1] != EOS]
    keys, numbers = np.unique(neighbours, return_counts=True)
    frequent = np.sort(np.argsort(-numbers, kind="stable")[:_KEPT])
    pairs = np.stack([*np.divmod(keys[frequent], size), numbers[frequent]], axis=1)
    counts = np.bincount(ids[ids != BOS], minlength=size)
    unlimited = SourceModel(counts.tolist(), pairs.ravel().tolist(), 0.0, [math.inf, math.inf])
    texts = [(unlimited.surprise(row), len(row) + 1) for row in valid]
    mean = round(sum(nats for nats, _ in texts) / sum(pieces for _, pieces in texts), 4)
    measures = [_measures(nats, pieces, mean) for nats, pieces in texts]
    limits = np.quantile(measures, _USUAL, axis=0, method="higher").round(4)
    return SourceModel(unlimited.counts, unlimited.flat_pairs, mean, limits.tolist(), several)


def _measures(nats: float, pieces: int, mean: float) -> tuple[float, float]:
    """Return the mean surprise, and the excess of the total for its length."""
    return nats / pieces, (nats - mean * pieces) / math.sqrt(pieces)


def read_source_model(run: RunDirectory, tokenizers: TokenizerPair) -> SourceModel | None:
    """Read the model of the training sources of a run; None if it has none: an old run, or one made elsewhere."""
    path = run.path / SOURCES
    if not path.is_file():
        return None
    try:
        return SourceModel.from_json(run.document(SOURCES), tokenizers.source.size)
    except ValueError as error:
        raise RunError(f"{path} is damaged: it holds no model of sources. Copy the run directory again.") from error


class UnlikeTraining(Stage):
    """The warning, of a translator with a model of its training sources."""

    warnings: ClassVar = {
        "unlike-training": "the text is unlike what the model was trained on, and its translation may be wrong"
    }

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warning."""
        sources = self.translator.sources
        unlike = sources is not None and sources.is_unlike(draft.line.parts)
        return translation.with_warnings({"unlike-training": unlike})

    @classmethod
    def page_data(cls, translator: Translator) -> dict[str, Any]:
        """Return the model of the sources."""
        return {"sources": translator.sources.to_json() if translator.sources else None}
