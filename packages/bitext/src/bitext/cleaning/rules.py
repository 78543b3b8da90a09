"""Judge each pair by rules, with statistics learned from a sample of the corpus.

Shapes: N pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.codes import CodedLines, encode_lines
from bitext.cleaning.language import LanguageModel, learn_languages
from bitext.defects import LEAST_WORDS, letters_of, repeats, unreadable
from bitext.languages import SENTENCE_ENDS
from bitext.letters import code_points, has_text
from bitext.literals import placeholders_of

REASONS = (  # in the order in which they are tried; a pair is removed for the first that holds
    "kept", "empty", "encoding", "copy", "language", "length", "cut", "repetition", "numbers", "placeholders",
    "boilerplate", "duplicate", "lexical", "models",
)  # fmt: skip
# added to both lengths, so that a short phrase may be much shorter than its translation
_CHARACTERS, _WORDS = (15, 4)
_WITHOUT_CUT = 0.005  # share of uncut pairs that a missing mark, or a small first letter, may remove
_MANY_OPEN = 0.12  # share of pairs with an open side, above which only much too short sides are cut
_SHORTENED = 1.4  # factor by which these sides must be too short
_SHORT_COPY = 2.0  # nats for the other language, above which a copy of few words is no name

_END = re.compile(rf"""[{SENTENCE_ENDS}:;]["'»«”“’)\]』」〉》]*\s*$""")
_OPEN = re.compile(r"""[^\W_]["'»«”“’]*\s*$|[,،、]\s*$""")
_NUMBER = re.compile(r"\d(?:[\d.,:]*\d)?")
_LARGE_UNITS = re.compile(r"\d\s*[천만억조十百千万億兆]")  # a number that other languages write with other digits
_NOT_DIGIT = re.compile(r"\D")


@dataclass(frozen=True)
class Profile:
    """Facts about a corpus, learned from a sample of its pairs.

    Attributes:
        character_ratio, word_ratio: median length of the target, relative to the source.
        cut_at_end: shortness above which a side without a mark at its end counts as cut, if the other has one.
        cut_at_start: likewise for a side that starts with a lower-case letter, if the other has a capital.
        models: recognise lines in a language other than the language of their side.
    """

    character_ratio: float
    word_ratio: float
    cut_at_end: float
    cut_at_start: float
    models: tuple[LanguageModel, LanguageModel]


def learn_profile(sources: Sequence[str], targets: Sequence[str], codes: tuple[str, str]) -> Profile:
    """Learn the profile of a corpus from the two sides of a sample (N)."""
    sides = encode_lines(sources), encode_lines(targets)
    filled = [has_text(source) and has_text(target) for source, target in zip(sources, targets, strict=True)]
    pairs = [pair for pair, has_text in zip(zip(sources, targets, strict=True), filled, strict=True) if has_text]
    characters = np.array([[len(source), len(target)] for source, target in pairs] or [[1, 1]], np.float64)
    words = np.array(
        [[len(source.split()), len(target.split())] for source, target in pairs] or [[1, 1]], np.float64
    )
    ratio = float(np.median(characters[:, 1] / characters[:, 0]))
    return Profile(
        character_ratio=ratio,
        word_ratio=float(np.median(words[:, 1] / words[:, 0])),
        cut_at_end=_least_shortness(pairs, ratio, _open_at_end),
        cut_at_start=_least_shortness(pairs, ratio, _open_at_start),
        models=learn_languages(sides, codes),
    )


def _least_shortness(
    pairs: Sequence[tuple[str, str]], ratio: float, open_side: Callable[[str, str], int | None]
) -> float:
    """Return the shortness above which an open side counts as cut.

    If a corpus is careless with marks and capitals, an open side is as often too long as too short; a cut side
    is too short. So the number of uncut pairs with a shortness above a value equals the number below its inverse.
    """
    sides = [(open_side(*pair), pair) for pair in pairs]
    inverse = sorted(1 / _shortness(*pair, side, ratio) for side, pair in sides if side is not None)
    if len(inverse) > _MANY_OPEN * len(pairs):
        return _SHORTENED
    most = int(_WITHOUT_CUT * len(pairs))
    return min(_SHORTENED, inverse[-most - 1]) if len(inverse) > most else 0.0


def _shortness(source: str, target: str, side: int, ratio: float) -> float:
    """Return the factor by which a side (0 or 1) is shorter than the other suggests, in characters."""
    factor = (len(target) + _CHARACTERS) / (len(source) * ratio + _CHARACTERS)
    return 1 / factor if side else factor


def _open_at_end(source: str, target: str) -> int | None:
    """Return the side (0 or 1) that ends in a word while the other ends with a mark, or None."""
    ended = bool(_END.search(source)), bool(_END.search(target))
    if ended[0] == ended[1] or not _OPEN.search(target if ended[0] else source):
        return None
    return int(ended[0])


def _open_at_start(source: str, target: str) -> int | None:
    """Return the side (0 or 1) that starts with a small letter while the other has a capital, or None."""
    first, other = source.lstrip(" \"'»«„“”‘-–([")[:1], target.lstrip(" \"'»«„“”‘-–([")[:1]
    if first.islower() and other.isupper():
        return 0
    return 1 if first.isupper() and other.islower() else None


def _is_cut(source: str, target: str, profile: Profile) -> bool:
    for side, least in (
        (_open_at_end(source, target), profile.cut_at_end),
        (_open_at_start(source, target), profile.cut_at_start),
    ):
        if side is not None and _shortness(source, target, side, profile.character_ratio) > least:
            return True
    return False


def word_counts(sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of words of both sides (N, 2)."""
    return np.array([[len(text.split()) for text in side] for side in (sources, targets)], np.int64).T


def _length_factors(
    sources: Sequence[str], targets: Sequence[str], words: NDArray[np.int64], profile: Profile
) -> NDArray[np.float32]:
    """Return the factor by which one side is longer than the other suggests (N,), in characters or words (N, 2)."""
    characters = np.array([list(map(len, sources)), list(map(len, targets))], np.float64).T
    factors = [
        (lengths[:, 1] + slack) / (lengths[:, 0] * ratio + slack)
        for lengths, ratio, slack in (
            (characters, profile.character_ratio, _CHARACTERS),
            (words, profile.word_ratio, _WORDS),
        )
    ]
    return np.maximum.reduce([np.maximum(factor, 1 / factor) for factor in factors]).astype(np.float32)


def apply_rules(
    sources: Sequence[str],
    targets: Sequence[str],
    profile: Profile,
    max_ratio: float,
    min_odds: float,
    off: set[str],
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.int64]]:
    """Judge pairs (N) by the rules; the texts have no line ends inside.

    A pair is removed above a length factor of `max_ratio`, or log-odds of another language of `min_odds` nats,
    unless the reason is `off`.

    Returns:
        The index in `REASONS` of each pair (N,); its scores (N, 2): length factor, log-odds of the language; the
        number of words of both sides (N, 2).
    """
    words = word_counts(sources, targets)
    factors = _length_factors(sources, targets, words, profile)
    sides: tuple[CodedLines, CodedLines] = encode_lines(sources), encode_lines(targets)
    odds = np.maximum(*(model.score(lines)[0] for model, lines in zip(profile.models, sides, strict=True)))
    reasons = np.zeros(len(sources), np.uint8)
    repeating = _have_repeated_letters(sources) | _have_repeated_letters(targets)
    scored = zip(sources, targets, factors.tolist(), odds.tolist(), repeating.tolist(), strict=True)
    for index, (source, target, factor, odd, repeated) in enumerate(scored):
        for reason in _faults(source, target, profile, factor > max_ratio, odd, min_odds, repeated):
            if reason not in off:
                reasons[index] = REASONS.index(reason)
                break
    return reasons, np.stack([factors, odds], 1), words


def _faults(
    source: str,
    target: str,
    profile: Profile,
    unlike: bool,
    odds: float,
    min_odds: float,
    repeated_letters: bool,
) -> Iterator[str]:
    """Yield the reasons that hold against a pair, in the order of `REASONS`."""
    if not (has_text(source) and has_text(target)):
        yield "empty"
        return
    if unreadable(source) or unreadable(target):
        yield "encoding"
    if _is_copy(source, target, odds):
        yield "copy"
    if odds > min_odds:
        yield "language"
    if unlike:
        yield "length"
    if _is_cut(source, target, profile):
        yield "cut"
    if _repetitions_differ(source, target, repeated_letters):
        yield "repetition"
    if _numbers_differ(source, target):
        yield "numbers"
    if _placeholders_differ(source, target):
        yield "placeholders"


def _is_copy(source: str, target: str, odds: float) -> bool:
    """Return whether both sides are the same.

    A copy of few words may be a name, and counts only if it looks like another language.
    """
    first, other = source[:1].casefold(), target[:1].casefold()
    if first != other and source[-1:] != target[-1:]:
        return False
    if first[:1] != other[:1] and first.isalnum() and other.isalnum():
        return False  # first letters of both sides
    letters = letters_of(source)
    if not letters or letters != letters_of(target):
        return False
    return len(source.split()) >= LEAST_WORDS or odds > _SHORT_COPY


def _repetitions_differ(source: str, target: str, repeated_letters: bool) -> bool:
    """Return whether one side alone repeats itself; `repeated_letters` tells whether letters of a side repeat."""
    of_source, of_target = (
        (repeated_letters or _has_repeated_words(text)) and repeats(text) for text in (source, target)
    )
    return of_source != of_target


def _have_repeated_letters(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each line has up to six letters, or blanks, eight times in a row (N,).

    In eight equal parts of a size, seven times that size characters in a row equal the character one size later.
    """
    repeated = np.zeros(len(texts), np.bool_)
    codes = code_points("\n".join([*texts, ""]))
    ends = np.flatnonzero(codes == ord("\n"))
    for size in range(1, 7):
        equal = (codes[size:] == codes[:-size]).tobytes()
        run = b"\1" * (7 * size)
        start = equal.find(run)
        while start >= 0:
            line = np.searchsorted(ends, start)
            repeated[line] = True
            start = equal.find(run, ends[line] + 1)
    return repeated


def _has_repeated_words(text: str) -> bool:
    """Return whether more than two words of a text occurred in it before."""
    words = text.split()
    return len(words) - len(set(words)) > 2


def _numbers_differ(source: str, target: str) -> bool:
    """Return whether both sides have numbers in digits, and none of them is on both."""
    first = _digits_of(source)
    if not first or not (second := _digits_of(target)) or first & second:
        return False
    return not (_LARGE_UNITS.search(source) or _LARGE_UNITS.search(target))


def _digits_of(text: str) -> set[str]:
    """Return the numbers of a text without separators and leading zeros."""
    return {_NOT_DIGIT.sub("", number).lstrip("0") or "0" for number in _NUMBER.findall(text)}


def _placeholders_differ(source: str, target: str) -> bool:
    first, second = placeholders_of(source), placeholders_of(target)
    return first != second and sorted(first) != sorted(second)
