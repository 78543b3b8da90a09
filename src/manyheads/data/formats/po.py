"""Read PO, the message catalogues of programs."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator

import polib

from manyheads.data.formats.opening import text_lines
from manyheads.data.formats.text import (
    LICENCE,
    ParallelText,
    TextRequest,
    Unit,
    match_language,
    pairs_of_units,
    stated,
)  # fmt: skip
from manyheads.errors import DataError, UsageError

__all__ = ["read_po"]

LARGEST = 1 << 25  # characters; a catalogue is read at once


def read_po(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read the translated messages of a PO file; fuzzy and obsolete ones are left out.

    A message with plural forms gives its singular with the first form, where there is more than one, and its plural
    with the last.

    Raises:
        DataError: the file is no PO, or longer than 33,554,432 characters.
        UsageError: the languages are not clear: a header seldom names the one of the messages.
    """
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8", newline="\n", suffix=".po") as copy:
        size = 0
        for line in text_lines(stream, name):
            size += copy.write(f"{line}\n")
            if size > LARGEST:
                raise DataError(f"{name}: longer than {LARGEST:,} characters. Divide it: msgsplit, msggrep.")
        copy.flush()
        try:
            catalogue = polib.pofile(copy.name, encoding="utf-8")
        except (OSError, ValueError) as error:
            number = re.search(r"line (\d+)", str(error))
            at = f", line {number[1]}" if number else ""
            raise DataError(f"{name}{at}: no PO that can be read. Check it: msgfmt -c.") from error
    languages = catalogue_languages(catalogue.metadata, request, name)
    chosen, pairs = pairs_of_units(messages(catalogue, *languages), request, name)
    origin = catalogue.metadata.get("Project-Id-Version")
    return ParallelText(chosen, pairs, stated(catalogue.header, what=LICENCE), origin)


def catalogue_languages(metadata: dict[str, str], request: TextRequest, name: str) -> tuple[str, str]:
    """Return the languages of the messages and of their translations, as the header or the user says.

    Raises:
        UsageError: one of them is not known.
    """
    translated = metadata.get("Language") or request.target or ""
    wanted = [one for one in (request.source, request.target) if one and match_language(one, [translated]) is None]
    original = metadata.get("X-Source-Language") or (wanted[0] if len(wanted) == 1 else "")
    if not translated or not original:
        raise UsageError(
            f"{name}: its header names {translated or 'no language'} for the translations, and "
            f"{original or 'none'} for the messages. Say both: --source en --target {translated or 'de'}."
        )
    return original, translated


def messages(catalogue: polib.POFile, original: str, translated: str) -> Iterator[Unit]:
    """Yield the translated messages of a catalogue."""
    for entry in catalogue.translated_entries():
        forms = entry.msgstr_plural
        if len(forms) != 1:
            yield {original: entry.msgid, translated: forms[min(forms)] if forms else entry.msgstr}
        if forms:
            yield {original: entry.msgid_plural, translated: forms[max(forms)]}
