"""Mine words and short phrases with their translations from pairs of sentences.

IBM model 1 is trained in both directions. Words are taken from the links that both directions choose, phrases from
runs of linked words (Koehn et al. 2003). Memory is bounded by `_MOST_LINKS`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bitext.languages import lower
from bitext.pairs import Pair
from bitext.word_alignment import expected_counts, link_tokens

_MOST_LINKS = 5_000_000  # links between a source and a target token: about 300 MiB
_MOST_TOKENS = 60  # of a side; longer sentences are left out
_PHRASE_PAIRS = 40_000  # pairs that phrases are read from
_ITERATIONS = 5
_LEAST_COUNT = 3  # links of a word, and occurrences of a phrase
_LEAST_SHARE = 0.3  # share of the links of a source word or phrase
_LEAST_INVERSE = 0.1  # share of the links of the target word
_LEAST_LINKED = 0.05  # share of the links of either word of a pair that is a link
_MOST_FREQUENT = 0.02  # share of the tokens that are a source word with links; most articles have none
_LONGEST_SOURCE, _LONGEST_TARGET = 3, 4  # words of a phrase
_MAX_WORDS = 50_000  # most frequent words, and as many phrases
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\S")

_IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class MinedPhrases:
    """Words and phrases with their translations: pairs whose attribute `line` holds their count.

    Attributes:
        words, phrases: the usual translation of each frequent word or phrase.
        links: words that are translations of each other somewhere, rarer ones too, by falling count.
    """

    words: list[Pair]
    phrases: list[Pair]
    links: list[Pair]


class _Side:
    """The tokens of one side of a corpus, as numbers.

    Attributes:
        tokens: number of each token (N,).
        starts: index of the first token of each sentence (P + 1,).
        vocabulary: tokens in lower case, by number.
    """

    def __init__(self, sentences: Sequence[Sequence[str]], language: str) -> None:
        numbers: dict[str, int] = {}
        ids = [numbers.setdefault(lower(token, language), len(numbers)) for tokens in sentences for token in tokens]
        self.tokens: _IntArray = np.array(ids, dtype=np.int64)
        self.lengths: _IntArray = np.array([len(tokens) for tokens in sentences], dtype=np.int64)
        self.starts: _IntArray = np.concatenate([[0], np.cumsum(self.lengths)])
        self.vocabulary = list(numbers)
        self.surfaces = _usual_surfaces(sentences, language)
        self.is_word = np.array([token[0].isalpha() for token in self.vocabulary], dtype=bool)

    def written(self, numbers: Sequence[int]) -> str:
        """Return tokens as text, each in its usual spelling."""
        return " ".join(self.surfaces[self.vocabulary[number]] for number in numbers)


def _usual_surfaces(sentences: Sequence[Sequence[str]], language: str) -> dict[str, str]:
    """Map each lower-case word to its most frequent spelling after another word, by default to lower case."""
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for tokens in sentences:
        for before, token in pairwise(["", *tokens]):
            counts = spellings[lower(token, language)]
            if before[:1].isalpha():
                counts[token] += 1
    return {word: max(sorted(counts), key=counts.__getitem__, default=word) for word, counts in spellings.items()}


def mine_phrases(
    sources: Sequence[str], targets: Sequence[str], languages: tuple[str, str] = ("", "")
) -> MinedPhrases:
    """Mine words and phrases from sentences and their translations.

    Only evenly spaced sentences of a large corpus are used. The result depends on the texts alone, and on
    languages with their own capitals.
    """
    rows = _sample_rows(sources, targets)
    tokenised = [(_TOKEN.findall(sources[row]), _TOKEN.findall(targets[row])) for row in rows]
    usable = [pair for pair in tokenised if all(0 < len(side) <= _MOST_TOKENS for side in pair)]
    if not usable:
        return MinedPhrases([], [], [])
    source, target = (_Side([pair[side] for pair in usable], languages[side]) for side in (0, 1))
    links = _align(source, target)
    words, linked = _linked_words(source, target, links)
    return MinedPhrases(words, _linked_phrases(source, target, links), linked)


def _sample_rows(sources: Sequence[str], targets: Sequence[str]) -> range:
    """Return evenly spaced rows, as many as `_MOST_LINKS` allows, estimated from the lengths of a sample."""
    count = len(sources)
    sample = range(0, count, max(1, count // 1000))
    links = [len(_TOKEN.findall(sources[row])) * len(_TOKEN.findall(targets[row])) for row in sample]
    total = count * sum(links) / max(1, len(links))
    return range(0, count, max(1, int(np.ceil(total / _MOST_LINKS))))


def _align(source: _Side, target: _Side) -> tuple[_IntArray, _IntArray, _IntArray]:
    """Align all sentences: return the pair, source token and target token of each of L links, as indices (L,).

    A token is linked to at most one token of the other side.
    """
    source_tokens, target_tokens = link_tokens(source.lengths, target.lengths)
    width = len(target.vocabulary)
    types, entries = np.unique(
        source.tokens[source_tokens] * width + target.tokens[target_tokens], return_inverse=True
    )
    forward = _learn(entries, types // width, target_tokens)
    backward = _learn(entries, types % width, source_tokens)
    mutual = _best(forward[entries], target_tokens) & _best(backward[entries], source_tokens)
    mutual &= (np.bincount(source_tokens[mutual], minlength=len(source.tokens)) == 1)[source_tokens]
    mutual &= (np.bincount(target_tokens[mutual], minlength=len(target.tokens)) == 1)[target_tokens]
    source_tokens, target_tokens = source_tokens[mutual], target_tokens[mutual]
    order = np.argsort(source_tokens)
    pairs = np.searchsorted(source.starts, source_tokens[order], side="right") - 1
    return pairs, source_tokens[order], target_tokens[order]


def _learn(entries: _IntArray, words: _IntArray, tokens: _IntArray) -> NDArray[np.float64]:
    """Return the probability of each entry given its word of the other side (E,); see `expected_counts`."""
    counts = expected_counts(entries, words, tokens, _ITERATIONS)
    return counts / np.bincount(words, counts)[words]


def _best(scores: NDArray[np.float64], tokens: _IntArray) -> NDArray[np.bool_]:
    highest = np.zeros(int(tokens.max()) + 1)
    np.maximum.at(highest, tokens, scores)
    chosen: NDArray[np.bool_] = scores == highest[tokens]
    return chosen


def _linked_words(
    source: _Side, target: _Side, links: tuple[_IntArray, _IntArray, _IntArray]
) -> tuple[list[Pair], list[Pair]]:
    """Return `MinedPhrases.words` and `MinedPhrases.links`."""
    source_words, target_words = source.tokens[links[1]], target.tokens[links[2]]
    width = len(target.vocabulary)
    types, counts = np.unique(source_words * width + target_words, return_counts=True)
    source_types, target_types = types // width, types % width
    share = counts / np.bincount(source_types, counts)[source_types]
    inverse = counts / np.bincount(target_types, counts)[target_types]
    words = source.is_word[source_types] & target.is_word[target_types]
    usual = words & (counts >= _LEAST_COUNT) & (share >= _LEAST_SHARE) & (inverse >= _LEAST_INVERSE)
    rare = np.bincount(source.tokens)[source_types] <= _MOST_FREQUENT * len(source.tokens)
    linked = words & rare & (counts > 1) & (np.minimum(share, inverse) >= _LEAST_LINKED)

    def pairs_of(accepted: NDArray[np.bool_]) -> list[Pair]:
        return [
            Pair(source.written([word]), target.written([translation]), count)
            for word, translation, count in zip(
                *(values[order][accepted[order]].tolist() for values in (source_types, target_types, counts)),
                strict=True,
            )
        ]

    order = np.lexsort((types, -counts))
    translations: dict[str, Pair] = {}
    for pair in pairs_of(usual):
        translations.setdefault(pair.source, pair)
    return list(translations.values())[:_MAX_WORDS], pairs_of(linked)[:_MAX_WORDS]


def _linked_phrases(source: _Side, target: _Side, links: tuple[_IntArray, _IntArray, _IntArray]) -> list[Pair]:
    """Return the most frequent translation of each phrase of the source, where it is frequent enough."""
    pairs, source_tokens, target_tokens = links
    every = max(1, -(-len(source.lengths) // _PHRASE_PAIRS))
    ends = np.searchsorted(pairs, np.arange(len(source.lengths) + 1))
    counts: defaultdict[tuple[int, ...], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for pair in range(0, len(source.lengths), every):
        first, end = ends[pair], ends[pair + 1]
        linked = dict(zip(source_tokens[first:end].tolist(), target_tokens[first:end].tolist(), strict=True))
        for start, stop, low, high in _spans(linked):
            words, translation = source.tokens[start:stop], target.tokens[low:high]
            if source.is_word[words].all() and target.is_word[translation].all():
                counts[tuple(words.tolist())][tuple(translation.tolist())] += 1
    phrases = []
    for phrase, translations in counts.items():
        usual, count = max(translations.items(), key=lambda item: (item[1], item[0]))
        if count >= _LEAST_COUNT and count >= _LEAST_SHARE * translations.total():
            phrases.append((-count, phrase, usual))
    return [
        Pair(source.written(phrase), target.written(usual), -count)
        for count, phrase, usual in sorted(phrases)[:_MAX_WORDS]
    ]


def _spans(linked: dict[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (start, stop, low, high) of source and target for each phrase: all its words are linked inside it."""
    sources = {target_index: source_index for source_index, target_index in linked.items()}
    for start in linked:
        for stop in range(start + 2, start + _LONGEST_SOURCE + 1):
            if stop - 1 not in linked:
                break
            targets = [linked[index] for index in range(start, stop)]
            low, high = min(targets), max(targets) + 1
            if high - low <= _LONGEST_TARGET and all(
                start <= sources.get(index, start) < stop for index in range(low, high)
            ):
                yield start, stop, low, high
