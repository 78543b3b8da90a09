"""Augment training pairs as they are drawn: the change of a pair depends on seed, epoch and row alone.

The decisions of an epoch are drawn for all rows at once, so that the batches can be planned with the lengths that
the pairs will have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bitext.languages import sentence_separator
from manyheads.data.augment_text import (
    add_copy,
    change_end_mark,
    drop_capital,
    lower_source,
    misspell,
    to_capitals,
)
from manyheads.data.store import TextStore, TokenStore

Texts = tuple[str, str]  # source and target
Indices = NDArray[np.int64]

_PHRASE, _JOINED = 1, 2  # content of a row; 0 is the pair itself
_CAPITALS, _LOWER, _SMALL_FIRST = 1, 2, 3  # case of a row; 0 is unchanged
_CASES = (0.1, 0.8)  # cumulative shares of `case`: capitals, lower case; the rest: small first letter
_MOST_JOINED = 4  # sentences of a paragraph, at least 2
_HINT_TOKENS = 4  # tokens that the hints of a source add to it, in the mean
_WORD_SHARE = 0.7  # share of phrases that are single words
_STREAM = 0x617567  # separates this random stream from the sampler, which is seeded by (seed, epoch)


@dataclass(frozen=True)
class AugmentRates:
    """Shares of pairs that undergo a change; a pair can undergo several.

    Attributes:
        case: another case: a tenth of them in capitals on both sides, seven tenths with a lower-case source, the
            rest with a small first letter of the source.
        end_mark: without their end mark on both sides, or with a full stop if they have none.
        typos: a typing error in the source for each 8 words, at least one.
        copies: the same made-up text on both sides: a number in two of three cases, else an address, emoji,
            field such as {name} or inline tag.
        words: replaced by a word or a short phrase and its translation, which are found in the training text by
            alignment.
        join: joined with one to three others to a paragraph.
        terms: translations in the place of words of the source.
        placeholders: the same placeholders of literals on both sides, in the place of words or around them.
    """

    case: float = 0.06
    end_mark: float = 0.04
    typos: float = 0.02
    copies: float = 0.04
    words: float = 0.08
    join: float = 0.02
    terms: float = 0.0
    placeholders: float = 0.03

    def scaled(self, factor: float) -> AugmentRates:
        """Return the rates multiplied by a factor."""
        return AugmentRates(**{name: factor * rate for name, rate in vars(self).items()})


@dataclass(frozen=True)
class PhraseTable:
    """Mined words and phrases with their translations, words first.

    Attributes:
        texts: store of the texts, and after them of the links of words.
        words: number of single words.
        lengths: tokens of source and target without begin and end symbols: two arrays (N,).
        translations: translation of each single word, both in lower case.
    """

    texts: TextStore
    words: int
    lengths: tuple[Indices, Indices]
    translations: dict[str, str]

    def pair(self, index: int) -> Texts:
        """Return a phrase and its translation."""
        return self.texts.text(0, [index])[0], self.texts.text(1, [index])[0]


@dataclass(frozen=True)
class Growth:
    """Mean change of the lengths by each operation that respells a text, measured on a sample of the corpus.

    Attributes:
        capitals: factor of the lengths of source and of target in capitals.
        lower: factor of the length of the source in lower case.
        copied: tokens that a copied text adds to source and to target.
        scripts: scripts without a letter in the corpus: first and last code point.
    """

    capitals: tuple[float, float]
    lower: float
    copied: tuple[float, float]
    scripts: Sequence[tuple[int, int]] = ()


class AugmentPlan:
    """Random decisions about all N rows in one epoch, each an array (N,) unless another shape is given.

    Attributes:
        content: 0, PHRASE or JOINED.
        phrases: index of the phrase of each row.
        partners: rows joined to each row, -1 for none (MOST_JOINED - 1, N).
        case: 0, CAPITALS, LOWER or SMALL_FIRST.
        mark, typo, copy: whether the end mark is changed, the source is misspelt, a text is copied.
        terms, placeholders: whether the source gets translations in the place of words, else both sides
            placeholders, after the changes of `texts`.
    """

    def __init__(self, augmenter: Augmenter, epoch: int) -> None:
        self.augmenter = augmenter
        self.epoch = epoch
        rates, count = augmenter.rates, len(augmenter.store)
        rng = np.random.default_rng((augmenter.seed, epoch, _STREAM))
        draw = rng.random(count, dtype=np.float32)
        words = rates.words if augmenter.num_phrases else 0.0
        self.content = np.where(draw < words, _PHRASE, np.where(draw < words + rates.join, _JOINED, 0)).astype("i1")
        self.phrases = self.draw_phrases(rng, count)
        self.partners = self.draw_partners(rng, count)
        share = rng.random(count, dtype=np.float32) / np.float32(rates.case or 1.0)
        self.case = np.where(
            share < _CASES[0], _CAPITALS, np.where(share < _CASES[1], _LOWER, _SMALL_FIRST)
        ).astype("i1")
        self.case[share >= (1.0 if rates.case else 0.0)] = 0
        self.mark = rng.random(count, dtype=np.float32) < rates.end_mark
        self.typo = rng.random(count, dtype=np.float32) < rates.typos
        self.copy = rng.random(count, dtype=np.float32) < rates.copies
        self.terms = (rng.random(count, dtype=np.float32) < rates.terms) & (self.case != _CAPITALS)
        self.placeholders = rng.random(count, dtype=np.float32) < rates.placeholders

    def draw_phrases(self, rng: np.random.Generator, count: int) -> NDArray[np.int32]:
        """Draw a phrase for each row: a single word with a probability of `_WORD_SHARE`."""
        words, total = self.augmenter.num_words, self.augmenter.num_phrases
        draw = rng.random((2, count), dtype=np.float32)
        share = _WORD_SHARE if 0 < words < total else float(words > 0)
        single = draw[1] < share
        index = np.where(single, draw[0] * words, words + draw[0] * (total - words))
        return np.minimum(index, max(0, total - 1)).astype(np.int32)

    def draw_partners(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw the rows that follow each row in a paragraph, from the same corpus and within the length limit."""
        store, limit = self.augmenter.store, self.augmenter.max_length
        corpora = self.augmenter.corpora
        strides = rng.integers(1, max(2, count), size=_MOST_JOINED - 1)
        number = rng.integers(2, _MOST_JOINED + 1, size=count, dtype=np.int8)
        partners = np.full((_MOST_JOINED - 1, count), -1, dtype=np.int64)
        rows = np.flatnonzero(self.content == _JOINED)
        totals = [side.lengths[rows] for side in (store.source, store.target)]
        fits = np.ones(len(rows), dtype=bool)
        for index, stride in enumerate(strides.tolist()):
            others = (rows + stride) % count
            totals = [
                total + side.lengths[others]
                for total, side in zip(totals, (store.source, store.target), strict=True)
            ]
            fits &= (number[rows] > index + 1) & (corpora[others] == corpora[rows])
            fits &= (totals[0] <= limit) & (totals[1] <= limit)
            partners[index, rows[fits]] = others[fits]
        return partners

    def lengths(self) -> tuple[Indices, Indices]:
        """Return the number of tokens of source and target of each row, end symbol included: two arrays (N,).

        The numbers are exact for phrases and joined sentences; otherwise the mean change of the operation is added.
        """
        growth, limit = self.augmenter.growth, self.augmenter.max_length
        sides = []
        for side, ragged in enumerate((self.augmenter.store.source, self.augmenter.store.target)):
            lengths = ragged.lengths.astype(np.float64)
            for partners in self.partners:
                lengths += np.where(partners >= 0, ragged.lengths[partners], 0)
            if self.augmenter.table is not None and self.augmenter.num_phrases:
                phrases = self.augmenter.table.lengths[side][self.phrases]
                lengths = np.where(self.content == _PHRASE, phrases, lengths)
            lengths[self.case == _CAPITALS] *= growth.capitals[side]
            if side == 0:
                lengths[self.case == _LOWER] *= growth.lower
                lengths[self.terms] += _HINT_TOKENS
            lengths[self.copy] += growth.copied[side]
            rounded = np.rint(lengths).astype(np.int64)
            sides.append(np.maximum(1, np.where(rounded > limit, ragged.lengths, rounded)) + 1)
        return sides[0], sides[1]

    def changed(self, rows: Indices) -> list[bool]:
        """Return whether each of the given rows is augmented."""
        switches = (self.mark, self.typo, self.copy, self.terms, self.placeholders)
        flags = (self.content[rows] > 0) | (self.case[rows] > 0) | np.any([switch[rows] for switch in switches], 0)
        return [bool(flag) for flag in flags]

    def texts(self, row: int) -> Texts:
        """Return the texts of a row in this epoch."""
        augmenter = self.augmenter
        rng = Random(f"{augmenter.seed} {self.epoch} {row}")
        source, target = self.content_of(row)
        case = int(self.case[row])
        if self.mark[row]:
            source, target = change_end_mark(source, target, augmenter.languages)
        if self.typo[row]:
            source = misspell(source, rng, augmenter.languages[0])
        if case:
            source, target = _CHANGES[case](source, target, augmenter.languages)
        if self.copy[row]:
            scripts = augmenter.growth.scripts
            source, target = add_copy(source, target, rng, augmenter.translations, scripts, augmenter.languages)
        return source, target

    def content_of(self, row: int) -> Texts:
        """Return the pair of a row, the phrase that replaces it, or the paragraph that it begins."""
        augmenter = self.augmenter
        if self.content[row] == _PHRASE and augmenter.table is not None:
            return augmenter.table.pair(int(self.phrases[row]))
        rows = [row, *(partner for partner in self.partners[:, row].tolist() if partner >= 0)]
        pairs = [augmenter.pair(index) for index in rows]
        joins = [sentence_separator(language) for language in augmenter.languages]
        return joins[0].join(pair[0] for pair in pairs), joins[1].join(pair[1] for pair in pairs)


_CHANGES: dict[int, Callable[[str, str, Texts], Texts]] = {
    _CAPITALS: to_capitals,
    _LOWER: lower_source,
    _SMALL_FIRST: drop_capital,
}


@dataclass(frozen=True)
class Augmenter:
    """Settings and text of the augmentation; draws the decisions of every epoch.

    Attributes:
        rates: shares of the changes.
        texts, store: training text, and its token ids.
        languages: languages of source and target.
        seed: seed of the training.
        max_length: longest side in tokens.
        table: mined words and phrases; None if they are not used.
        growth: mean changes of the lengths.
    """

    rates: AugmentRates
    texts: TextStore
    store: TokenStore
    languages: Texts
    seed: int
    max_length: int
    table: PhraseTable | None
    growth: Growth

    def plan(self, epoch: int) -> AugmentPlan:
        """Draw the decisions of an epoch."""
        return AugmentPlan(self, epoch)

    @property
    def corpora(self) -> NDArray[np.uint8]:
        """Corpus of each row (N,)."""
        corpora: NDArray[np.uint8] = self.texts.corpora[self.store.rows]
        return corpora

    @property
    def num_words(self) -> int:
        """Number of mined single words."""
        return self.table.words if self.table else 0

    @property
    def num_phrases(self) -> int:
        """Number of mined words and phrases."""
        return len(self.table.lengths[0]) if self.table else 0

    @property
    def translations(self) -> dict[str, str]:
        """Translation of each mined single word, both in lower case."""
        return self.table.translations if self.table else {}

    def pair(self, row: int) -> Texts:
        """Return the texts of a row of the token store."""
        return self.sides([row])[0]

    def sides(self, rows: Sequence[int]) -> list[Texts]:
        """Return the texts of rows of the token store."""
        lines = [int(self.store.rows[row]) for row in rows]
        return list(zip(self.texts.text(0, lines), self.texts.text(1, lines), strict=True))
