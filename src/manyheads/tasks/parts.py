"""Splitting of a line into parts that are translated separately, and joining of the translated parts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from manyheads.data.literals import spans_to_translate
from manyheads.text.sentences import Span, pieces_within, sentence_spans
from manyheads.text.tokenizer import Tokenizer

__all__ = ["Line", "Split", "Splitter", "blank_between"]

Split = Literal["auto", "sentences", "none"]


@dataclass(frozen=True)
class Line:
    """A line cut into parts.

    Attributes:
        text: the line.
        spans: (start, end) of each part in the line. Blank space and copied text lie outside of the spans.
        parts: token ids of each part.
        unsplit: whether the line was not split; its outer blank space is then not restored.
        cut_sentences: number of sentences that were cut in their middle.
        capitals: whether the output of each part is written in capitals; empty without `search.lower_capitals`.
    """

    text: str
    spans: list[Span]
    parts: list[list[int]]
    unsplit: bool
    cut_sentences: int = 0
    capitals: tuple[bool, ...] = ()

    def join(self, outputs: Iterable[str]) -> str:
        """Join the outputs of the parts, with the blank space of the line around and between them."""
        return "".join(self.stream([output] if output else [] for output in outputs))

    def holds(self, phrase: str, translation: str) -> bool:
        """Return whether a translation of the line holds a phrase, in capitals where the line is."""
        return phrase in translation or (any(self.capitals) and phrase.upper() in translation)

    def stream(self, outputs: Iterable[Iterable[str]]) -> Iterator[str]:
        """Yield the pieces of `join` for outputs that arrive in pieces, none of them empty."""
        if not self.parts and self.text.strip():
            yield self.text
        if not self.unsplit and self.spans:
            yield from filter(None, [self.text[: self.spans[0][0]]])
        last = ""
        for index, output in enumerate(outputs):
            pieces = map(str.upper, output) if self.capitals and self.capitals[index] else iter(output)
            first = next(pieces, "")
            if index:
                yield from filter(None, [self.between(index, last, first[:1])])
            for piece in filter(None, chain([first], pieces)):
                yield piece
                last = piece[-1]
        if not self.unsplit and self.spans:
            yield from filter(None, [self.text[self.spans[-1][1] :]])

    def between(self, part: int, last: str, first: str) -> str:
        """Return the blank space before the output of a part.

        Args:
            part: index of the part.
            last: last character of the output before.
            first: first character of the output.
        """
        start, end = self.spans[part - 1][1], self.spans[part][0]
        return self.text[start:end] or blank_between(self.text[start - 1], last, first)


def blank_between(mark: str, last: str, first: str) -> str:
    """Return a blank for two parts without a blank between them, if the target language writes one, else "".

    Args:
        mark: last character of the first part; after a letter or digit, a word was cut, and no blank is added.
        last: character before, in the translation.
        first: character after, in the translation.
    """
    wide = any(
        unicodedata.east_asian_width(character) in "WF" and not is_hangul(character) for character in last + first
    )
    return "" if mark.isalnum() or wide or not (last and first) else " "


def is_hangul(character: str) -> bool:
    """Return whether a character is a Korean syllable; Korean is written with blanks between words."""
    return "\uac00" <= character <= "\ud7a3"


@dataclass(frozen=True)
class Splitter:
    """Splits lines into the parts that are translated separately.

    Attributes:
        tokenizer: tokenizer of the source.
        language: language of the source.
        split: "sentences" splits all sentences; "auto" does so only if the line is longer than `trained_length`;
            "none" leaves the line unsplit.
        trained_length: maximum length of the training data in tokens; a longer sentence is cut at commas, else
            between words, else anywhere, unless `split` is "none".
        longest: limit of the model in tokens.
        copy_literals: see the setting `search.copy_literals`.
        lower_capitals: see the setting `search.lower_capitals`.
    """

    tokenizer: Tokenizer
    language: str
    split: Split
    trained_length: int
    longest: int
    copy_literals: bool = False
    lower_capitals: bool = False

    @property
    def limit(self) -> int:
        """Maximum length of a part in tokens."""
        return min(self.trained_length, self.longest)

    def lines(self, texts: Sequence[str]) -> list[Line]:
        """Split lines."""
        return [self.line(text, ids) for text, ids in zip(texts, self.encode(texts), strict=True)]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts; with `lower_capitals`, texts in capitals are encoded as they are written in a sentence."""
        if self.lower_capitals:
            texts = [sentence_case(text, self.language) if in_capitals(text) else text for text in texts]
        return self.tokenizer.encode(texts)

    def line(self, text: str, ids: list[int]) -> Line:
        """Split a line, given the token ids of the complete line."""
        spans: list[Span] = []
        parts: list[list[int]] = []
        cut_sentences = 0
        stretches = self.stretches(text)
        nothing_copied = stretches == [(0, len(text))]
        if nothing_copied and self.fits(ids):
            return Line(text, stretches, [ids], unsplit=True, capitals=self.capitals(text, stretches))
        for start, end in stretches:
            stretch = text[start:end]
            row = ids if nothing_copied else self.encode([stretch])[0]
            pieces, rows, cuts = ([(0, end - start)], [row], 0) if self.fits(row) else self.sentences(stretch, row)
            spans += [(start + first, start + last) for first, last in pieces]
            parts += rows
            cut_sentences += cuts
        return Line(text, spans, parts, False, cut_sentences, self.capitals(text, spans))

    def fits(self, ids: list[int]) -> bool:
        """Return whether a text of these tokens is left unsplit."""
        return self.split == "none" or (self.split == "auto" and len(ids) <= self.limit)

    def capitals(self, text: str, spans: Sequence[Span]) -> tuple[bool, ...]:
        """Return which parts are in capitals."""
        return tuple(map(in_capitals, slices(text, spans))) if self.lower_capitals else ()

    def stretches(self, text: str) -> list[Span]:
        """Return the spans of a line between copied texts; the span of the complete line if nothing is copied."""
        if not self.copy_literals or not text.strip():
            return [(0, len(text))]
        spans = spans_to_translate(text)
        return [(0, len(text))] if slices(text, spans) == [text.strip()] else spans

    def sentences(self, text: str, ids: list[int]) -> tuple[list[Span], list[list[int]], int]:
        """Return the spans of sentences or of their pieces, the tokens of each, and the number of cut sentences."""

        def count(texts: Sequence[str]) -> list[int]:
            return [len(row) for row in self.encode(texts)]

        spans: list[Span] = []
        parts: list[list[int]] = []
        cut_sentences = 0
        sentences = sentence_spans(text, self.language)
        rows = [ids] if sentences == [(0, len(text))] else self.encode(slices(text, sentences))
        for sentence, row in zip(sentences, rows, strict=True):
            pieces = [sentence] if len(row) <= self.limit else pieces_within(text, sentence, self.limit, count)
            spans += pieces
            parts += [row] if len(row) <= self.limit else self.encode(slices(text, pieces))
            cut_sentences += len(pieces) > 1
        return spans, parts, cut_sentences


def in_capitals(text: str) -> bool:
    """Return whether a text has two letters or more, all of them capitals."""
    letters = list(filter(str.isalpha, text))
    return len(letters) > 1 and all(map(str.isupper, letters))


def sentence_case(text: str, language: str) -> str:
    """Return a text in lower case, but for the first letter of each sentence."""
    pieces, end = [], 0
    for start, last in sentence_spans(text, language):
        pieces += [text[end:start], text[start:last].capitalize()]
        end = last
    return "".join([*pieces, text[end:]])


def slices(text: str, spans: Sequence[Span]) -> list[str]:
    """Return the text of each span."""
    return [text[start:end] for start, end in spans]
