"""Changes of one training pair: case, end mark, typing errors, copied material, placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from random import Random

from bitext.languages import SENTENCE_ENDS, full_stop, lower, upper
from manyheads.data.augment_copies import make_copy, make_tag
from manyheads.text.reserved import NONCHARACTERS, PLACEHOLDERS

Texts = tuple[str, str]  # source and target
NO_LANGUAGES = ("", "")  # capitals and small letters are those of most languages

END_MARK = re.compile(rf"\s*[{SENTENCE_ENDS}།]+$")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NUMBER = re.compile(r"(?<![\w.,:])\d{2,}(?![\w:]|[.,]\d)")
_LETTERS = re.compile(r"[^\W\d_]{4,}")
_WORDS_A_TYPO = 8  # words for each misspelt word
_WHOLE_LINES = 0.15  # share of copies that are a complete line
_IN_PLACE = 0.6  # share of the other copies that are put at a word
_AT_END = 0.7  # share of the remaining copies, and of placeholders where no word is known, that are put at the end
_TAGGED = 0.2  # share of copies that are a pair of tags
_PLACEHOLDERS = [NONCHARACTERS[symbol] for symbol in PLACEHOLDERS]
_COUNTS = (1, 1, 1, 2, 2, 3)  # words of a pair that get placeholders, drawn with equal probability
_FORMS = ("{}", "{}", "{}", "{}{word}", "{}{word}{}", "{}{word}{}")  # what such a word becomes, likewise
_IN_ORDER = 0.5  # share of pairs whose first placeholder is the first symbol, and so on


def to_capitals(source: str, target: str, languages: Texts = NO_LANGUAGES) -> Texts:
    """Write both sides in capitals."""
    return upper(source, languages[0]), upper(target, languages[1])


def lower_source(source: str, target: str, languages: Texts = NO_LANGUAGES) -> Texts:
    """Write the source in lower case."""
    return lower(source, languages[0]), target


def drop_capital(source: str, target: str, languages: Texts = NO_LANGUAGES) -> Texts:
    """Write the first letter of the source small."""
    return lower(source[:1], languages[0]) + source[1:], target


def change_end_mark(source: str, target: str, languages: Texts) -> Texts:
    """Take the end mark off both sides, or put a full stop on both if neither has a mark.

    A pair with a mark on one side only, with nothing but marks, or of a language without full stops is not changed.
    """
    ends = [END_MARK.search(text) for text in (source, target)]
    if ends[0] and ends[1]:
        shorter = source[: ends[0].start()], target[: ends[1].start()]
        return shorter if all(shorter) else (source, target)
    if ends[0] or ends[1] or not (source[-1:].isalpha() and target[-1:].isalpha()):
        return source, target
    marks = full_stop(languages[0]), full_stop(languages[1])
    return (source + marks[0], target + marks[1]) if all(marks) else (source, target)


def misspell(source: str, rng: Random, language: str = "") -> str:
    """Misspell words of at least four letters: a letter is left out, doubled, swapped with the next or replaced.

    One word is misspelt for every `_WORDS_A_TYPO` words, at least one.
    """
    words = list(_LETTERS.finditer(source))
    chosen = rng.sample(words, min(len(words), 1 + len(source.split()) // _WORDS_A_TYPO))
    for word in sorted(chosen, key=re.Match.start, reverse=True):
        index = rng.randrange(word.start() + 1, word.end() - 1)  # the first letter is rarely wrong
        letter, next_letter = source[index], source[index + 1]
        replacement = lower(rng.choice(word[0]), language)
        changed = rng.choice(("", letter + letter, next_letter + letter, replacement))
        end = index + 2 if changed == next_letter + letter else index + 1
        source = source[:index] + changed + source[end:]
    return source


def add_copy(
    source: str,
    target: str,
    rng: Random,
    translations: Mapping[str, str],
    scripts: Sequence[tuple[int, int]] = (),
    languages: Texts = NO_LANGUAGES,
) -> Texts:
    """Put the same made-up text into both sides: number, address, emoji, field such as {name} or pair of tags.

    The text is put before a word and its translation if both occur once, otherwise at the start or end of both
    sides. `translations` maps each known word, in lower case. Words in `scripts`, which the training text does not
    have, are copied too.
    """
    number = _shared_number(source, target)
    if number is not None and rng.random() < _IN_PLACE:
        replacement = str(rng.randrange(10 ** len(number)))
        return _replace_number(source, number, replacement), _replace_number(target, number, replacement)
    if rng.random() < _WHOLE_LINES:
        text = make_copy(rng, scripts, alone=True)
        return text, text
    start, end = make_tag(rng) if rng.random() < _TAGGED else (make_copy(rng, scripts), "")
    linked = linked_words(source, target, translations, languages)
    if linked and rng.random() < _IN_PLACE:
        source_word, target_word = rng.choice(linked)
        return _around(source, source_word, start, end), _around(target, target_word, start, end)
    if end:
        return f"{start}{source}{end}", f"{start}{target}{end}"
    if rng.random() < _AT_END:
        return f"{source} {start}", f"{target} {start}"
    return f"{start} {source}", f"{start} {target}"


def add_placeholders(
    source: str, target: str, rng: Random, translations: Mapping[str, str], languages: Texts = NO_LANGUAGES
) -> Texts:
    """Put the same placeholders into both sides of a pair: in the place of words, before them or around them.

    A pair without a word whose translation is known (`translations`, both in lower case) gets one at an end.
    """
    linked = linked_words(source, target, translations, languages)
    chosen = sorted(rng.sample(linked, min(len(linked), rng.choice(_COUNTS))), key=lambda pair: pair[0].start())
    forms = [rng.choice(_FORMS) for _ in chosen]
    count = max(1, sum(form.count("{}") for form in forms))
    added = _PLACEHOLDERS[:count] if rng.random() < _IN_ORDER else sorted(rng.sample(_PLACEHOLDERS, count))
    if not chosen:
        at_end = rng.random() < _AT_END
        return (source + added[0], target + added[0]) if at_end else (added[0] + source, added[0] + target)
    unused = iter(added)
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


def _around(text: str, word: re.Match[str], start: str, end: str) -> str:
    """Put tags around a word; without an end tag, put the start and a blank before the word."""
    if not end:
        return f"{text[: word.start()]}{start} {text[word.start() :]}"
    return f"{text[: word.start()]}{start}{word[0]}{end}{text[word.end() :]}"


def _shared_number(source: str, target: str) -> str | None:
    """Return a number of at least two digits that occurs once on each side, or None."""
    source_numbers, target_numbers = _NUMBER.findall(source), _NUMBER.findall(target)
    return next(
        (number for number in source_numbers if source_numbers.count(number) == 1 == target_numbers.count(number)),
        None,
    )


def _replace_number(text: str, number: str, other: str) -> str:
    """Replace a number by another one, unless it is part of a longer number or word."""
    return _NUMBER.sub(lambda match: other if match[0] == number else match[0], text)


def linked_words(
    source: str, target: str, translations: Mapping[str, str], languages: Texts = NO_LANGUAGES
) -> list[tuple[re.Match[str], re.Match[str]]]:
    """Return the source words whose translation is in the target, with that translation, if both occur once."""
    source_words, target_words = map(_words_by_text, (source, target), languages)
    linked = []
    for word, matches in source_words.items():
        translated = target_words.get(translations.get(word, ""), [])
        if len(matches) == len(translated) == 1:
            linked.append((matches[0], translated[0]))
    return linked


def _words_by_text(text: str, language: str) -> dict[str, list[re.Match[str]]]:
    words: dict[str, list[re.Match[str]]] = {}
    for match in WORD.finditer(text):
        words.setdefault(lower(match[0], language), []).append(match)
    return words
