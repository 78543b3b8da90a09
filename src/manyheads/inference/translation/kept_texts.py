"""Reserved symbols in the place of addresses, placeholders and tags inside of a sentence, which a model copies."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from random import Random

from bitext.unicode import known
from manyheads.data.augment_text import NO_LANGUAGES, Texts, linked_words
from manyheads.inference.translation.literals import Sentence
from manyheads.text.reserved import KEEP_SYMBOLS, MARKS
from manyheads.text.tokenizer import Tokenizer, TokenizerPair

_KEEP_MARKS = [MARKS[symbol] for symbol in KEEP_SYMBOLS]
_COUNTS = (1, 1, 1, 2, 2, 3)  # words of a pair that get marks, drawn with equal probability
_FORMS = ("{}", "{}", "{}", "{}{word}", "{}{word}{}", "{}{word}{}")  # what such a word becomes, likewise
_IN_ORDER = 0.5  # share of pairs whose first mark is the first symbol, and so on
_AT_END = 0.7  # share of marks at the end where no word is known; the others are at the start
_NO_BLANK_AFTER, _NO_BLANK_BEFORE = "([{«„“‚‘¿¡", ".,;:!?…)]}»”’。、，！？"


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


def marked_ids(sentence: Sentence, tokenizer: Tokenizer) -> list[int] | None:
    """Return the tokens of a sentence with symbols in the place of its literals; None if it has too many."""
    if len(sentence.literals) > len(KEEP_SYMBOLS):
        return None
    first, *others = tokenizer.encode(sentence.texts)
    marked = ([tokenizer.reserved_id(symbol), *ids] for symbol, ids in zip(KEEP_SYMBOLS, others, strict=False))
    return [*first, *chain.from_iterable(marked)]


def is_complete(sentence: Sentence, tokenizer: Tokenizer, tokens: Sequence[int]) -> bool:
    """Return whether an output holds the symbol of each literal once; `tokenizer` is that of the target."""
    numbers = _split_at_symbols(tokenizer, tokens)[1]
    return (numbers if sentence.ordered else sorted(numbers)) == [*range(len(sentence.literals))]


def restore(sentence: Sentence, tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Return the text of an output, with the literals of its source in the place of their symbols."""
    runs, numbers = _split_at_symbols(tokenizer, tokens)
    text, *others = (tokenizer.decode(run) for run in runs)
    for number, after in zip(numbers, others, strict=True):
        start, end = sentence.literals[number]
        tag = sentence.text[end - 1] == ">"
        if text:
            text += _blank(sentence.text[:start][-1:], text[-1], _NO_BLANK_AFTER, tag=tag)
        text += sentence.text[start:end]
        if after:
            text += _blank(sentence.text[end : end + 1], after[0], _NO_BLANK_BEFORE, tag=tag) + after
    return text


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
