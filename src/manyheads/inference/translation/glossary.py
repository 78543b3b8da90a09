"""Glossaries: terms with the translations that they must have, and where the terms occur in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from bitext.languages import lower
from bitext.lines import read_lines
from bitext.tsv import names_columns, split_quoted_row
from manyheads.errors import DataError

# Endings that a term may have in a text -> the letters before them, at least.
_PARTICLES = "은|는|이|가|을|를|의|에|도|만|와|과|로|으로|에서|에게|에는|에도|까지|부터|보다|처럼"  # of Korean
_ENDINGS = {**dict.fromkeys(("s", "e", "n", "es", "en"), 4), **dict.fromkeys(_PARTICLES.split("|"), 2)}
_LEAST_STEM = 3  # letters that two forms of a word share
_ENDING_LENGTHS = sorted({len(ending) for ending in _ENDINGS})

# Thai, Lao, Burmese, Khmer, Kana and Han are written without blanks: each letter is a token.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_MARKS = "".join(chr(code) for code in range(0x300, 0x1E00) if unicodedata.category(chr(code)).startswith("M"))
_LETTER = rf"[^\W_{_UNSPACED}]"
_TOKEN = re.compile(rf"[{_UNSPACED}]|{_LETTER}(?:{_LETTER}|[{_MARKS}]|-(?={_LETTER}))*|\S")
# Letters, digits and accents of words that stand between blanks; Korean has blanks, but joins nouns and particles.
_IN_WORD = rf"(?:[^\W_{_UNSPACED}\uac00-\ud7a3]|[{_MARKS}])"
_ENDS_OPEN, _GOES_ON = re.compile(rf"{_IN_WORD}\Z"), re.compile(_IN_WORD)


class Term(NamedTuple):
    """A term, its translation, and where the pair was read, such as "terms.tsv, line 3"."""

    source: str
    target: str
    where: str


class Place(NamedTuple):
    """A term in a text, from its first character to the one after its last."""

    term: Term
    start: int
    end: int


class Glossary:
    """Terms with the translations that they must have.

    A text is searched with a few look-ups a word, whatever the number of terms.

    Attributes:
        terms: the terms, without those of the glossary that was `extended`.
        language: language of the texts, whose capitals are found too; "" for the rules of most languages.

    Raises:
        DataError: a side of a pair is empty, or a term has two translations.
    """

    def __init__(self, terms: Iterable[Term], language: str = "") -> None:
        self.terms: list[Term] = []
        self.language = language
        self._by_key: dict[str, dict[str, Term]] = {}  # by the tokens in lower case, then as they are written
        self._longest: dict[str, int] = {}  # tokens of the longest term that begins with a token
        for term in terms:
            self._add(term)

    @classmethod
    def read(cls, path: str | Path, languages: tuple[str, str]) -> Self:
        """Read a file of tab-separated values: term, translation, and further columns, which are ignored.

        A first row that names the columns is no term, and the quotation marks around a value are those of a
        spreadsheet.

        Raises:
            DataError: the file cannot be read, a line has no tab, the columns are exchanged, or as the class.
        """
        terms = []
        for number, line in enumerate(read_lines(Path(path)), start=1):
            if not line.strip():
                continue
            values, where = split_quoted_row(line), f"{path}, line {number}"
            if len(values) < 2:
                raise DataError(f"{where}: there is no tab. Write a term, a tab and its translation.")
            terms.append(Term(values[0], values[1], where))
        if terms and names_columns(terms[0].source, terms[0].target, languages):
            return cls(terms[1:])
        if terms and names_columns(terms[0].target, terms[0].source, languages):
            raise DataError(
                f'{terms[0].where}: the columns are "{terms[0].source}" and "{terms[0].target}", and the model '
                f"translates {' to '.join(languages)}. Exchange the columns."
            )
        return cls(terms)

    def extended(self, terms: Sequence[Term]) -> Glossary:
        """Return a glossary with further terms, which replace own terms of the same text."""
        further = Glossary(terms, self.language)
        further._by_key = self._by_key | further._by_key
        for first, longest in self._longest.items():
            further._longest[first] = max(longest, further._longest.get(first, 0))
        return further

    def in_language(self, language: str) -> Glossary:
        """Return the glossary for texts of a language."""
        terms = chain.from_iterable(spellings.values() for spellings in self._by_key.values())
        return self if language == self.language else Glossary(terms, language)

    def _add(self, term: Term) -> None:
        source, target = (_tidy(side) for side in term[:2])
        for name, side in (("term", source), ("translation", target)):
            if not side:
                raise DataError(f"{term.where}: the {name} is empty. Give both, or leave the pair out.")
        term = Term(source, target, term.where)
        tokens = _TOKEN.findall(source)
        spelled, key = " ".join(tokens), lower(" ".join(tokens), self.language)
        known = self._by_key.setdefault(key, {}).setdefault(spelled, term)
        if known.target != target:
            raise DataError(
                f'{term.where}: "{source}" has another translation, "{known.target}", in {known.where}. Keep one.'
            )
        if known is term:
            self.terms.append(term)
        first = lower(tokens[0], self.language)
        self._longest[first] = max(len(tokens), self._longest.get(first, 0))

    def find(self, text: str) -> list[Place]:
        """Return the terms in a text in NFC, from left to right, of several at a place the longest.

        Terms are whole words. A term that is not there as it is written may be there in other case, unless it is in
        capitals, and then with one of a few endings (`_ENDINGS`), such as the plural.
        """
        matches = [*_TOKEN.finditer(text)]
        tokens = [match[0] for match in matches]
        lowered = [lower(token, self.language) for token in tokens]
        found: list[Place] = []
        index = 0
        while index < len(tokens):
            longest = min(self._longest.get(lowered[index], 1), len(tokens) - index)
            for count in range(longest, 0, -1):
                end = index + count
                if term := self._look_up(" ".join(tokens[index:end]), " ".join(lowered[index:end])):
                    found.append(Place(term, matches[index].start(), matches[end - 1].end()))
                    index = end
                    break
            else:
                index += 1
        return found

    def _look_up(self, spelled: str, key: str) -> Term | None:
        """Return the term of a key, or of the key without an ending; of several the one that is spelled so."""
        if terms := self._by_key.get(key):
            return terms.get(spelled) or _in_any_case(terms)
        for length in _ENDING_LENGTHS:
            least = _ENDINGS.get(key[-length:])
            stem = key[:-length]
            if least and stem in self._by_key and len(stem) - stem.rfind(" ") > least:
                return _in_any_case(self._by_key[stem])
        return None


def ends_open(text: str) -> bool:
    """Return whether a text ends within a word if a letter follows."""
    return _ENDS_OPEN.search(text) is not None


def goes_on(text: str) -> bool:
    """Return whether a text begins within a word if a letter is before it."""
    return _GOES_ON.match(text) is not None


def holds_phrase(text: str, phrase: str) -> bool:
    """Return whether a text holds a phrase that begins and ends at the boundary of a word."""
    before = rf"(?<!{_IN_WORD})" if goes_on(phrase) else ""
    after = rf"(?!{_IN_WORD})" if ends_open(phrase) else ""
    return re.search(before + re.escape(phrase) + after, text) is not None


def same_stem(first: str, second: str) -> bool:
    """Return whether two words are equal, or may be forms of one word.

    Forms share three letters and more than half of the longer form, or differ by one of a few endings.
    """
    shorter, longer = sorted((first, second), key=len)
    shared = next((i for i, letter in enumerate(shorter) if letter != longer[i]), len(shorter))
    ending = longer[len(shorter) :] if shared == len(shorter) > 1 else " "
    return shorter == longer or (shared >= _LEAST_STEM and 2 * shared > len(longer)) or ending in _ENDINGS


def holds_form(text: str, translation: str, language: str = "") -> bool:
    """Return whether a text has forms of the words of a translation in a row (`same_stem`).

    A translation in lower case may stand there in any case; `language` is that of both.
    """
    cased = lower(text, language) if translation.islower() else text
    words, wanted = _TOKEN.findall(cased), _TOKEN.findall(translation)
    rows = zip(*(words[index:] for index in range(len(wanted))), strict=False)
    return any(all(map(same_stem, row, wanted)) for row in rows)


def _in_any_case(terms: Mapping[str, Term]) -> Term | None:
    """Return the first term that may stand in other case; one in capitals, such as IT, is another word then."""
    return next((term for term in terms.values() if not term.source.isupper()), None)


def _tidy(text: str) -> str:
    """Return a side of a pair with single blanks, in the form in which texts are searched."""
    return " ".join(unicodedata.normalize("NFC", text).split())
