"""Splitting of a line into parts that are translated separately, and joining of the translated parts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from manyheads.text.sentences import Span, pieces_within, sentence_spans
from manyheads.text.tokenizer import Tokenizer

__all__ = ["Line", "Split", "blank_between", "split_line"]

Split = Literal["auto", "sentences", "none"]


@dataclass(frozen=True)
class Line:
    """A line cut into parts.

    Attributes:
        text: the line.
        spans: (start, end) of each part in the line; only blank space is outside of the spans.
        parts: token ids of each part.
        unsplit: whether the line was not split; its outer blank space is then not restored.
        cut_sentences: number of sentences that were cut in their middle.
    """

    text: str
    spans: list[Span]
    parts: list[list[int]]
    unsplit: bool
    cut_sentences: int = 0

    def join(self, outputs: Iterable[str]) -> str:
        """Join the outputs of the parts, with the line's own blank space around and between them."""
        return "".join(self.stream([output] if output else [] for output in outputs))

    def stream(self, outputs: Iterable[Iterable[str]]) -> Iterator[str]:
        """Yield the pieces of `join` for outputs that arrive in pieces, none of them empty."""
        if not self.unsplit and self.spans:
            yield from filter(None, [self.text[: self.spans[0][0]]])
        last = ""
        for index, output in enumerate(outputs):
            pieces = iter(output)
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
    """Return a blank between translations of parts without one in the source, if the target language writes one.

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


def split_line(
    text: str,
    ids: list[int],
    tokenizer: Tokenizer,
    language: str,
    *,
    split: Split,
    trained_length: int,
    longest: int,
) -> Line:
    """Split a line into the parts that are translated separately.

    Args:
        text: the line.
        ids: token ids of the line.
        tokenizer: of the source.
        language: of the source.
        split: "sentences" splits all sentences; "auto" does so only if the line is longer than `trained_length`;
            "none" leaves the line unsplit.
        trained_length: maximum length of the training data in tokens; a longer sentence is cut at commas, else
            between words, else anywhere, unless `split` is "none".
        longest: limit of the model in tokens.
    """
    limit = min(trained_length, longest)
    if split == "none" or (split == "auto" and len(ids) <= limit):
        return Line(text, [(0, len(text))], [ids], unsplit=True)

    def count(texts: Sequence[str]) -> list[int]:
        return [len(row) for row in tokenizer.encode(texts)]

    spans: list[Span] = []
    parts: list[list[int]] = []
    cut_sentences = 0
    sentences = sentence_spans(text, language)
    rows = [ids] if sentences == [(0, len(text))] else tokenizer.encode(slices(text, sentences))
    for sentence, row in zip(sentences, rows, strict=True):
        pieces = [sentence] if len(row) <= limit else pieces_within(text, sentence, limit, count)
        spans += pieces
        parts += [row] if len(row) <= limit else tokenizer.encode(slices(text, pieces))
        cut_sentences += len(pieces) > 1
    return Line(text, spans, parts, unsplit=False, cut_sentences=cut_sentences)


def slices(text: str, spans: Sequence[Span]) -> list[str]:
    """Return the text of each span."""
    return [text[start:end] for start, end in spans]
