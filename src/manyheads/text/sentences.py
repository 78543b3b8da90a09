"""Split text into sentences, represented by character offsets.

The rules apply to all languages that end sentences with a punctuation mark. They cover abbreviations and ordinal
numbers of English and German, dates of Korean, and the punctuation of Chinese and Japanese. Time and memory are
linear in the length of the text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from bitext.languages import SENTENCE_ENDS, base_language
from bitext.unicode import known

Span = tuple[int, int]

_WIDE_MARKS = "。！？｡．"  # marks that end a sentence without a blank after them
CLOSERS = "\"'”’»«“‘›‹)]}」』）】》〉］｝"
OPENERS = "\"'“„‚”‘’«»‹›([{「『（【《〈［¿¡-–—*•"
# After it a text is cut without a blank.
UNSPACED_END = re.compile(rf"[{_WIDE_MARKS}、，；：][{re.escape(CLOSERS)}]*\Z")
_LINE_ENDS = re.compile("[\n\r\v\f\x85\u2028\u2029]")
_NOT_BLANK = re.compile(r"\S")
# A run of marks with its closing quotes and brackets, then a blank; after wide marks anything. Possessive
# quantifiers match each run once, which keeps the time linear.
_END = re.compile(
    rf"(?<![{SENTENCE_ENDS}])(?P<marks>[{SENTENCE_ENDS}]++)"
    rf"(?P<closers>(?:[{re.escape(CLOSERS)}]|\s»(?=\s|\Z))*+)(?=(?P<blank>\s|\Z)?)"  # « Oui ! »
)
# Particles after a closing quotation that continue the sentence: 「はい」と言った。
_CONTINUATIONS = "とってはがをもにのでや、"
_LAST_WORD = re.compile(r"[^\s(\[\"'“„«»-]+\Z")
_MAX_WORD = 40  # characters before a mark that may belong to its word

# Abbreviations that never end a sentence.
_TITLES = "mr mrs ms dr prof st mt gen col lt sgt capt rev hon sen rep gov pres hr fr frl dipl ing"
_GERMAN = (
    "bzw sog vgl ca z.b d.h u.a z.t v.a o.g u.u i.d.r inkl exkl zzgl ggf evtl gem geb gest hg hrsg jhd mio mrd"
)
_ENGLISH = "vs cf approx dept est e.g i.e al resp"
_BEFORE_A_WORD = frozenset([*_TITLES.split(), *_GERMAN.split(), *_ENGLISH.split()])
_LAST_WORDS = "etc usw enz osv itd itp atd inc ltd corp jr sr a.m p.m"  # abbreviations that may end a sentence
_AT_END = frozenset(_LAST_WORDS.split())
# Abbreviations that do not end a sentence before a number; elsewhere they are words ("He said no.").
_PLACES = "no nos nr vol vols ch p pp sec eq art fig figs bd abb tab abs kap s str tel"
_MONTHS = "jan feb mar apr jun jul aug sep sept oct okt nov dec dez"
_BEFORE_A_NUMBER = frozenset([*_PLACES.split(), *_MONTHS.split()])
_DOTTED_ORDINALS = "de da nb nn no fi et cs sk sl hr bs sr pl hu lv tr is lb"
_ORDINAL_DOT = frozenset(_DOTTED_ORDINALS.split())
_DATE = re.compile(r"\d\.\s?\d{1,2}\Z")  # 2020. 5. 3. is the third of May in Korean
_INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J, U.S, z.B
_NO_INITIAL = ("a.m", "p.m")
# A small letter of an abbreviation that is written with blanks: before its dot, and from its dot on.
_AFTER_LETTER = re.compile(r"(?<![^\W_])[^\W\d_]\.\s[^\W\d_]\Z")  # the a of "u. a."
_BEFORE_LETTER = re.compile(r"\.\s(?:[^\W\d_]|Chr)\.")  # the z of "z. B.", the n of "n. Chr."
_OPEN = re.compile(r"[\w,]\Z")
_LEAST_WORDS = 3  # of a line that goes on: a list of words is none
_BROKEN = 0.1  # of the pairs of lines
_LOWER_BEGINNINGS = 0.3  # of the lines that begin a sentence: more in a text without capitals
_ENUMERATION = re.compile(r"\d{1,3}|[a-zA-Z]")


def line_spans(text: str) -> list[Span]:
    """Return the (start, end) offsets of the lines of a text, without white space at their ends; none if blank."""
    return [span for line in _stretches(text, _LINE_ENDS) for span in _trim(text, *line)]


def sentence_spans(text: str, language: str = "") -> list[Span]:
    """Return the (start, end) offsets of the sentences of a text, in order, without white space at their ends.

    Only white space is outside of the sentences, so that the text can be restored exactly. A line end always ends a
    sentence.

    Args:
        text: any text.
        language: language code, such as "de": some languages write ordinal numbers with a dot ("am 3. Mai").
    """
    text, ordinals = known(text), base_language(language) in _ORDINAL_DOT
    spans = []
    for start, end in _stretches(text, _LINE_ENDS):
        first = start
        for cut in _ends(text, start, end, ordinals=ordinals):
            spans += _trim(text, first, cut)
            first = cut
        spans += _trim(text, first, end)
    return spans


def _stretches(text: str, separator: re.Pattern[str]) -> Iterator[Span]:
    start = 0
    for match in separator.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _trim(text: str, start: int, end: int) -> list[Span]:
    """Return the span without white space at its ends, as a list; empty if the span is blank."""
    first = _NOT_BLANK.search(text, start, end)
    if first is None:
        return []
    while text[end - 1].isspace():
        end -= 1
    return [(first.start(), end)]


def _ends(text: str, start: int, end: int, *, ordinals: bool) -> Iterator[int]:
    first = start  # start of the sentence
    for match in _END.finditer(text, start, end):
        wide = match["marks"][-1] in _WIDE_MARKS
        if match["blank"] is None and match.end() < end and not wide:
            continue
        after = _NOT_BLANK.search(text, match.end(), end)
        if after is None:
            return
        following = _beginning(text, after.start(), end)
        if wide:
            closes = match["closers"] and after.start() == match.end() and text[match.end()] in _CONTINUATIONS
            inside = match.end() < end and text[match.end()].isdigit() and match["marks"] == "．"
            last = not (closes or inside)
        else:
            last = _begins_sentence(following) and not (
                match["marks"] == "." and _abbreviates(text, first, match.start(), following, ordinals=ordinals)
            )
        if last:
            yield match.end()
            first = after.start()


def _beginning(text: str, start: int, end: int) -> str:
    """Return the first character after quotation marks, brackets and dashes."""
    for index in range(start, min(end, start + 8)):
        if text[index] not in OPENERS and not text[index].isspace():
            return text[index]
    return ""


def _begins_sentence(character: str) -> bool:
    """Return whether a sentence can begin with this character: not with a symbol, or a letter that has a capital.

    Georgian has lower-case letters alone.
    """
    return character.isalnum() and not (character.islower() and character != character.capitalize())


def _abbreviates(text: str, first: int, dot: int, following: str, *, ordinals: bool) -> bool:
    """Return whether a dot belongs to the word before it and the sentence, begun at `first`, continues."""
    begin = max(first, dot - _MAX_WORD)
    match = _LAST_WORD.search(text, begin, dot)
    if match is None:
        return False
    word = match[0]
    if match.start() == first and _ENUMERATION.fullmatch(word):  # "3. Ein Hund läuft."
        return True
    if word.isdigit():
        date = _DATE.search(text, begin, dot) is not None
        return date or following.isdigit() or (ordinals and len(word) <= 2)
    if word.lower() in _BEFORE_A_WORD or (word.lower() in _BEFORE_A_NUMBER and following.isdigit()):
        return True
    window = max(first, dot - _MAX_WORD)
    if (
        len(word) == 1
        and word.islower()
        and (_BEFORE_LETTER.match(text, dot) or _AFTER_LETTER.search(text, window, dot))
    ):
        return True
    initial = _INITIAL.fullmatch(word) is not None and (word.isupper() or "." in word)
    return initial and word.lower() not in _NO_INITIAL


def ends_in_abbreviation(text: str, language: str) -> bool:
    """Return whether a dot after a text is that of its last word, even if the sentence ends there.

    True for an initial, an ordinal number in a language that writes one so, and the known abbreviations.
    """
    match = _LAST_WORD.search(text, max(0, len(text) - _MAX_WORD))
    base, word = base_language(language), match[0].lower() if match else ""
    ordinals = base in _ORDINAL_DOT
    return word in _AT_END or (
        (base, word) != ("en", "i") and _abbreviates(text, 0, len(text), "", ordinals=ordinals)
    )


class LineBreaks:
    """Find lines that end in a word or a comma while the next begins in lower case: their sentence goes on there.

    Attributes:
        broken: numbers of these lines, from 1.
    """

    def __init__(self) -> None:
        self.broken: list[int] = []
        self.pairs = 0  # of neighbouring lines that are not blank
        self.beginnings = self.lower_beginnings = 0  # lines that begin a sentence, and those in lower case
        self.ends = 0  # lines that end in a full stop or the like

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines, and count them."""
        before = ""
        for number, line in enumerate(lines):
            text = line.strip()
            lower = text[:1] != text[:1].upper()
            if _OPEN.search(before) is None:
                self.beginnings += bool(text)
                self.lower_beginnings += lower
            elif lower and len(before.split()) >= _LEAST_WORDS:
                self.broken.append(number)
            self.pairs += bool(before and text)
            self.ends += text[-1:] in SENTENCE_ENDS
            before = text
            yield line

    @property
    def many(self) -> bool:
        """Return whether sentences are broken often, in a text that begins them in upper case and ends them."""
        careful = self.ends > 0 and self.lower_beginnings <= _LOWER_BEGINNINGS * self.beginnings
        return careful and len(self.broken) > _BROKEN * self.pairs


# --- long sentences ---

# After a comma or a similar mark, or before a dash; possessive quantifiers match a run of blanks once.
_CLAUSES = re.compile(r"(?<=[,;:،؛])\s++|(?<=[、，；：])|(?<![\s,;:،؛])\s++(?=[–—-]\s)")
_BLANKS = re.compile(r"\s+")

Count = Callable[[Sequence[str]], list[int]]
_Unit = tuple[Span, int]  # a span and its number of tokens


def pieces_within(text: str, span: Span, limit: int, count: Count) -> list[Span]:
    """Cut a span into pieces of at most `limit` tokens: after commas and the like, else at blanks, else anywhere.

    The pieces are few and about equally long, with only white space between them.

    Args:
        text: complete text.
        span: offsets of the part to cut.
        limit: maximum number of tokens a piece, at least 1.
        count: returns the number of tokens of each text.
    """
    size = count([text[slice(*span)]])[0]
    if size <= limit:
        return [span]
    return [piece for piece, _ in _pack_units(_divide(text, span, limit, count, (_CLAUSES, _BLANKS)), limit)]


def _pack_units(units: Sequence[_Unit], limit: int) -> list[_Unit]:
    """Join neighbouring units to pieces with about equal numbers of tokens, at most `limit`."""
    total = sum(tokens for _, tokens in units)
    aim = total / max(1, math.ceil(total / limit))
    pieces: list[_Unit] = []
    for (start, end), tokens in units:
        (first, _), filled = pieces[-1] if pieces else ((start, end), limit)
        larger = filled + tokens + 1  # a blank may be a separate token
        if larger <= limit and larger - aim <= aim - filled:  # not further from the aim than before
            pieces[-1] = ((first, end), larger)
        else:
            pieces.append(((start, end), tokens))
    return pieces


def _divide(text: str, span: Span, limit: int, count: Count, separators: Sequence[re.Pattern[str]]) -> list[_Unit]:
    """Divide a span at the first separator; parts that are too long are divided at the next one."""
    if not separators:
        return _halve(text, span, limit, count)
    start, end = span
    inner = [(start + first, start + last) for first, last in _stretches(text[start:end], separators[0])]
    spans = [piece for part in inner for piece in _trim(text, *part)]
    units: list[_Unit] = []
    for part, tokens in zip(spans, count([text[first:last] for first, last in spans]), strict=True):
        if tokens <= limit:
            units.append((part, tokens))
        else:
            units += _pack_units(_divide(text, part, limit, count, separators[1:]), limit)
    return units


def _halve(text: str, span: Span, limit: int, count: Count) -> list[_Unit]:
    """Halve a word until no part has more than `limit` tokens; a single character is not divided."""
    waiting, done = [span], []
    while waiting:
        sizes = count([text[start:end] for start, end in waiting])
        halves: list[Span] = []
        for (start, end), tokens in zip(waiting, sizes, strict=True):
            if tokens <= limit or end - start == 1:
                done.append(((start, end), tokens))
            else:
                middle = _character_start(text, (start + end) // 2, end)
                halves += [(start, middle), (middle, end)]
        waiting = halves
    return sorted(done)


def _character_start(text: str, index: int, end: int) -> int:
    """Return the index, moved by up to 8 so that a character is not separated from its combining marks."""
    for later in range(index, min(index + 8, end)):
        if not unicodedata.combining(known(text[later])):
            return later
    return index
