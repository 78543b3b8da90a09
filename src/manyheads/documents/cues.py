"""Subtitles: sentences that run over cues are joined, translated whole, and broken into the cues again.

Limits are those of the Netflix Timed Text Style Guides: two lines of 42 letters, and 17 letters a second; in Korean
16 and 12, in Chinese 16 and 9, where letters of half width count half. Japanese has those of Chinese: its guide
asks for 13 and 4, which only a summary of the text can reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bitext.languages import SENTENCE_ENDS, script_of
from manyheads.documents.blocks import Block, Element, Token, make_block
from manyheads.documents.cue_breaking import UNSPACED, Slot, break_text, width
from manyheads.documents.document import Document, ReadOptions, text_document
from manyheads.documents.tag_projection import project_tags
from manyheads.documents.units import Edit, Translated, Unit
from manyheads.errors import DataError
from manyheads.text.sentences import CLOSERS, sentence_spans

_LATIN_LIMITS = 42, 17  # letters a line, letters a second
_WIDE_LIMITS = {"Kore": (16, 12), "Hans": (16, 9), "Hant": (16, 9), "Jpan": (16, 9)}
_MAX_PAUSE, _MAX_OVERLAP = 2.0, 0.5  # seconds between two cues of a sentence
_MAX_CUES, _MAX_LETTERS = 8, 800  # of a unit
_PUNCTUATED = 0.25  # of the texts of a file end in a sentence mark; if fewer do, nothing tells where sentences end

_MUSIC = r"[♩-♬]+|(?<!\S)#(?!\S)"
_NOTE = (  # for the hearing-impaired; in round brackets at the beginning of a line or behind a sentence
    r"(?:\[[^\[\]]*\]|［[^［］]*］|【[^【】]*】|（[^（）]*）|(?<![\w,;:] )(?:(?<!\w)|(?<=\\N))\([^()]*\)):?"
)
_CAPITAL = "A-ZÀ-ÖØ-ÞΑ-ΩА-Я"
_SPEAKER = rf"[-–—‐](?![\d-])|[{_CAPITAL}][{_CAPITAL}\d .'’-]{{1,40}}:(?=\s)"  # a dash, or a label such as "MAN:"
_PLACE = re.compile(r"\\(?:an?\d+|(?:pos|move)\([^()]*\))|<v[^<>]*>")  # position and speaker within the text
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_TIME = r"((?:\d{1,4}:)?\d{1,2}:\d{1,2}[,.]\d{1,3})"
TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(.*)")
_NO_BRACKETS = str.maketrans("", "", "[](){}［］【】（）")


def seconds(time: str) -> float:
    """Return the seconds of a time such as 01:02:03,456."""
    numbers = _NUMBER.findall(time.replace(",", "."))
    return sum(float(number) * unit for number, unit in zip(reversed(numbers), (1, 60, 3600), strict=False))


class Cue(NamedTuple):
    """A subtitle of a file.

    Attributes:
        start, end: offsets of its text.
        first, last: its times in seconds.
        group: what the cues of a sentence have in common, such as their style.
    """

    start: int
    end: int
    first: float
    last: float
    group: str = ""


@dataclass(frozen=True)
class CueFormat:
    r"""A format of subtitles.

    Attributes:
        sign: what its files hold.
        find: yields the cues of a file.
        tags: its inline markup, as a regular expression: the groups `open` and `close` are names of tags, any
            other match is an atom (see `Atom`).
        line: a line break, as a regular expression.
        decode, encode: read and write the text between tags; "\n" is a line break of the written text.
    """

    sign: str
    find: Callable[[str], Iterable[Cue]]
    tags: str
    line: str
    decode: Callable[[str], str]
    encode: Callable[[str], str]

    def read(self, data: bytes, options: ReadOptions) -> Document:
        """Return the document of a file; see `Format.read`."""
        reader = _CueReader(self, options)
        document = text_document(data, [reader.notes, reader.sentences], options)
        if self.sign not in document.parts[0].text and data.strip():
            raise DataError(f"{options.name} has no {self.sign}, as its format has. Name another one: --format.")
        return document


@dataclass(frozen=True)
class _CueText:
    """A text of a cue: what one speaker says.

    Its slot is that of a unit of its own; marks may tell that no other text belongs to its first or last sentence.
    """

    block: Block
    start: int
    end: int
    cue: Cue
    slot: Slot
    is_begun: bool
    is_ended: bool


@dataclass(frozen=True)
class _CueUnit(Unit):
    """Text of one or more cues."""

    texts: Sequence[_CueText] = ()
    slots: Sequence[Slot] = ()

    @property
    def is_tagged(self) -> bool:
        return len(self.texts) > 1 or self.texts[0].block.is_tagged

    def edits(self, translated: Translated) -> Iterator[Edit]:
        for text, part in zip(self.texts, break_text(self.text, translated, self.slots), strict=True):
            yield Edit(text.start, text.end, project_tags(text.block, part.text, part.links))


class _CueReader:
    """Reads the units of files of a format."""

    def __init__(self, form: CueFormat, options: ReadOptions) -> None:
        self.form, self.language = form, options.source
        wide_limits = _WIDE_LIMITS.get(script_of(options.target))
        length, speed = wide_limits or _LATIN_LIMITS
        columns = 2 if wide_limits else 1  # of a letter
        self.line_length = columns * (options.line_length or length)
        self.speed = columns * (options.reading_speed or speed)
        tags, line = f"(?i:{form.tags})", f"(?:{form.line})"
        self.tags, self.line = re.compile(tags, re.DOTALL), re.compile(line)
        unnamed = re.sub(r"\?P<\w+>", "?:", tags)
        beginning = rf"(?:(?:{unnamed}|[ \t]){{0,9}}(?:(?P<speaker>{_SPEAKER}|{_MUSIC})|{_NOTE}(?:{line})?))*[ \t]*"
        self.beginning = re.compile(beginning, re.DOTALL)
        own_line = f"(?:{line}(?!(?:{unnamed}|[ \t]){{0,9}}(?:{_SPEAKER}|{_MUSIC})))?"
        self.pieces = re.compile(f"{tags}|{line}?(?P<note>{_NOTE}){own_line}|{_MUSIC}|(?P<line>{line})", re.DOTALL)

    def notes(self, text: str) -> Iterator[Unit]:
        """Yield the notes for the hearing-impaired, such as "[door creaks]", without their brackets."""
        for cue in self.form.find(text):
            for match in self.pieces.finditer(text, cue.start, cue.end):
                if match["note"]:
                    end = match.start("note") + len(match["note"].rstrip(":")) - 1
                    yield self.unit([self.cue_text(text, cue, match.start("note") + 1, end, room=0, is_note=True)])

    def sentences(self, text: str) -> Iterator[Unit]:
        """Yield the running texts; cues of the same sentence are one unit."""
        texts = [found for cue in self.form.find(text) for found in self.speeches(text, cue) if found.block.text]
        ended = sum(found.block.text.rstrip(CLOSERS)[-1:] in SENTENCE_ENDS for found in texts)
        is_punctuated = ended >= _PUNCTUATED * len(texts)
        units, latest = list[list[_CueText]](), dict[str, list[_CueText]]()
        for found in texts:
            before = latest.get(found.cue.group)
            if before and is_punctuated and self.goes_on(before, found):
                before.append(found)
            else:
                latest[found.cue.group] = [found]
                units.append(latest[found.cue.group])
        return map(self.unit, units)

    def goes_on(self, before: Sequence[_CueText], following: _CueText) -> bool:
        """Return whether the sentence of some texts goes on in the text that follows."""
        pause = following.cue.first - before[-1].cue.last
        if before[-1].is_ended or following.is_begun or not -_MAX_OVERLAP <= pause <= _MAX_PAUSE:
            return False
        if len(before) == _MAX_CUES or sum(len(found.block.text) for found in before) > _MAX_LETTERS:
            return False
        end, beginning = before[-1].block.text[-_MAX_LETTERS:], following.block.text[:_MAX_LETTERS]
        if end.isupper() != beginning.isupper():  # a title on the screen
            return False
        spans = sentence_spans(f"{end}{_blank(end, beginning)}{beginning}", self.language)
        return all(stop != len(end) for _, stop in spans)

    def unit(self, texts: Sequence[_CueText]) -> Unit:
        whole, slots = "", []
        for found in texts:
            whole += _blank(whole, found.block.text) if whole else ""
            slots.append(found.slot._replace(start=len(whole)))
            whole += found.block.text
        between = texts[0].block.escape("\n")
        return _CueUnit(Block(whole, Element()), texts[0].start, texts[-1].end, between, texts, slots)

    def speeches(self, text: str, cue: Cue) -> Iterator[_CueText]:
        """Yield the texts of a cue, which is divided before each line that begins with a dash, a label or music."""
        cue = cue._replace(group="".join([cue.group, *_PLACE.findall(text, cue.start, cue.end)]))
        room = self.speed * (cue.last - cue.first) / max(1, self.width(text[cue.start : cue.end]))
        borders = [cue.start]
        for match in self.pieces.finditer(text, cue.start, cue.end):
            lead = self.beginning.match(text, match.end(), cue.end) if match["line"] else None
            if lead and lead["speaker"]:
                borders += match.span()
        for start, end in zip(borders[::2], [*borders[1::2], cue.end], strict=True):
            yield self.cue_text(text, cue, start, end, room)

    def cue_text(
        self, text: str, cue: Cue, start: int, end: int, room: float, *, is_note: bool = False
    ) -> _CueText:
        """Return the text from `start` to `end`, without the marks at its beginning, or that of a note.

        Args:
            text: text of the file.
            cue: the cue.
            start: where the text begins.
            end: where it ends.
            room: columns that can be read in the time of a column of the source.
            is_note: whether brackets surround it.
        """
        line_end = "\r\n" if text.endswith("\r\n", 0, cue.start) else "\n"

        def write(written: str) -> str:
            written = written.translate(_NO_BRACKETS) if is_note else written
            return self.form.encode(written).replace("\n", line_end)

        lead = None if is_note else self.beginning.match(text, start, end)
        begin = lead.end() if lead else start
        tokens = list(self.tokens(text, begin, end))
        block = make_block(tokens, escape=write)
        lines = [self.width(line) for line in self.line.split(text[begin:end])]
        marks = 2 * is_note + self.width(self.line.split(text[start:begin])[-1])
        marks += sum(self.width(self.line.split(token.raw)[0]) for token in tokens if token.kind == "atom")
        slot = Slot(
            text=block.text,
            start=0,
            columns=max(room * self.width(text[start:end]), width(block.text)),
            line_length=max(self.line_length // 2, self.line_length - marks),
            lines=len(lines),
            longest=max(lines),
        )
        is_ended = any(token.kind == "atom" and re.fullmatch(_MUSIC, token.raw) for token in tokens)
        return _CueText(block, begin, end, cue, slot, bool(lead and lead["speaker"]), is_ended)

    def width(self, text: str) -> int:
        """Return the width of a text without its tags."""
        return width(self.form.decode(self.tags.sub("", text)))

    def tokens(self, text: str, start: int, end: int) -> Iterator[Token]:
        for match in self.pieces.finditer(text, start, end):
            if start < match.start():
                yield Token("text", self.form.decode(text[start : match.start()]))
            start = match.end()
            if match["line"]:
                yield Token("text", _blank(text[max(0, match.start() - 1)], text[start : start + 1]))
            elif match["open"]:
                yield Token("open", match[0], match["open"].lower())
            elif match["close"]:
                yield Token("close", match[0], match["close"].lower())
            else:
                yield Token("atom", match[0])
        if start < end:
            yield Token("text", self.form.decode(text[start:end]))


def _blank(before: str, behind: str) -> str:
    """Return what stands between two texts: nothing between letters of scripts without blanks."""
    return "" if re.fullmatch(f"[{UNSPACED}]{{2}}", before[-1:] + behind[:1]) else " "
