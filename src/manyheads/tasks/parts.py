"""A line as the parts that are translated one by one, and the translated parts as a line."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from manyheads.text.sentences import Span, pieces_within, sentence_spans
from manyheads.text.tokenizer import Tokenizer

__all__ = ["Line", "Split", "glue", "split_line"]

Split = Literal["auto", "sentences", "none"]


@dataclass(frozen=True)
class Line:
    """A line cut into parts.

    Attributes:
        text: the line.
        spans: (start, end) of each part in it; between them is blank space, and before and behind them too.
        parts: the token ids of each.
        whole: whether the line is one part, whose blank space outside does not matter.
        within: how many sentences had to be cut in their middle.
    """

    text: str
    spans: list[Span]
    parts: list[list[int]]
    whole: bool
    within: int = 0

    def put_together(self, outputs: Iterable[str]) -> str:
        """The outputs of the parts with the line's own blank space around and between them."""
        return "".join(self.stream([output] if output else [] for output in outputs))

    def stream(self, outputs: Iterable[Iterable[str]]) -> Iterator[str]:
        """As `put_together`, of outputs that come in pieces, none of them empty."""
        if not self.whole and self.spans:
            yield from filter(None, [self.text[: self.spans[0][0]]])
        last = ""
        for place, output in enumerate(outputs):
            pieces = iter(output)
            first = next(pieces, "")
            if place:
                yield from filter(None, [self.between(place, last, first[:1])])
            for piece in filter(None, chain([first], pieces)):
                yield piece
                last = piece[-1]
        if not self.whole and self.spans:
            yield from filter(None, [self.text[self.spans[-1][1] :]])

    def between(self, place: int, last: str, first: str) -> str:
        """What stands before the output of a part, between these two characters."""
        start, end = self.spans[place - 1][1], self.spans[place][0]
        return self.text[start:end] or glue(self.text[start - 1], last, first)


def glue(mark: str, last: str, first: str) -> str:
    """A blank between the translations of parts that had none between them, where the target language wants one.

    Args:
        mark: the last character of the first part: behind a letter, a word was cut, and nothing is put between.
        last: the character before, in the translation.
        first: the character behind.
    """
    wide = any(unicodedata.east_asian_width(one) in "WF" and not is_hangul(one) for one in last + first)
    return "" if mark.isalnum() or wide or not (last and first) else " "


def is_hangul(character: str) -> bool:
    """Whether it is a syllable of Korean, which is written with blanks between words."""
    return "\uac00" <= character <= "\ud7a3"


def split_line(
    text: str, ids: list[int], tokenizer: Tokenizer, language: str, *, split: Split, usual: int, longest: int
) -> Line:
    """Cut a line into the parts that are translated one by one.

    Args:
        text: the line.
        ids: its tokens.
        tokenizer: of the source.
        language: of the source.
        split: "sentences" parts all sentences; "auto" does so only when the line is longer than `usual`; "none"
            leaves the line whole.
        usual: the longest that the model has learned, in tokens: a longer sentence is cut at commas, else between
            words, else anywhere, unless `split` is "none".
        longest: what the model can take.
    """
    limit = min(usual, longest)
    if split == "none" or (split == "auto" and len(ids) <= limit):
        return Line(text, [(0, len(text))], [ids], whole=True)

    def count(texts: Sequence[str]) -> list[int]:
        return [len(row) for row in tokenizer.encode(texts)]

    spans: list[Span] = []
    parts: list[list[int]] = []
    within = 0
    sentences = sentence_spans(text, language)
    rows = [ids] if sentences == [(0, len(text))] else tokenizer.encode(cut_out(text, sentences))
    for sentence, row in zip(sentences, rows, strict=True):
        pieces = [sentence] if len(row) <= limit else pieces_within(text, sentence, limit, count)
        spans += pieces
        parts += [row] if len(row) <= limit else tokenizer.encode(cut_out(text, pieces))
        within += len(pieces) > 1
    return Line(text, spans, parts, whole=False, within=within)


def cut_out(text: str, spans: Sequence[Span]) -> list[str]:
    """What stands in spans of a text."""
    return [text[start:end] for start, end in spans]
