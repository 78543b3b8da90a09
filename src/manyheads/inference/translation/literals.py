"""Literals, which are copied: the parts of a line between them, and sentences with symbols in their place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from bitext.letters import has_letters
from bitext.literals import Kinds, layout_kinds, literal_kinds, literals_of
from bitext.unicode import known
from manyheads.text.reserved import KEEP_SYMBOLS
from manyheads.text.tokenizer import Tokenizer

_BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="  # marks before a literal that are copied with it
_ORDERED = re.compile(r"[<\[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]])")  # tags, links, emphasis, codes
_BRANCH = re.compile(r",[^{}\\]*\{|\}[^{}\\]*[{}]")  # what begins, parts or ends the branches of a message
_AFTER = re.compile(r"[^\w\s<{@$%]*")  # marks after a literal, likewise
_NO_BLANK_AFTER, _NO_BLANK_BEFORE = "([{«„“‚‘¿¡", ".,;:!?…)]}»”’。、，！？"


def spans_to_translate(text: str, kinds: Kinds = literal_kinds) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the parts of a line between literals, without white space at the ends.

    Parts without a letter are left out: numbers and marks are the same in both languages.

    Args:
        text: the line.
        kinds: `literal_kinds` or `layout_kinds`.
    """
    literals = literals_of(text, kinds)
    borders = [0, *(border for span in literals for border in span), len(text)]
    spans = []
    for index in range(0, len(borders), 2):
        start, end = borders[index : index + 2]
        if index and not text[start - 1].isspace() and (marks := _AFTER.match(known(text), start, end)):
            start = marks.end()
        part = text[start:end]
        if end < len(text) and not text[end].isspace():
            part = part.rstrip(_BEFORE)
        if has_letters(part):
            first = start + len(part) - len(part.lstrip())
            spans.append((first, first + len(part.strip())))
    return spans


@dataclass(frozen=True)
class Sentence:
    """A part of a line between marks of its layout, with literals inside.

    Attributes:
        start: offset of the part in the line.
        text: the part.
        literals: (start, end) offsets of the literals in the part; those without a letter between them are one.
    """

    start: int
    text: str
    literals: list[tuple[int, int]]

    @property
    def ordered(self) -> bool:
        """Whether the literals must stay in their order, as tags must."""
        return any(_ORDERED.match(self.text, start) for start, _ in self.literals)

    @property
    def texts(self) -> list[str]:
        """The texts before, between and after the literals."""
        borders = [0, *chain.from_iterable(self.literals), len(self.text)]
        return [self.text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True)]

    def within(self, start: int, end: int) -> Sentence:
        """Return the part from `start` to `end` of this one."""
        literals = [
            (first - start, last - start) for first, last in self.literals if start <= first and last <= end
        ]
        return Sentence(self.start + start, self.text[start:end], literals)

    def marked_ids(self, tokenizer: Tokenizer) -> list[int] | None:
        """Return the tokens of the part with symbols in the place of its literals; None if it has too many."""
        if len(self.literals) > len(KEEP_SYMBOLS):
            return None
        first, *others = tokenizer.encode(self.texts)
        marked = ([tokenizer.reserved_id(symbol), *ids] for symbol, ids in zip(KEEP_SYMBOLS, others, strict=False))
        return [*first, *chain.from_iterable(marked)]

    def is_complete(self, tokenizer: Tokenizer, tokens: Sequence[int]) -> bool:
        """Return whether an output holds the symbol of each literal once; `tokenizer` is that of the target."""
        numbers = _split_at_symbols(tokenizer, tokens)[1]
        return (numbers if self.ordered else sorted(numbers)) == [*range(len(self.literals))]

    def restore(self, tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
        """Return the text of an output, with the literals of the part in the place of their symbols."""
        runs, numbers = _split_at_symbols(tokenizer, tokens)
        text, *others = (tokenizer.decode(run) for run in runs)
        for number, after in zip(numbers, others, strict=True):
            start, end = self.literals[number]
            tag = self.text[end - 1] == ">"
            if text:
                text += _blank(self.text[:start][-1:], text[-1], _NO_BLANK_AFTER, tag=tag)
            text += self.text[start:end]
            if after:
                text += _blank(self.text[end : end + 1], after[0], _NO_BLANK_BEFORE, tag=tag) + after
        return text


def sentences_with_literals(line: str) -> list[Sentence]:
    """Return the parts of a line that have literals inside, and letters beside them.

    Where braces are closed in another literal, the texts are branches of a message, and no sentence together.
    """
    literals = literals_of(line)
    found = []
    for start, end in spans_to_translate(line, layout_kinds) if literals else ():
        spans: list[tuple[int, int]] = []
        for first, last in literals:
            if first < end and start < last:
                if spans and not has_letters(line[spans[-1][1] : first]):
                    first = spans.pop()[0]
                spans.append((first, last))
        if not spans or spans[0][0] < start or end < spans[-1][1]:
            continue
        sentence = Sentence(start, line[start:end], [(first - start, last - start) for first, last in spans])
        marks = [line[slice(*span)] for span in spans]
        branches = any(mark.count("{") != mark.count("}") and _BRANCH.search(mark) for mark in marks)
        if not branches and has_letters("".join(sentence.texts)):
            found.append(sentence)
    return found


def _split_at_symbols(tokenizer: Tokenizer, tokens: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Return the runs of tokens around the symbols of kept texts, and the numbers of these symbols from 0."""
    ids = [tokenizer.reserved[symbol] for symbol in KEEP_SYMBOLS]
    runs: list[list[int]] = [[]]
    numbers = []
    for token in tokens:
        if token in ids:
            numbers.append(ids.index(token))
            runs.append([])
        else:
            runs[-1].append(token)
    return runs, numbers


def _blank(source: str, output: str, no_blank: str, *, tag: bool) -> str:
    """Return the separator of a kept text from the output beside it: a blank, or nothing.

    Args:
        source: character beside the text in the source; "" at its border.
        output: character beside the text in the output.
        no_blank: characters that no blank separates from a word on this side.
        tag: whether the text is a tag, which can be joined to letters of any script.
    """
    source, output = known(source), known(output)
    joined = source and not source.isspace() and (tag or unicodedata.east_asian_width(source) not in "WF")
    if (joined and (source.isalnum() or not output.isalnum())) or output in no_blank:
        return ""
    return " "
