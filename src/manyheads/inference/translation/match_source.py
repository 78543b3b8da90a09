"""Match a translation to its source: its end mark, a small letter at its beginning, quotation marks around it.

An end mark is of one of the kinds ".?!…:;,". Closing quotes and brackets may stand behind it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial

from bitext.languages import base_language, end_mark, full_stop, lower, script_of
from bitext.letters import has_text
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.text.sentences import CLOSERS, OPENERS, ends_in_abbreviation, sentence_spans

_MARKS = frozenset(".?!:;,")
# Marks that NFKC leaves; it writes wide marks narrow, and "…" as three dots.
_SAME_KIND = {".": "。।॥۔", "..": "⋯", "?": "؟‽", ";": "؛·", ",": "،、"}
_TO_KIND = str.maketrans({mark: kind for kind, marks in _SAME_KIND.items() for mark in marks})
# Full stops of the languages whose marks are matched: Thai has no marks, and Armenian asks inside of a word.
_STOPS = frozenset(".。।۔")
_OPENING = {"?": "¿", "!": "¡"}  # of Spanish
_QUOTATION = '"„“”«»‟「」『』'
_NO_QUOTATION = str.maketrans(dict.fromkeys(_QUOTATION))
_CLOSING = {'"': '"', "„": "“”", "“": "”", "”": "”", "«": "»", "»": "«", "「": "」", "『": "』"}
_QUOTED = re.compile(  # a text in quotation marks that holds no others
    rf"\s*(?P<open>[{_QUOTATION}])[^{_QUOTATION}]+(?P<close>[{_QUOTATION}])(?P<marks>[.?!…:;,]?)\s*"
)
_CAPITAL_NOUNS = frozenset(("de", "lb", "nds", "gsw"))
# A word that is no part of an address, a name of a file or a formula.
_WORD = re.compile(r"[^\W\d_]++(?:['’-][^\W\d_]++)*+(?![\w@/\\]|[.:]\w)")


def match_source(output: str, source: str, languages: tuple[str, str]) -> str:
    """Return a translation with the kind of end mark of its source, its small first letter and its quotation marks.

    A source that is a quotation as a whole gives its quotation marks to a translation that is none.

    Left as they are: the end mark in languages with other marks, after an emoji and after an abbreviation; the
    first letter in German, of the English I, of a word with another capital and of a name that the source has; all
    text of an unknown language.

    Args:
        output: the translation.
        source: the source, one sentence or a few.
        languages: codes of the languages of the source and the translation.
    """
    if not all(map(script_of, languages)):
        return output
    output = _match_quotation(output, source)
    if _STOPS.issuperset(map(full_stop, languages)):
        output = _match_end(output, source, languages)
    return _match_first_letter(output, source, languages[1])


def _match_quotation(output: str, source: str) -> str:
    quoted = _QUOTED.fullmatch(source)
    if not quoted or quoted["close"] not in _CLOSING.get(quoted["open"], "") or not has_text(output):
        return output
    if _QUOTED.fullmatch(output):
        return output
    bare = output.translate(_NO_QUOTATION).strip()
    body = bare.rstrip(".?!…:;,") if quoted["marks"] else bare
    return f"{quoted['open']}{body}{quoted['close']}{bare[len(body) :]}" if has_text(body) else output


def _match_end(output: str, source: str, languages: tuple[str, str]) -> str:
    (source_body, source_tail), (body, tail) = map(_split_end, (source, output), languages)
    wanted, found = map(_kind_of, (source_tail, tail), languages)
    ends_known = (wanted or _ends_in_word(source_body)) and (found or _ends_in_word(body))
    if wanted == found or not (body and source_body and ends_known):
        return output
    if base_language(languages[1]) == "es":
        body = _match_opening(body, wanted)
    first = next((index for index, character in enumerate(tail) if _is_mark(character)), len(tail))
    if not found and source_tail.rstrip("".join(CLOSERS)) != source_tail:
        first = 0  # as in the source, before the closing quote
    kept = "".join(character for character in tail[first:] if not _is_mark(character))
    return body + tail[:first].rstrip() + (end_mark(wanted, languages[1]) if wanted else "") + kept


def _split_end(text: str, language: str) -> tuple[str, str]:
    """Split a text after its last letter, number or symbol, or after the dot of an abbreviation."""
    end = len(text)
    while end and (_is_mark(text[end - 1]) or text[end - 1] in CLOSERS or not has_text(text[end - 1])):
        end -= 1
    end += text.startswith(".", end) and ends_in_abbreviation(text[:end], language)
    return text[:end], text[end:]


def _kinds(text: str) -> str:
    """Return a text with each mark as that of its kind."""
    return unicodedata.normalize("NFKC", text).translate(_TO_KIND)


def _is_mark(character: str) -> bool:
    return _MARKS.issuperset(_kinds(character))


def _kind_of(tail: str, language: str) -> str:
    """Return the kind of the end mark of a text, "" without one; of several marks the strongest, then the last."""
    kinds = _kinds(tail)
    if script_of(language) == "Grek":
        kinds = kinds.replace(";", "?")
    if "?" in kinds or "!" in kinds:
        return "?" if "?" in kinds else "!"
    return "…" if ".." in kinds else next((kind for kind in reversed(kinds) if kind in _MARKS), "")


def _ends_in_word(body: str) -> bool:
    """Return whether a text ends in a word or number, so that the lack of a mark behind it means something."""
    category = unicodedata.category(body[-1]) if body else ""
    return category[:1] in ("L", "M", "N") or category == "Sc" or body[-1:] == "%"


def _match_opening(body: str, kind: str) -> str:
    """Write the mark at the beginning of a question or exclamation, or remove it."""
    start, _ = sentence_spans(body, "es")[-1]
    opening, place = _OPENING.get(kind, ""), max(body.rfind(mark, start) for mark in _OPENING.values())
    if place < 0:
        first = _start_of(body, start)
        return body[:first] + opening + body[first:]
    is_word = body[place + 1 : place + 2].isspace()  # numbered in the word alignment
    return body if is_word and not opening else body[:place] + opening + body[place + 1 :]


def _match_first_letter(output: str, source: str, language: str) -> str:
    start = _start_of(output)
    model, match = _WORD.match(source, _start_of(source)), _WORD.match(output, start)
    if model is None or match is None or base_language(language) in _CAPITAL_NOUNS:
        return output
    word, first = match[0], match[0][0]
    small = model[0][0].islower() and model[0][0] != model[0][0].title()  # Georgian has no capitals in sentences
    is_name = re.search(rf"\b{re.escape(word)}\b", source) is not None
    is_initial = len(word) == 1 and output.startswith(".", match.end())
    english_i = base_language(language) == "en" and re.split("['’]", word)[0] == "I"
    if not small or any(map(str.isupper, model[0][1:] + word[1:])) or is_name or is_initial or english_i:
        return output
    return output[:start] + lower(first, language) + output[start + 1 :]


def _start_of(text: str, start: int = 0) -> int:
    """Return the index of the first character after opening quotes, brackets, dashes and what cannot be seen."""
    while start < len(text) and (text[start] in OPENERS or not has_text(text[start])):
        start += 1
    return start


class MatchSource(Stage):
    """Outputs that match their sources (`SearchOptions.match_source`), but for streams, whose end is not known."""

    def writer(self, draft: Draft, part: int) -> Callable[[str], str] | None:
        """Return the function that matches an output of a part to the part."""
        if not self.request.options.match_source or self.request.method == "stream":
            return None
        data = self.translator.config.data
        return partial(match_source, source=draft.line.part_text(part), languages=(data.source, data.target))
