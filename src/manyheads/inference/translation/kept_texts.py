"""Reserved symbols in the place of addresses, placeholders and tags inside of a sentence, which a model copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, starmap
from random import Random
from typing import TYPE_CHECKING

from bitext.letters import has_letters
from manyheads.data.augment_text import NO_LANGUAGES, Texts, linked_words
from manyheads.inference.translation.literals import Sentence, sentences_with_literals
from manyheads.inference.translation.stages import Draft, Request, Stage
from manyheads.text.reserved import KEEP_SYMBOLS, MARKS
from manyheads.text.sentences import Span, sentence_spans
from manyheads.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from manyheads.inference.translation.parts import Line, Splitter
    from manyheads.inference.translation.translator import Translator
    from manyheads.search.interface import Hypothesis

_KEEP_MARKS = [MARKS[symbol] for symbol in KEEP_SYMBOLS]
_COUNTS = (1, 1, 1, 2, 2, 3)  # words of a pair that get marks, drawn with equal probability
_FORMS = ("{}", "{}", "{}", "{}{word}", "{}{word}{}", "{}{word}{}")  # what such a word becomes, likewise
_IN_ORDER = 0.5  # share of pairs whose first mark is the first symbol, and so on
_WIDE_BEAM = 10  # outputs among which one with all symbols is looked for, where the best has not
_AT_END = 0.7  # share of marks at the end where no word is known; the others are at the start


def add_marks(
    source: str, target: str, rng: Random, translations: Mapping[str, str], languages: Texts = NO_LANGUAGES
) -> Texts:
    """Put the same marks into both sides of a pair: in the place of words, before them or around them.

    A pair without a word whose translation is known (`translations`, both in lower case) gets a mark at an end.
    """
    linked = linked_words(source, target, translations, languages)
    chosen = sorted(rng.sample(linked, min(len(linked), rng.choice(_COUNTS))), key=lambda pair: pair[0].start())
    forms = [rng.choice(_FORMS) for _ in chosen]
    count = max(1, sum(form.count("{}") for form in forms))
    marks = _KEEP_MARKS[:count] if rng.random() < _IN_ORDER else sorted(rng.sample(_KEEP_MARKS, count))
    if not chosen:
        at_end = rng.random() < _AT_END
        return (source + marks[0], target + marks[0]) if at_end else (marks[0] + source, marks[0] + target)
    unused = iter(marks)
    edits = []
    for pair, form in zip(chosen, forms, strict=True):
        own = list(islice(unused, form.count("{}")))
        edits.append([(word.span(), form.format(*own, word=word[0])) for word in pair])
    sides = []
    for side, text in enumerate((source, target)):
        for (start, end), new in sorted((edit[side] for edit in edits), reverse=True):
            text = f"{text[:start]}{new}{text[end:]}"
        sides.append(text)
    return sides[0], sides[1]


def knows_marks(tokenizers: TokenizerPair) -> bool:
    """Return whether both vocabularies have the symbols of kept texts."""
    return all(KEEP_SYMBOLS[-1] in side.reserved for side in (tokenizers.source, tokenizers.target))


def mark_literals(line: Line, splitter: Splitter) -> Line:
    """Return a line with one part for each sentence with literals, if it fits with marks in their place."""
    lines = splitter.translated_lines(line.text)
    found = [(start, text) for start, end in lines for text in sentences_with_literals(line.text[start:end])]
    if not found:
        return line
    parts: dict[Span, tuple[list[int], Sentence | None]]
    parts = {span: (ids, None) for span, ids in zip(line.spans, line.parts, strict=True)}
    for offset, text in found:
        for sentence in _sentences_within(text, splitter):
            start, ids = offset + sentence.start, sentence.marked_ids(splitter.tokenizer)
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
        kept={number: sentence for number, sentence in sentences if sentence},
    )


def _sentences_within(text: Sentence, splitter: Splitter) -> list[Sentence]:
    """Return the sentences of a text that have literals and letters beside them; the text itself if it fits."""
    ids = text.marked_ids(splitter.tokenizer)
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


class KeptTexts(Stage):
    """Symbols in the place of the literals of a sentence, so that it is translated whole.

    An output needs the symbol of each literal once. A line without such an output is searched again with a wide
    beam, and then cut at its literals.
    """

    def __init__(self, translator: Translator, request: Request) -> None:
        super().__init__(translator, request)
        self.splitter = translator.splitter(request.options)
        self.plain: list[Line] = []  # the lines without symbols

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Put the symbols into the lines, if the model knows them; a glossary is for sentences without them."""
        self.plain = [draft.line for draft in drafts]
        wanted = self.splitter.copy_literals and self.translator.glossary is None and self.request.method != "score"
        if not wanted or not knows_marks(self.translator.tokenizers):
            return drafts
        lines = [mark_literals(line, self.splitter) for line in self.plain]
        return [draft.with_line(line) if line.kept else draft for draft, line in zip(drafts, lines, strict=True)]

    def accepts(self, draft: Draft, part: int) -> bool:
        """Return whether a part has an output with all its symbols."""
        return part not in draft.line.kept or bool(self._complete(draft, part))

    def change(self, draft: Draft, parts: Sequence[int]) -> Draft:
        """Search all parts of the line in a wide beam, or cut it at its literals if that was tried."""
        options = self.request.options
        size = max(_WIDE_BEAM, options.beam_size)
        wider = options if options.sampling else replace(options, beam_size=size, n_best=size)
        if draft.options == wider:
            return replace(draft, options=options).with_line(self.plain[draft.number])
        return replace(draft, options=wider).with_line(draft.line)

    def found(self, draft: Draft) -> Draft:
        """Leave out the outputs that lack a symbol."""
        if not draft.line.kept:
            return draft
        return draft.with_outputs(self._complete(draft, part) for part in range(len(draft.parts)))

    def _complete(self, draft: Draft, part: int) -> list[Hypothesis]:
        outputs, sentence = draft.outputs[part], draft.line.kept.get(part)
        if sentence is None:
            return outputs
        return [
            output for output in outputs if sentence.is_complete(self.translator.tokenizers.target, output.tokens)
        ]
