"""PO: translated messages are read exactly; the languages come from the header and from the user."""

from __future__ import annotations

import io

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.errors import DataError, UsageError
from bitext.formats.po import escape_po, po_messages, read_po
from bitext.formats.text import ParallelText, TextRequest

PO = """# This file is distributed under its own terms.
# License: GPL-3.0-or-later
msgid ""
msgstr ""
"Project-Id-Version: calculator 3.1\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
LANGUAGE"Plural-Forms: nplurals=PLURALS; plural=0;\\n"

#: a.c:1
msgctxt "menu"
msgid "Open \\"%s\\"\\t&lt;\\n"
msgstr ""
"열기"
" \\"%s\\"\\n"

msgid "not yet"
msgstr ""

#, fuzzy
msgid "perhaps"
msgstr "아마"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "파일 %d개"
TWO
#~ msgid "gone"
#~ msgstr "사라짐"
"""


def read(text: str, request: TextRequest, encoding: str = "utf-8") -> ParallelText:
    return read_po(io.BufferedReader(io.BytesIO(text.encode(encoding))), request, "x.po")  # type: ignore[arg-type]


def make_po(language: str = "ko", plurals: int = 1) -> str:
    two = 'msgstr[1] "파일들 %d개"\n' if plurals == 2 else ""
    header = f'"Language: {language}\\n"\n' if language else ""
    return PO.replace("LANGUAGE", header).replace("PLURALS", str(plurals)).replace("TWO\n", f"{two}\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_translated_messages_are_read_exactly(encoding: str) -> None:
    text = read(make_po(), TextRequest("en"), encoding)
    assert text.languages == ("en", "ko")
    assert list(text.pairs) == [('Open "%s"\t&lt;\n', '열기 "%s"\n'), ("%d files", "파일 %d개")]
    assert (text.licence, text.origin) == ("GPL-3.0-or-later", "calculator 3.1")


def test_two_plural_forms_are_two_pairs_in_the_requested_direction() -> None:
    text = read(make_po(plurals=2), TextRequest("ko", "en"))
    assert list(text.pairs)[1:] == [("파일 %d개", "%d file"), ("파일들 %d개", "%d files")]


LONG = 'msgid "a"\nmsgstr ""\n' + '"abcdefgh"\n' * 200_000


@pytest.mark.parametrize(
    ("text", "languages", "error", "message"),
    [
        (make_po(), (), UsageError, "names ko for the translations, and none for the messages"),
        (make_po(), ("de", "en"), UsageError, "names ko for the translations"),
        (LONG, ("de", "en"), DataError, r"x\.po, line 13,110: a text of more than 131,072 characters"),
        ('msgid "a"\nmsgst "b"\n', ("de", "en"), DataError, r"x\.po, line 2: no PO that can be read"),
    ],
    ids=["none", "others", "long", "broken"],
)
def test_a_mistake_in_a_po_file_is_named(
    text: str, languages: tuple[str, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^[^\n]*{message}"):
        read(text, TextRequest(*languages))
    assert read(make_po(""), TextRequest("en", "ko")).languages == ("en", "ko")


TEXTS = st.text(st.sampled_from('ab\\"\n\t\r\b\f\v #한é'), max_size=12)


@settings(max_examples=200)
@given(st.lists(st.tuples(TEXTS.filter(bool), TEXTS, st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_messages_are_those_that_polib_reads(entries: list[tuple[str, str, bool, bool]]) -> None:
    lines = []
    for msgid, msgstr, fuzzy, obsolete in entries:
        prefix = "#~ " if obsolete else ""
        lines += ["#, c-format, fuzzy"] * fuzzy + [f'{prefix}msgid "{escape_po(msgid)}"', f'{prefix}msgstr ""']
        lines += [f'{prefix}"{escape_po(piece)}"' for piece in (msgstr[:5], msgstr[5:])] + [""]
    text = "\n".join(lines)
    found = [
        (message.msgid, message.forms, "fuzzy" in message.flags, message.obsolete)
        for message in po_messages(((0, line) for line in lines), "x.po")
    ]
    assert found == [(msgid, [msgstr], fuzzy, obsolete) for msgid, msgstr, fuzzy, obsolete in entries]
    theirs = [(entry.msgid, [entry.msgstr], entry.fuzzy, bool(entry.obsolete)) for entry in polib.pofile(text)]
    assert sorted(theirs) == sorted(found)


@pytest.mark.parametrize(
    "text", ['"a"', 'msgid "a"', 'msgstr "a"', 'msgid "a"\nmsgid "b"', 'msgid "a" b', 'msgid "a', "msgid", "[" * 9]
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"^x\.po, line \d: no PO that can be read"):
        list(po_messages([(0, line) for line in text.split("\n")], "x.po"))


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        ("#### section\n", {}),
        ("#Comment\n#-----\n#\n#\tx\n#!x\n", {}),
        ('#.extracted\n#:file.c:3\n#|msgid "old"\n#, c-format\n', {}),
        ("#,c-format,no-wrap\n", {}),
        ('#~msgid "x"\n#~msgstr "y"\n#~| msgid "z"\n\n', {"obsolete": 1}),
        ('#~ # gone\n#~ msgid "x"\n#~ msgstr "y"\n\n#= sticky\n', {"obsolete": 1}),
        ('#,fuzzy\nmsgid "x"\nmsgstr "y"\n\n', {"fuzzy": 1}),
        ('#, c-format, fuzzy\nmsgid "x"\nmsgstr "y"\n\n', {"fuzzy": 1}),
        ('msgid "x"\nmsgstr ""\n\n', {"untranslated": 1}),
        ('msgid"x"\nmsgid_plural"xs"\nmsgstr[0]""\nmsgstr[1]""\n\n', {"untranslated": 1}),
    ],
)
def test_every_form_of_a_comment_is_read_and_messages_without_translation_are_counted(
    entry: str, counts: dict[str, int]
) -> None:
    text = read(f'msgid ""\nmsgstr "Language: ko\\n"\n\n{entry}msgid "a"\nmsgstr "b"\n', TextRequest("en"))
    assert list(text.pairs) == [("a", "b")]
    assert text.skipped.counts == counts
