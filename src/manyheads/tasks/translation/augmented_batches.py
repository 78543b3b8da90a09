"""Batches of augmented pairs (`data.augment`, `data.terms`): phrases of a run, lengths of an epoch, token ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, repeat
from random import Random

import numpy as np
from numpy.typing import NDArray

from bitext.languages import case_rules, lower, upper
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.augment import Augmenter, AugmentPlan, AugmentRates, Growth, PhraseTable
from manyheads.data.augment_copies import make_copy, other_scripts
from manyheads.data.augment_phrases import mine_phrases
from manyheads.data.augment_text import add_placeholders
from manyheads.data.store import TextStore, TokenStore
from manyheads.data.training_text import longest_side
from manyheads.inference.translation.literals import knows_placeholders
from manyheads.reports import Listener
from manyheads.tasks.translation.term_hints import TermHints, link_words
from manyheads.tensors.pairs import Ids
from manyheads.text.reserved import TERM_SYMBOLS, remove_noncharacters
from manyheads.text.tokenizer import UNK, Tokenizer, TokenizerPair
from manyheads.training.batch_sources import PairBatches

_RATES = AugmentRates()  # at data.augment = 1
_MINING = 2  # version of the phrase mining; a new version makes old caches stale
_NUM_SAMPLE_PAIRS = 1_000  # pairs, and made-up texts, on which lengths are measured

Indices = NDArray[np.int64]


class AugmentedBatches(PairBatches):
    """Makes batches of pairs that are augmented anew in each epoch."""

    def __init__(self, config: Config, tokenizers: TokenizerPair, augmenter: Augmenter, hints: TermHints) -> None:
        super().__init__(config, augmenter.texts, augmenter.store, tokenizers)
        self.augmenter, self.hints = augmenter, hints
        self.planned = lru_cache(2)(self.plan_epoch)  # two: the next epoch is planned before one ends

    def epoch(self, number: int, /) -> EpochBatches:
        """Return the maker of the batches of an epoch."""
        return self.planned(number)

    def plan_epoch(self, number: int) -> EpochBatches:
        """Draw the changes of an epoch."""
        return EpochBatches(self, self.augmenter.plan(number))


class EpochBatches(PairBatches):
    """Makes the batches of one epoch.

    A row whose augmented text is longer than `data.max_length`, or holds a character that the vocabulary cannot
    write, keeps its original text.
    """

    def __init__(self, maker: AugmentedBatches, plan: AugmentPlan) -> None:
        self.texts, self.store, self.tokenizers = maker.texts, maker.store, maker.tokenizers
        self.sampling = maker.sampling
        self.plan, self.hints, self.prefixes = plan, maker.hints, maker.prefixes
        self.lengths = plan.lengths()

    def plain_rows(self, pairs: Indices, rng: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """Return the token ids of these pairs: of their new texts where they are augmented."""
        changed = [row for row, flag in zip(pairs.tolist(), self.plan.changed(pairs), strict=True) if flag]
        texts = {row: self.new_texts(row) for row in changed}
        source = self.tokenizers.source.encode_marked([texts[row][0] for row in changed])
        target = self.tokenizers.target.encode_marked([texts[row][1] for row in changed])
        new = {row: ids for row, *ids in zip(changed, source, target, strict=True) if self.fits(row, *ids)}
        if not self.sampling:
            own = self.store
            return [
                (new[row][0], new[row][1]) if row in new else (own.source[row], own.target[row])
                for row in pairs.tolist()
            ]
        own_texts = self.plan.augmenter.sides(pairs.tolist())
        sides = [
            texts[row] if row in new else (remove_noncharacters(source), remove_noncharacters(target))
            for row, (source, target) in zip(pairs.tolist(), own_texts, strict=True)
        ]
        seeds = rng.integers(2**31, size=2).tolist()
        sampled = self.tokenizers.source.encode_marked([side[0] for side in sides], seeds[0])
        sampled_targets = self.tokenizers.target.encode_marked([side[1] for side in sides], seeds[1])
        return list(zip(sampled, sampled_targets, strict=True))

    def new_texts(self, row: int) -> tuple[str, str]:
        """Return the augmented texts of a row, with hints or placeholders."""
        source, target = map(remove_noncharacters, self.plan.texts(row))
        rng = Random(f"terms {self.plan.augmenter.seed} {self.plan.epoch} {row}")
        if self.plan.terms[row]:
            return self.hints.add(source, target, rng)
        if self.plan.placeholders[row]:
            augmenter = self.plan.augmenter
            return add_placeholders(source, target, rng, augmenter.translations, augmenter.languages)
        return source, target

    def fits(self, row: int, source: Sequence[int], target: Sequence[int]) -> bool:
        """Return whether new token ids can replace the original ids of a row."""
        limit = self.plan.augmenter.max_length
        known = (UNK not in source or UNK in self.store.source[row]) and (
            UNK not in target or UNK in self.store.target[row]
        )
        return known and 0 < len(source) <= limit and 0 < len(target) <= limit


def augmented_batches(
    config: Config,
    run: RunDirectory,
    store: tuple[TextStore, TokenStore],
    tokenizers: TokenizerPair,
    listener: Listener,
) -> AugmentedBatches:
    """Return the batches for `data.augment` and `data.terms`; phrases are mined once and stored in the run."""
    texts, tokens = store
    if config.data.terms:
        tokenizers.source.reserved_id(TERM_SYMBOLS[0])  # a vocabulary of another run may lack it
    table, links = _phrase_table(run, texts, config.languages, tokenizers, listener)
    rates = replace(_RATES.scaled(config.data.augment or 0.0), terms=config.data.terms)
    if not knows_placeholders(tokenizers):
        rates = replace(rates, placeholders=0.0)
    augmenter = Augmenter(
        rates=rates,
        texts=texts,
        store=tokens,
        languages=config.languages,
        seed=config.training.seed,
        max_length=longest_side(config),
        table=table,
        growth=_measure_growth(texts, config.languages, tokenizers),
    )
    return AugmentedBatches(
        config, tokenizers, augmenter, TermHints(link_words(links, config.languages), config.languages)
    )


def _phrase_table(
    run: RunDirectory, texts: TextStore, languages: tuple[str, str], tokenizers: TokenizerPair, listener: Listener
) -> tuple[PhraseTable, list[Pair]]:
    """Return the words and phrases of a run, and the links of words; stored ones of the same text are reused."""
    folder = run.path / "cache" / "phrases"
    rules = [rules for rules in map(case_rules, languages) if any(rules)]
    key = hashlib.sha256(json.dumps([_MINING, texts.sha256, *rules]).encode()).hexdigest()
    if not TextStore.has(folder, key):
        with saving("the phrases", folder, ""), listener.phase("mining words and phrases"):
            folder.parent.mkdir(parents=True, exist_ok=True)
            mined = mine_phrases(*texts.sides(), languages)
            details = {"words": len(mined.words), "phrases": len(mined.phrases)}
            rows = [[*mined.words, *mined.phrases, *mined.links]]
            TextStore.build(folder, rows, key=key, details=lambda: details)
    stored = TextStore(folder)
    sources, targets = (list(side) for side in stored.sides())
    words, phrases = (int(stored.details[name]) for name in ("words", "phrases"))
    listener.message(f"augmentation: {words:,} words and {phrases:,} phrases with their translations")
    end = words + phrases
    lengths = _lengths_of(tokenizers.source, sources[:end]), _lengths_of(tokenizers.target, targets[:end])
    translations = {
        lower(source, languages[0]): lower(target, languages[1])
        for source, target in zip(sources[:words], targets[:words], strict=True)
    }
    links = [*map(Pair, sources[end:], targets[end:], repeat(0))]
    return PhraseTable(stored, words, lengths, translations), links


def _lengths_of(tokenizer: Tokenizer, texts: Sequence[str]) -> Indices:
    return np.array([len(ids) for ids in tokenizer.encode(texts)] if texts else [], dtype=np.int64)


def _measure_growth(texts: TextStore, languages: tuple[str, str], tokenizers: TokenizerPair) -> Growth:
    """Measure on evenly spaced pairs, and on made-up texts, how the operations change the number of tokens."""
    rng, sides = Random(0), [list(side) for side in texts.sides(_NUM_SAMPLE_PAIRS)]
    scripts = other_scripts(chain(*sides))
    copied = [make_copy(rng, scripts) for _ in range(_NUM_SAMPLE_PAIRS)]
    capitals, small, added = [], [], []
    for tokenizer, sample, language in zip((tokenizers.source, tokenizers.target), sides, languages, strict=True):
        plain = max(1, int(_lengths_of(tokenizer, sample).sum()))
        capitals.append(float(_lengths_of(tokenizer, [upper(text, language) for text in sample]).sum()) / plain)
        small.append(float(_lengths_of(tokenizer, [lower(text, language) for text in sample]).sum()) / plain)
        added.append(float(_lengths_of(tokenizer, copied).mean()))
    return Growth((capitals[0], capitals[1]), small[0], (added[0], added[1]), scripts)
