"""Tokens of a text: unknown ones, round trips, size and use of the vocabulary, and texts that are cut.

Shapes: V vocabulary.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitext.letters import has_text
from manyheads.checks.catalogue import config_finding, run_finding
from manyheads.checks.evidence import QuotedLines, Share
from manyheads.text.interface import lower
from manyheads.text.normalize import unify
from manyheads.text.sampling import BpeSampler
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.tokenizer import EOS, SPECIALS, UNK, Tokenizer
from transformer_doctor.report import Finding

# Share of a held-out side's tokens that are unknown. Of whole words seen twice, 3 % of Multi30k's German are.
_UNKNOWN, _UNKNOWN_WRONG = 0.05, 0.2
_CHANGED = 0.01  # of the texts that hold nothing unknown
_RARE_OCCURRENCES = 5  # occurrences; the embedding of a rarer piece hardly differs from its initial value
_MAX_RARE_SHARE = 0.65  # of the pieces; 0.51 of 8,000 pieces of SST-2
_UNUSED, _MOSTLY_UNUSED = 0.15, 0.5  # of the pieces that are neither bytes nor single characters
_CUT, _CUT_WRONG = 0.05, 0.2
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class SideTokens:
    """Counts of the tokens of one side of a split, or of a sample of it.

    Attributes:
        name: such as "valid, source".
        tokens, unknown: number of tokens, and of unknown ones.
        texts: number of texts without an unknown token.
        changed: texts without an unknown token that differ from the text of their ids; both are quoted.
    """

    name: str
    tokens: int
    unknown: int
    texts: int
    changed: QuotedLines


@dataclass(frozen=True)
class Vocabulary:
    """Counts of the pieces of a vocabulary, without special symbols, bytes and single characters.

    Nor does it count a piece of BPE that never occurs, but from which a longer one that occurs is merged.

    Attributes:
        pieces: number of pieces.
        rare, unused: number of pieces that occur less than `_RARE_OCCURRENCES` times in train, and of
            pieces that never occur.
        tokens: number of tokens of train, on all sides that share the vocabulary.
    """

    name: str
    pieces: int
    rare: int
    unused: int
    tokens: int


def count_side(name: str, tokenizer: Tokenizer, texts: Sequence[str]) -> SideTokens:
    """Encode texts, and decode those without an unknown token."""
    rows = tokenizer.encode(texts)
    changed, decoded = QuotedLines(), 0
    for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=1):
        if UNK in row or not has_text(text):
            continue
        decoded += 1
        round_trip = tokenizer.decode(row)
        if _comparable(round_trip, tokenizer) != _comparable(text, tokenizer):
            changed.add(number, f"{text} -> {round_trip}")
    unknown = sum(list(row).count(UNK) for row in rows)
    return SideTokens(name, sum(map(len, rows)), unknown, decoded, changed)


def _comparable(text: str, tokenizer: Tokenizer) -> str:
    """Return the part of a text that a tokenizer preserves: without blanks where it does not keep them."""
    text = lower(text) if tokenizer.lowercase else text
    return unify(text) if tokenizer.keep_space else "".join(text.split())


def count_tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the frequency of each token in texts (V,)."""
    frequencies = Counter(token for row in tokenizer.encode(texts) for token in row)
    return np.array([frequencies[token] for token in range(tokenizer.size)], np.int64)


def count_vocabulary(name: str, tokenizer: Tokenizer, counts: NDArray[np.int64]) -> Vocabulary:
    """Return the counts of a vocabulary, from the frequency of each token (V,)."""
    ids = range(len(SPECIALS), tokenizer.size)
    pieces = dict(zip(ids, tokenizer.pieces(ids), strict=True))
    may_lack = {*tokenizer.reserved}  # pieces that need not occur
    if isinstance(tokenizer, SubwordTokenizer):
        may_lack |= {f"▁{symbol}" for symbol in tokenizer.symbols}
        if isinstance(tokenizer.sampler, BpeSampler):
            may_lack.update(*(tokenizer.sampler.steps(piece) for token, piece in pieces.items() if counts[token]))
    used = counts[[
        token
        for token, piece in pieces.items()
        if not _BYTE.fullmatch(piece) and len(piece.strip("▁")) > 1 and (counts[token] or piece not in may_lack)
    ]]  # fmt: skip
    return Vocabulary(
        name, len(used), int((used < _RARE_OCCURRENCES).sum()), int((used == 0).sum()), int(counts.sum())
    )


def token_entropy(counts: NDArray[np.int64], ends: int) -> float:
    """Return the loss of a unigram model in nats a token: frequencies (V,), and the number of end marks."""
    counts = counts.copy()
    counts[EOS] += ends
    return entropy(counts.tolist())


def entropy(counts: Iterable[int]) -> float:
    """Return the entropy of a distribution in nats."""
    numbers = [count for count in counts if count > 0]
    total = sum(numbers)
    return -sum(count / total * math.log(count / total) for count in numbers)


def side_findings(side: SideTokens) -> Iterator[Finding]:
    """Yield findings about unknown tokens, and texts that their ids do not decode to."""
    unknown, changed = Share(side.unknown, side.tokens), Share(side.changed.count, side.texts)
    if unknown > _UNKNOWN:
        evidence = f"{side.name}: {unknown} tokens are <unk>"
        yield config_finding("many-unknown", evidence, "error" if unknown > _UNKNOWN_WRONG else None)
    if changed > _CHANGED:
        evidence = f"{side.name}: {changed} texts without an unknown token do not come back{side.changed}"
        yield config_finding("round-trip", evidence)


def size_findings(vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield a finding if the vocabulary is too large for the text."""
    rare = Share(vocabulary.rare, vocabulary.pieces)
    if rare > _MAX_RARE_SHARE:
        evidence = (
            f"{vocabulary.name}: {rare} pieces occur less than {_RARE_OCCURRENCES} times in the "
            f"{vocabulary.tokens:,} tokens of train, {vocabulary.unused:,} of them never"
        )
        yield config_finding("vocabulary-too-large", evidence, frequent=f"{vocabulary.pieces - vocabulary.rare:,}")


def use_findings(vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield a finding about pieces that never occurred in training."""
    unused = Share(vocabulary.unused, vocabulary.pieces)
    if unused > _UNUSED:
        evidence = f"{vocabulary.name}: {unused} pieces never occur in train"
        yield run_finding("unused-vocabulary", evidence, None if unused > _MOSTLY_UNUSED else "note")


def length_findings(longer: int, size: int, limit: int, *, dropped: bool) -> Iterator[Finding]:
    """Yield a finding about texts longer than data.max_length, `longer` of `size` texts."""
    part = Share(longer, size)
    if part > _CUT:
        consequence = "are dropped" if dropped else "are cut"
        evidence = f"train: {part} have more than {limit:,} tokens and {consequence}"
        yield config_finding("cut-or-dropped", evidence, None if part > _CUT_WRONG or dropped else "note")
