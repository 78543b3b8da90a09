"""Read PO files, the message catalogues of programs."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bitext.errors import DataError, UsageError, require
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

if TYPE_CHECKING:
    import polib

_MOST_COMMENTS = 1_000  # lines of comments in which the licence is looked for
_MAX_CHARACTERS = 1 << 25  # characters; a catalogue is read at once
_LONGEST_PART = 1 << 17  # characters of a text over several lines, which polib joins in quadratic time
_KEYWORD = re.compile(r'\s*(msg\w+(?:\[\d+\])?)\s*"')  # start of another part


def read_po(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read the translated messages of a PO file; others are left out and counted.

    A message with plural forms yields its plural with the last form, and its singular with the first form if there
    are several. Of the comments, only flags and the licence are read.

    Raises:
        MissingExtraError: the package polib is not installed.
        DataError: the file is no PO, or longer than 33,554,432 characters.
        UsageError: the languages are not clear: a header seldom names the language of the messages.
    """
    pofile = require("polib", extra="readers", purpose=f"Reading {name}").pofile
    skipped, comments = Skipped(request.strict), list[str]()
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8", newline="\n", suffix=".po") as copy:
        size = part = 0
        for number, line in enumerate(text_lines(stream, name), 1):
            begins = _KEYWORD.match(line)
            written = copy.write(f"{_plain_line(line, comments, skipped)}\n")
            size, part = size + len(line), 0 if begins or line[:1] in ("", "#") else part + written
            if size > _MAX_CHARACTERS:
                raise DataError(f"{name}: longer than {_MAX_CHARACTERS:,} characters. Divide it, as with msggrep.")
            if part > _LONGEST_PART:
                raise DataError(f"{name}, line {number:,}: a text of more than {_LONGEST_PART:,} characters.")
        copy.flush()
        try:
            catalogue = pofile(copy.name, encoding="utf-8")
        except (OSError, ValueError) as error:
            match = re.search(r"line (\d+)", str(error))
            at = f", line {match[1]}" if match else ""
            raise DataError(f"{name}{at}: no PO that can be read. Check it: msgfmt -c.") from error
    languages = _catalogue_languages(catalogue.metadata, request, name)
    chosen, pairs = pairs_of_units(_messages(catalogue, *languages, skipped), request, name, skipped)
    origin = catalogue.metadata.get("Project-Id-Version")
    return ParallelText(chosen, pairs, find_statement("\n".join(comments), what=LICENCE), origin, skipped)


def _plain_line(line: str, comments: list[str], skipped: Skipped) -> str:
    """Return a line in the only form that polib reads, "" for a comment; obsolete messages are counted."""
    text = line.strip()
    if not text.startswith("#"):
        return _KEYWORD.sub(r'\1 "', line)
    if text.startswith("#,"):
        return f"#, {text[2:].strip()}"
    if text.startswith("#~"):
        skipped.counts["obsolete"] += bool(re.match(r"msgid\b", text[2:].lstrip()))
    elif len(comments) < _MOST_COMMENTS:
        comments.append(text)
    return ""


def _catalogue_languages(metadata: dict[str, str], request: TextRequest, name: str) -> tuple[str, str]:
    """Return the languages of the messages and of their translations, from the header or the request.

    Raises:
        UsageError: one of the languages is not known.
    """
    translated = short_line(metadata.get("Language", "")) or request.target or ""
    rest = [tag for tag in (request.source, request.target) if tag and match_language(tag, [translated]) is None]
    original = short_line(metadata.get("X-Source-Language", "")) or (rest[0] if len(rest) == 1 else "")
    if not translated or not original:
        raise UsageError(
            f"{name}: its header names {translated or 'no language'} for the translations, and "
            f"{original or 'none'} for the messages. Say both, such as: --source "
            f"{'de' if translated.startswith('en') else 'en'} --target {translated or 'de'}."
        )
    return original, translated


def _messages(catalogue: polib.POFile, original: str, translated: str, skipped: Skipped) -> Iterator[Unit]:
    for entry in catalogue:
        if not entry.translated():
            skipped.counts["fuzzy" if entry.fuzzy else "untranslated"] += 1
            continue
        forms = entry.msgstr_plural
        if len(forms) != 1:
            yield {original: entry.msgid, translated: forms[min(forms)] if forms else entry.msgstr}
        if forms:
            yield {original: entry.msgid_plural, translated: forms[max(forms)]}
