"""Read PO files, the message catalogues of programs: section "The Format of PO Files" of the manual of gettext."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from bitext.errors import DataError, UsageError
from bitext.formats.opening import text_lines
from bitext.formats.text import (
    LICENCE,
    ParallelText,
    Skipped,
    TextRequest,
    Unit,
    find_statement,
    match_language,
    pairs_of_units,
    short_line,
)

_MAX_TEXT = 1 << 17  # characters of a text over several lines
_MAX_COMMENTS = 1_000  # lines of comments of a message that are kept
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LINE = re.compile(
    rf"\s*(?:(?P<keyword>msgctxt|msgid(?:_plural)?|msgstr(?:\[[0-9]{{1,2}}\])?|domain)\s*)?(?P<strings>(?:{_STRING.pattern}\s*)+)$"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"'}
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
_TO_ESCAPES = str.maketrans({symbol: f"\\{letter}" for letter, symbol in _ESCAPES.items()})


@dataclass
class PoText:
    """A text of a message, such as its `msgid`.

    Attributes:
        start, end: offsets of its strings, with their quotes.
        strings: what each of its strings holds, as written.
    """

    start: int
    end: int = 0
    strings: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the text without escapes."""
        return _ESCAPE.sub(_plain, "".join(self.strings))


def _plain(escape: re.Match[str]) -> str:
    octal, hexadecimal, letter = escape.groups()
    return _ESCAPES.get(letter, letter) if letter else chr(int(octal, 8) if octal else int(hexadecimal, 16))


def escape_po(text: str) -> str:
    """Write a text as the content of a string of a PO file."""
    return text.translate(_TO_ESCAPES)


@dataclass
class PoMessage:
    """A message of a PO file.

    Attributes:
        texts: its texts by their keywords: msgctxt, msgid, msgid_plural, msgstr or msgstr[0] and so on.
        flags: its flags, such as "fuzzy".
        flags_start: offset behind "#,"; without flags, that at which a line of flags may be inserted.
        comments: its other comments.
        obsolete: whether the program no longer has it.
    """

    texts: dict[str, PoText] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    flags_start: int = -1
    comments: list[str] = field(default_factory=list)
    obsolete: bool = False

    def add_comment(self, line: str, offset: int) -> None:
        """Add a line of flags, or another comment."""
        if line.startswith("#,") and (flags := line[2:].replace(",", " ").split()):
            self.flags += flags
            self.flags_start = offset + 2
        elif line.startswith(("#|", "|")) and self.flags_start < 0:
            self.flags_start = offset
        elif len(self.comments) < _MAX_COMMENTS:
            self.comments.append(line)

    @property
    def next_form(self) -> str:
        """Return the keyword of its next translation; "" if there can be none."""
        if "msgid" not in self.texts:
            return ""
        return f"msgstr[{len(self.forms)}]" if "msgid_plural" in self.texts else "" if self.forms else "msgstr"

    @property
    def is_header(self) -> bool:
        """Return whether its text is empty, and its translation the header of the file."""
        return not self.obsolete and "msgctxt" not in self.texts and self.msgid == ""

    @property
    def msgid(self) -> str:
        """Return the text to translate."""
        return self.texts["msgid"].text

    @property
    def forms(self) -> list[str]:
        """Return the translation, or its plural forms."""
        return [text.text for keyword, text in self.texts.items() if keyword.startswith("msgstr")]

    @property
    def header(self) -> dict[str, str]:
        """Return the fields of the header that it is."""
        lines = (line.partition(":") for line in "".join(self.forms).split("\n"))
        return {name.strip(): value.strip() for name, _, value in lines}


def po_messages(lines: Iterable[tuple[int, str]], name: str) -> Iterator[PoMessage]:
    """Yield the messages of a PO file.

    Args:
        lines: its lines with their offsets.
        name: its name, for errors.

    Raises:
        DataError: a line that no PO has, or a text that is too long.
    """
    message, number, size = PoMessage(), 0, 0
    for number, (start, line) in enumerate(lines, 1):
        content = line.strip()
        if obsolete := content.startswith("#~"):
            content = content[2:].lstrip()
        if not content:
            continue
        offset, is_comment = start + line.index(content), content[0] in "#|"
        match = None if is_comment else _LINE.fullmatch(content)
        keyword = match["keyword"] if match else None
        last = next(reversed(message.texts), "")
        if last.startswith("msgstr") and (is_comment or keyword in ("msgctxt", "msgid", "domain")):
            yield message
            message, last = PoMessage(), ""
        if is_comment:
            message.add_comment(content, offset)
        elif match is None or keyword in message.texts or not (keyword or last):
            raise _unreadable(name, number)
        elif keyword != "domain":
            if keyword:
                if (keyword.startswith("msgstr") or last.startswith("msgstr")) and keyword != message.next_form:
                    raise _unreadable(name, number)
                message.obsolete |= obsolete
                message.flags_start = offset if message.flags_start < 0 else message.flags_start
                message.texts[keyword] = PoText(offset + match.start("strings"))
            text = message.texts[keyword or last]
            text.strings += _STRING.findall(match["strings"])
            text.end = offset + len(content)
            size = 0 if keyword else size + len(content)
            if size > _MAX_TEXT:
                raise DataError(f"{name}, line {number:,}: a text of more than {_MAX_TEXT:,} characters.")
    if message.texts:
        if not next(reversed(message.texts)).startswith("msgstr"):
            raise _unreadable(name, number)
        yield message


def _unreadable(name: str, number: int) -> DataError:
    return DataError(f"{name}, line {number:,}: no PO that can be read. Check it: msgfmt -c.")


def read_po(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read the translated messages of a PO file; others are left out and counted.

    A message with plural forms yields its plural with the last form, and its singular with the first form if there
    are several. The licence is read from the comments before the header.

    Raises:
        DataError: the file is no PO.
        UsageError: the languages are not clear: a header seldom names the language of the messages.
    """
    skipped = Skipped(request.strict)
    messages = po_messages(((0, line) for line in text_lines(stream, name)), name)
    first = next(messages, PoMessage())
    header = first.header if first.is_header else {}
    languages = _catalogue_languages(header, request, name)
    rest = messages if header else chain([first] if first.texts else [], messages)
    chosen, pairs = pairs_of_units(_units(rest, *languages, skipped), request, name, skipped)
    licence = find_statement("\n".join(first.comments), what=LICENCE)
    return ParallelText(chosen, pairs, licence, header.get("Project-Id-Version"), skipped)


def _catalogue_languages(header: dict[str, str], request: TextRequest, name: str) -> tuple[str, str]:
    """Return the languages of the messages and of their translations, from the header or the request.

    Raises:
        UsageError: one of the languages is not known.
    """
    translated = short_line(header.get("Language", "")) or request.target or ""
    rest = [tag for tag in (request.source, request.target) if tag and match_language(tag, [translated]) is None]
    original = short_line(header.get("X-Source-Language", "")) or (rest[0] if len(rest) == 1 else "")
    if not translated or not original:
        raise UsageError(
            f"{name}: its header names {translated or 'no language'} for the translations, and "
            f"{original or 'none'} for the messages. Say both, such as: --source "
            f"{'de' if translated.startswith('en') else 'en'} --target {translated or 'de'}."
        )
    return original, translated


def _units(messages: Iterable[PoMessage], original: str, translated: str, skipped: Skipped) -> Iterator[Unit]:
    for message in messages:
        forms = message.forms
        if message.obsolete or "fuzzy" in message.flags or not all(forms):
            skipped.counts["obsolete" if message.obsolete else "fuzzy" if all(forms) else "untranslated"] += 1
            continue
        plural = message.texts.get("msgid_plural")
        if not plural or len(forms) > 1:
            yield {original: message.msgid, translated: forms[0]}
        if plural:
            yield {original: plural.text, translated: forms[-1]}
