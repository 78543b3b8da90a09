"""The vocabulary and the token ids of a run, or of a run to be, in numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.data.labelled import split_texts
from manyheads.data.stream import TokenStream
from manyheads.data.texts import TextStore
from manyheads.doctor.before.tokens import RARE, SideTokens, Vocabulary, length_findings, side_findings
from manyheads.doctor.evidence import Example
from manyheads.doctor.report import Finding
from manyheads.runs.training_tasks import TrainingTask
from manyheads.tasks.classification import longest_text
from manyheads.text.interface import lower
from manyheads.text.normalize import unify
from manyheads.text.tokenizer import SPECIALS, UNK, Tokenizer

__all__ = ["side_tokens", "token_counts", "token_findings", "vocabularies", "vocabulary_of"]

SAMPLE = 2_000  # texts of a side that are encoded once more
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
SHOWN = 3


def token_findings(kind: TrainingTask) -> Iterator[Finding]:
    """What the tokenizers make of the text, and what is too long."""
    for name, tokenizer, texts in sides(kind):
        yield from side_findings(side_tokens(name, tokenizer, texts))
    limit, store = longest_text(kind.config), kind.store
    if kind.config.task == "translation":
        whole = len(store) + kind.too_long
        yield from length_findings(kind.too_long, whole, kind.config.data.max_length, dropped=True)
    elif kind.config.task == "classification" and not isinstance(store, TokenStream):
        lengths = store.source.lengths
        yield from length_findings(int((lengths > limit).sum()), len(lengths), limit, dropped=False)


def sides(kind: TrainingTask) -> Iterator[tuple[str, Tokenizer, Sequence[str]]]:
    """The sides of train and of the validation set: name, tokenizer, a sample of its texts."""
    valid, tokenizers = kind.corpus.valid, kind.tokenizers
    match kind.config.task:
        case "translation":
            for place, (side, tokenizer) in enumerate(
                (("source", tokenizers.source), ("target", tokenizers.target))
            ):
                yield f"train, {side}", tokenizer, sample(kind.corpus.train, place)
                held_out = [(pair.source, pair.target)[place] for pair in valid[:SAMPLE]]
                yield f"valid, {side}", tokenizer, held_out
        case "classification":
            for name, texts in (
                ("train", sample(kind.corpus.train, 0)),
                ("valid", [pair.source for pair in valid[:SAMPLE]]),
            ):
                yield name, tokenizers.source, [part for text in texts for part in split_texts(text)]
        case _:
            yield "train", tokenizers.target, sample(kind.corpus.train, 1)
            yield "valid", tokenizers.target, [pair.target for pair in valid[:SAMPLE]]


def sample(texts: TextStore, side: int) -> Sequence[str]:
    """Texts of a side, evenly spread."""
    return texts.sides(SAMPLE)[side]


def side_tokens(name: str, tokenizer: Tokenizer, texts: Sequence[str]) -> SideTokens:
    """Texts as tokens, and back."""
    rows = tokenizer.encode(texts)
    changed, whole = [], 0
    for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=1):
        if UNK in row or not text.strip():
            continue
        whole += 1
        back = tokenizer.decode(row)
        if as_compared(back, tokenizer) != as_compared(text, tokenizer):
            changed.append(Example(number, f"{text} -> {back}"))
    return SideTokens(
        name=name,
        tokens=sum(map(len, rows)),
        unknown=sum(list(row).count(UNK) for row in rows),
        texts=whole,
        changed=len(changed),
        examples=changed[:SHOWN],
    )


def as_compared(text: str, tokenizer: Tokenizer) -> str:
    """What a tokenizer promises to give back: of words and pieces not the blanks, of lower-cased text no case."""
    text = lower(text) if tokenizer.lowercase else text
    return unify(text) if tokenizer.keep_space else "".join(text.split())


def vocabularies(kind: TrainingTask) -> Iterator[Vocabulary]:
    """The vocabularies of subwords, and how often their pieces come in train."""
    if kind.config.tokenizer.kind not in ("bpe", "unigram"):
        return
    for name, tokenizer, counts in token_counts(kind):
        yield vocabulary_of(name, tokenizer, counts)


def vocabulary_of(name: str, tokenizer: Tokenizer, counts: NDArray[np.int64]) -> Vocabulary:
    """One vocabulary, by how often each token comes (V,)."""
    usable = [place for place, piece in numbered(tokenizer) if usable_piece(piece)]
    found = counts[usable]
    return Vocabulary(name, len(usable), int((found < RARE).sum()), int((found == 0).sum()), int(counts.sum()))


def numbered(tokenizer: Tokenizer) -> Iterator[tuple[int, str]]:
    """Every id that is no mark, and its piece."""
    ids = range(len(SPECIALS), tokenizer.size)
    yield from zip(ids, tokenizer.pieces(ids), strict=True)


def usable_piece(piece: str) -> bool:
    """Whether a piece is there because it was asked for: neither a byte nor a single character, which all are."""
    return not BYTE.fullmatch(piece) and len(piece.strip("▁")) > 1


def token_counts(kind: TrainingTask) -> Iterator[tuple[str, Tokenizer, NDArray[np.int64]]]:
    """How often each token comes in train: name of the vocabulary, tokenizer, counts (V,)."""
    tokenizers, store = kind.tokenizers, kind.store
    if isinstance(store, TokenStream):
        yield "vocabulary", tokenizers.target, counted(store.tokens, tokenizers.target)
    elif kind.config.task == "classification":
        yield "vocabulary", tokenizers.source, counted(store.source.values, tokenizers.source)
    elif kind.config.task == "masked-lm":
        yield "vocabulary", tokenizers.source, counted(store.target.values, tokenizers.source)
    elif tokenizers.joint:
        both = counted(store.source.values, tokenizers.source)
        yield "vocabulary", tokenizers.source, both + counted(store.target.values, tokenizers.target)
    else:
        yield "source vocabulary", tokenizers.source, counted(store.source.values, tokenizers.source)
        yield "target vocabulary", tokenizers.target, counted(store.target.values, tokenizers.target)


def counted(ids: NDArray[np.int32], tokenizer: Tokenizer) -> NDArray[np.int64]:
    """How often each id comes (V,)."""
    return np.bincount(ids, minlength=tokenizer.size)
