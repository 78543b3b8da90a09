"""Splitting of a line into parts that are translated separately, and joining of the translated parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from bitext.languages import capitalize, upper
from bitext.letters import has_letters, has_text
from bitext.literals import Kinds, layout_kinds, literal_kinds
from bitext.unicode import known
from manyheads.inference.translation.literals import Sentence, spans_to_translate
from manyheads.search.options import SearchOptions, Split
from manyheads.text.sentences import UNSPACED_END, Span, line_spans, pieces_within, sentence_spans
from manyheads.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from manyheads.inference.translation.translator import Translator

_LONGEST_END = 8  # characters at the end of a sentence: its mark, quotation marks and brackets
_CODE = re.compile(r"(`{3,}|~{3,})[^`]*\Z")  # a line that begins a block of code


@dataclass(frozen=True)
class Line:
    """A line cut into parts.

    Attributes:
        text: the line; it may hold line ends.
        spans: (start, end) of each part in the line. White space and copied text lie outside of the spans.
        parts: token ids of each part, at least one.
        cut_sentences: number of sentences that were cut in their middle.
        capitals: whether the output of each part is written in capitals; empty without `search.lower_capitals`.
        placeholders: sentences with placeholders for their literals in the tokens, by the number of their part.
        target: language of the translation, in whose capitals the outputs are written.
    """

    text: str
    spans: list[Span]
    parts: list[list[int]]
    cut_sentences: int = 0
    capitals: tuple[bool, ...] = ()
    placeholders: Mapping[int, Sentence] = field(default_factory=dict)
    target: str = ""

    def part_text(self, part: int) -> str:
        """Return the text of a part."""
        start, end = self.spans[part]
        return self.text[start:end]

    def join(self, outputs: Iterable[str]) -> str:
        """Join the outputs of the parts, with the white space and the copied text around and between them."""
        return "".join(self.stream([output] if output else [] for output in outputs))

    def decode(self, part: int, tokenizer: Tokenizer, ids: Sequence[int]) -> str:
        """Return the text of tokens of a part or its output, with literals in the place of placeholders."""
        sentence = self.placeholders.get(part)
        return tokenizer.decode(ids) if sentence is None else sentence.restore(tokenizer, ids)

    def stream(self, outputs: Iterable[Iterable[str]]) -> Iterator[str]:
        """Yield the pieces of `join` for outputs that arrive in pieces, none of them empty."""
        last, end = "", 0
        for index, output in enumerate(outputs):
            _in_capitals = bool(self.capitals) and self.capitals[index]
            pieces = (upper(piece, self.target) if _in_capitals else piece for piece in output)
            first = next(pieces, "")
            yield from filter(None, [self.between(index, last, first[:1])])
            for piece in filter(None, chain([first], pieces)):
                yield piece
                last = piece[-1]
            end = self.spans[index][1]
        yield from filter(None, [self.text[end:]])

    def between(self, part: int, last: str, first: str) -> str:
        """Return the white space and the copied text before the output of a part.

        Args:
            part: index of the part.
            last: last character of the output before.
            first: first character of the output.
        """
        start, end = self.spans[part - 1][1] if part else 0, self.spans[part][0]
        return self.text[start:end] or _blank_between(self.text[max(0, start - _LONGEST_END) : start], last, first)


def _blank_between(before: str, last: str, first: str) -> str:
    """Return a blank for two parts without a blank between them, if the target language writes one, else "".

    Args:
        before: the end of the first part; where it ends no sentence or clause, a word was cut.
        last: character before, in the translation.
        first: character after, in the translation.
    """
    wide = any(
        unicodedata.east_asian_width(character) in "WF" and not _is_hangul(character)
        for character in known(last + first)
    )
    return " " if UNSPACED_END.search(before) and not wide and last and first else ""


def _is_hangul(character: str) -> bool:
    """Return whether a character is a Korean syllable; Korean is written with blanks between words."""
    return "\uac00" <= character <= "\ud7a3"


@dataclass(frozen=True)
class Splitter:
    """Splits lines into the parts that are translated separately.

    White space stays as it is, and so do line ends within a line: each of its lines is split by itself. A line, a
    sentence or a piece without a letter is copied, unless the tokenizer knows no letters.

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
        target: language of the translations.
    """

    tokenizer: Tokenizer
    language: str
    split: Split
    trained_length: int
    longest: int
    copy_literals: bool = False
    lower_capitals: bool = False
    target: str = ""

    @classmethod
    def of(cls, translator: Translator, options: SearchOptions) -> Self:
        """Return the splitter of the lines of a translator."""
        config, sources = translator.config, translator.sources
        single = options.split == "auto" and sources is not None and sources.single_sentences
        return cls(
            translator.tokenizers.source,
            config.data.source,
            split="sentences" if single else options.split,
            trained_length=config.data.max_length,
            longest=translator.longest_source,
            copy_literals=config.search.copy_literals,
            lower_capitals=config.search.lower_capitals,
            target=config.data.target,
        )

    @property
    def limit(self) -> int:
        """Maximum length of a part in tokens."""
        return min(self.trained_length, self.longest)

    @property
    def kinds(self) -> Kinds:
        """Kinds of literals that are copied."""
        return literal_kinds if self.copy_literals else layout_kinds

    def page_data(self) -> dict[str, Any]:
        """Return the data by which an exported page splits lines, by name (JSON)."""
        return {
            "literals": [kind.for_page() for kind in self.kinds()],
            "lower_capitals": self.lower_capitals,
            "max_length": self.trained_length,
        }

    def lines(self, texts: Sequence[str]) -> list[Line]:
        """Split lines; raises `UsageError` for a text instead of a list of texts."""
        self.tokenizer.refuse_string(texts)
        split = [(text, self.stretches(text)) for text in texts]
        rows = iter(self.encode([stretch for text, spans in split for stretch in _slices(text, spans)]))
        return [self.line(text, spans, [next(rows) for _ in spans]) for text, spans in split]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts; with `lower_capitals`, texts in capitals are encoded as they are written in a sentence."""
        if self.lower_capitals:
            texts = [_sentence_case(text, self.language) if _in_capitals(text) else text for text in texts]
        return self.tokenizer.encode(texts)

    def line(self, text: str, stretches: Sequence[Span], rows: Sequence[list[int]]) -> Line:
        """Split a line, given its stretches and their token ids."""
        spans: list[Span] = []
        parts: list[list[int]] = []
        cut_sentences = 0
        for (start, end), row in zip(stretches, rows, strict=True):
            pieces, ids, cuts = (
                ([(0, end - start)], [row], 0) if self.fits(row) else self.sentences(text[start:end], row)
            )
            for (first, last), piece_ids in zip(pieces, ids, strict=True):
                if piece_ids and self.translates(text[start + first : start + last]):
                    spans.append((start + first, start + last))
                    parts.append(piece_ids)
            cut_sentences += cuts
        return Line(text, spans, parts, cut_sentences, self.capitals(text, spans), target=self.target)

    def fits(self, ids: list[int]) -> bool:
        """Return whether a text of these tokens is left unsplit."""
        return self.split == "none" or (self.split == "auto" and len(ids) <= self.limit)

    def capitals(self, text: str, spans: Sequence[Span]) -> tuple[bool, ...]:
        """Return which parts are in capitals."""
        return tuple(map(_in_capitals, _slices(text, spans))) if self.lower_capitals else ()

    def stretches(self, text: str) -> list[Span]:
        """Return the spans that are not copied: the lines of a text, or what lies between literals in them."""
        kinds = self.kinds
        return [
            (start + first, start + last)
            for start, end in self.translated_lines(text)
            for first, last in (
                spans_to_translate(text[start:end], kinds) if self.tokenizer.knows_letters else [(0, end - start)]
            )
        ]

    def translated_lines(self, text: str) -> list[Span]:
        """Return the spans of the lines of a text that are not copied as a whole."""
        return [span for span in _outside_code(text) if self.translates(text[slice(*span)])]

    def units(self, text: str) -> list[Span]:
        """Return the spans of the translated lines of a text, or of the sentences of a line that is too long."""
        lines = self.translated_lines(text)
        units = []
        for (start, end), row in zip(lines, self.encode(_slices(text, lines)), strict=True):
            sentences = [(0, end - start)] if self.fits(row) else sentence_spans(text[start:end], self.language)
            units += [(start + first, start + last) for first, last in sentences]
        return units

    def translates(self, text: str) -> bool:
        """Return whether a text is translated, not copied."""
        return has_letters(text) or (has_text(text) and not self.tokenizer.knows_letters)

    def sentences(self, text: str, ids: list[int]) -> tuple[list[Span], list[list[int]], int]:
        """Return the spans of sentences or of their pieces, the tokens of each, and the number of cut sentences."""

        def count(texts: Sequence[str]) -> list[int]:
            return [len(row) for row in self.encode(texts)]

        spans: list[Span] = []
        parts: list[list[int]] = []
        cut_sentences = 0
        sentences = sentence_spans(text, self.language)
        rows = [ids] if sentences == [(0, len(text))] else self.encode(_slices(text, sentences))
        for sentence, row in zip(sentences, rows, strict=True):
            pieces = [sentence] if len(row) <= self.limit else pieces_within(text, sentence, self.limit, count)
            spans += pieces
            parts += [row] if len(row) <= self.limit else self.encode(_slices(text, pieces))
            cut_sentences += len(pieces) > 1
        return spans, parts, cut_sentences


def _outside_code(text: str) -> list[Span]:
    """Return the spans of the lines of a text without blocks of code, which begin and end with ``` or ~~~."""
    outside: list[Span] = []
    held: list[Span] = []  # lines since a mark that may begin a block
    mark = ""
    for span in line_spans(text):
        line = text[slice(*span)]
        if mark and line.startswith(mark) and not line.strip(mark[0]):
            held, mark = [], ""
        elif mark:
            held.append(span)
        elif begin := _CODE.match(line):
            held, mark = [span], begin[1]
        else:
            outside.append(span)
    return outside + held


def _in_capitals(text: str) -> bool:
    """Return whether a text has two letters or more, all of them capitals."""
    letters = list(filter(str.isalpha, known(text)))
    return len(letters) > 1 and all(map(str.isupper, letters))


def _sentence_case(text: str, language: str) -> str:
    """Return a text in lower case, but for the first letter of each sentence."""
    pieces, end = [], 0
    for start, last in sentence_spans(text, language):
        pieces += [text[end:start], capitalize(text[start:last], language)]
        end = last
    return "".join([*pieces, text[end:]])


def _slices(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]
