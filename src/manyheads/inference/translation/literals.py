"""Literals, such as addresses and tags, which are copied: a line is cut at them, or has placeholders for them.

A placeholder is a reserved symbol that the model copies; the literal is written in its place afterwards.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, starmap
from typing import TYPE_CHECKING

from bitext.letters import has_letters
from bitext.literals import Kinds, layout_kinds, literal_kinds, literals_of
from bitext.unicode import known
from manyheads.inference.translation.stages import Draft, Request, Stage
from manyheads.text.reserved import PLACEHOLDERS
from manyheads.text.sentences import Span, sentence_spans
from manyheads.text.tokenizer import Tokenizer, TokenizerPair

if TYPE_CHECKING:
    from manyheads.config.schema import Config
    from manyheads.inference.translation.parts import Line, Splitter
    from manyheads.inference.translation.translator import Translator
    from manyheads.search.interface import Hypothesis

_BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="  # marks before a literal that are copied with it
_ORDERED = re.compile(r"[<\[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]])")  # tags, links, emphasis, codes
_BRANCH = re.compile(r",[^{}\\]*\{|\}[^{}\\]*[{}]")  # what begins, parts or ends the branches of a message
_AFTER = re.compile(r"[^\w\s<{@$%]*")  # marks after a literal, likewise
_WIDE_BEAM = 10  # outputs among which one with all placeholders is looked for, where the best has not
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
    """A part of a line between literals of its layout, with other literals inside.

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

    def encode(self, tokenizer: Tokenizer) -> list[int] | None:
        """Return the tokens of the part with placeholders for its literals; None if it has too many."""
        if len(self.literals) > len(PLACEHOLDERS):
            return None
        first, *others = tokenizer.encode(self.texts)
        rows = ([tokenizer.reserved_id(symbol), *ids] for symbol, ids in zip(PLACEHOLDERS, others, strict=False))
        return [*first, *chain.from_iterable(rows)]

    def is_complete(self, tokenizer: Tokenizer, tokens: Sequence[int]) -> bool:
        """Return whether an output holds each placeholder once; `tokenizer` is that of the target."""
        numbers = _split_at_placeholders(tokenizer, tokens)[1]
        return (numbers if self.ordered else sorted(numbers)) == [*range(len(self.literals))]

    def restore(self, tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
        """Return the text of an output, with the literals of the part in the place of their placeholders."""
        runs, numbers = _split_at_placeholders(tokenizer, tokens)
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
        texts = [line[slice(*span)] for span in spans]
        branches = any(text.count("{") != text.count("}") and _BRANCH.search(text) for text in texts)
        if not branches and has_letters("".join(sentence.texts)):
            found.append(sentence)
    return found


def _split_at_placeholders(tokenizer: Tokenizer, tokens: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Return the runs of tokens around the placeholders, and the numbers of these from 0."""
    ids = [tokenizer.reserved[symbol] for symbol in PLACEHOLDERS]
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
    """Return the separator of a literal from the output beside it: a blank, or nothing.

    Args:
        source: character beside the literal in the source; "" at its border.
        output: character beside the literal in the output.
        no_blank: characters that no blank separates from a word on this side.
        tag: whether the literal is a tag, which can be joined to letters of any script.
    """
    source, output = known(source), known(output)
    joined = source and not source.isspace() and (tag or unicodedata.east_asian_width(source) not in "WF")
    if (joined and (source.isalnum() or not output.isalnum())) or output in no_blank:
        return ""
    return " "


def knows_placeholders(tokenizers: TokenizerPair) -> bool:
    """Return whether both vocabularies have the placeholders."""
    return all(PLACEHOLDERS[-1] in side.reserved for side in (tokenizers.source, tokenizers.target))


def put_placeholders(line: Line, splitter: Splitter) -> Line:
    """Return a line with one part for each sentence with literals, if it fits with placeholders for them."""
    lines = splitter.translated_lines(line.text)
    found = [(start, text) for start, end in lines for text in sentences_with_literals(line.text[start:end])]
    if not found:
        return line
    parts: dict[Span, tuple[list[int], Sentence | None]]
    parts = {span: (ids, None) for span, ids in zip(line.spans, line.parts, strict=True)}
    for offset, text in found:
        for sentence in _sentences_within(text, splitter):
            start, ids = offset + sentence.start, sentence.encode(splitter.tokenizer)
            stop = start + len(sentence.text)
            letters = "".join(sentence.texts)
            capitals = splitter.capitals(letters, [(0, len(letters))])
            if ids and len(ids) <= splitter.limit and not any(capitals):
                parts = {span: part for span, part in parts.items() if span[1] <= start or stop <= span[0]}
                parts[start, stop] = ids, sentence
    spans = sorted(parts)
    sentences = enumerate(parts[span][1] for span in spans)
    return replace(
        line,
        spans=spans,
        parts=[parts[span][0] for span in spans],
        capitals=splitter.capitals(line.text, spans),
        placeholders={number: sentence for number, sentence in sentences if sentence},
    )


def _sentences_within(text: Sentence, splitter: Splitter) -> list[Sentence]:
    """Return the sentences of a text that have literals and letters beside them; the text itself if it fits."""
    ids = text.encode(splitter.tokenizer)
    if ids is not None and splitter.fits(ids):
        return [text]
    starts = [
        start
        for start, _ in sentence_spans(text.text, splitter.language)
        if not any(first < start < last for first, last in text.literals)
    ]
    ends = [len(text.text[:start].rstrip()) for start in starts[1:]]
    sentences = starmap(text.within, zip(starts, [*ends, len(text.text)], strict=True))
    return [part for part in sentences if part.literals and has_letters("".join(part.texts))]


class Placeholders(Stage):
    """Placeholders for the literals of a sentence, so that it is translated whole.

    An output needs each placeholder once. A line without such an output is searched again with a wide beam, and
    then cut at its literals.
    """

    def __init__(self, translator: Translator, request: Request) -> None:
        super().__init__(translator, request)
        self.splitter = translator.splitter(request.options)
        self.plain: list[Line] = []  # the lines without placeholders

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Put placeholders into the lines, if the model knows them; a glossary is for sentences without them."""
        self.plain = [draft.line for draft in drafts]
        wanted = self.splitter.copy_literals and self.translator.glossary is None and self.request.method != "score"
        if not wanted or not knows_placeholders(self.translator.tokenizers):
            return drafts
        lines = [put_placeholders(line, self.splitter) for line in self.plain]
        pairs = zip(drafts, lines, strict=True)
        return [draft.with_line(line) if line.placeholders else draft for draft, line in pairs]

    def accepts(self, draft: Draft, part: int) -> bool:
        """Return whether a part has an output with all its placeholders."""
        return part not in draft.line.placeholders or bool(self._complete(draft, part))

    def change(self, draft: Draft, parts: Sequence[int]) -> Draft:
        """Search all parts of the line in a wide beam, or cut it at its literals if that was tried."""
        options = self.request.options
        size = max(_WIDE_BEAM, options.beam_size)
        wider = options if options.sampling else replace(options, beam_size=size, n_best=size)
        if draft.options == wider:
            return replace(draft, options=options).with_line(self.plain[draft.number])
        return replace(draft, options=wider).with_line(draft.line)

    def found(self, draft: Draft) -> Draft:
        """Leave out the outputs that lack a placeholder."""
        if not draft.line.placeholders:
            return draft
        return draft.with_outputs(self._complete(draft, part) for part in range(len(draft.parts)))

    @classmethod
    def reserved_symbols(cls, config: Config) -> Sequence[str]:
        """Return the placeholders, if the training sets them; only a vocabulary of subwords can have these."""
        wanted = config.data.augment and config.search.copy_literals and config.tokenizer.kind in ("bpe", "unigram")
        return PLACEHOLDERS if wanted else ()

    def _complete(self, draft: Draft, part: int) -> list[Hypothesis]:
        outputs, sentence = draft.outputs[part], draft.line.placeholders.get(part)
        if sentence is None:
            return outputs
        return [
            output for output in outputs if sentence.is_complete(self.translator.tokenizers.target, output.tokens)
        ]
