"""PO: what is untranslated is translated in its place; msgfmt and polib judge the result."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.formats.po import escape_po
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated
from manyheads.errors import DataError

TEMPLATE = r"""# Of a program
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: calculator 1\n"
"PO-Revision-Date: 2026-01-01 10:00+0000\n"
"Last-Translator: A <a@example.org>\n"
"Language-Team: none\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=CHARSET\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#: a.c:1
#, c-format
msgid "One file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, c-format
msgid "%d line"
msgid_plural "%d lines"
msgstr[0] ""
msgstr[1] ""

#: a.c:3
msgid ""
"Read <b>this</b> text, which is long enough to be wrapped over more than one "
"line\n"
"\n"
"  and \"this\"\tone\n"
msgstr ""

#, c-format
msgctxt "menu"
msgid "&Open %s"
msgstr ""

msgid "done"
msgstr "fertig"

#~ msgid "gone"
#~ msgstr ""
"""


def document(text: str, target: str = "ko", *, everything: bool = False) -> Document:
    return read_document(text.encode(), "po", ReadOptions("x.po", "en", target, everything))


def shouted(text: str) -> str:
    """Return a text in capitals, its placeholders as they were."""
    return text.upper().replace("%D", "%d").replace("%S", "%s")


def translate(text: str, target: str = "ko", *, everything: bool = False) -> str:
    found = document(text, target, everything=everything)
    return found.write(Translated(shouted(unit.text)) for unit in found.units).decode()


def entries(text: str) -> dict[str, polib.POEntry]:
    return {entry.msgid: entry for entry in polib.pofile(text)}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("target", "files", "lines"),
    [
        ("ko", ["%d FILES"], ["%d LINES"]),
        ("de", ["ONE FILE", "%d FILES"], ["%d LINE", "%d LINES"]),
        ("ru", ["%d FILES"] * 3, ["%d LINE", "%d LINES", "%d LINES"]),  # the first form counts 21 too
    ],
)
def test_a_template_becomes_a_catalogue_that_msgfmt_accepts(
    target: str, files: list[str], lines: list[str], newline: str, tmp_path: Path
) -> None:
    written = translate(TEMPLATE.replace("\n", newline), target)
    path = tmp_path / "x.po"
    path.write_bytes(written.encode())
    done = subprocess.run(
        ["msgfmt", "-c", "-v", "-o", "-", path], capture_output=True, check=False, env={"LC_ALL": "C"}
    )
    assert (done.returncode, done.stderr) == (0, b"5 translated messages.\n")
    found = entries(written)
    assert [*found["One file"].msgstr_plural.values()] == files
    assert [*found["%d line"].msgstr_plural.values()] == lines
    assert polib.pofile(written).metadata["Language"] == target


def test_a_translation_is_divided_into_lines_as_its_message() -> None:
    written = translate(TEMPLATE)
    assert (
        r"""
msgstr ""
"READ <b>THIS</b> TEXT, WHICH IS LONG ENOUGH TO BE WRAPPED OVER MORE THAN ONE "
"LINE\n"
"\n"
"  AND \"THIS\"\tONE\n"
"""
        in written
    )
    one_line = TEMPLATE + '\nmsgid "a\\nb"\nmsgstr ""\n'
    assert 'msgid "a\\nb"\nmsgstr "A\\nB"\n' in translate(one_line)


def test_only_what_is_untranslated_is_a_unit_or_everything() -> None:
    assert len(document(TEMPLATE).units) == 4  # Korean has no singular
    assert [unit.text for unit in document(TEMPLATE, everything=True).units][-1] == "done"
    assert '\nmsgid "done"\nmsgstr "DONE"\n' in translate(TEMPLATE, everything=True)


@pytest.mark.parametrize(
    ("flags", "written"),
    [("", "#, fuzzy\n"), ("#, c-format\n", "#, fuzzy, c-format\n"), ('#| msgid "x"\n', '#, fuzzy\n#| msgid "x"\n')],
)
@pytest.mark.parametrize("translated", [Translated("no name"), Translated("%s", doubtful=True)])
def test_a_doubtful_translation_is_fuzzy(flags: str, written: str, translated: Translated) -> None:
    text = f'#: a.c\n{flags}msgid "name %s"\nmsgstr ""\n'
    assert document(text).write([translated]).decode().startswith(f'#: a.c\n{written}msgid "name %s"\n')
    plural = f'{flags}msgid "name %s"\nmsgid_plural "names %s"\nmsgstr[0] ""\n'
    assert document(plural, "de").write([translated] * 2).decode().count("fuzzy") == 1
    assert (
        document(text).write([Translated("이름 %s")]).decode()
        == f'#: a.c\n{flags}msgid "name %s"\nmsgstr "이름 %s"\n'
    )


def test_a_character_that_the_charset_lacks_makes_the_file_utf_8() -> None:
    data = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "é"\nmsgstr ""\n'
    found = read_document(data.encode("latin-1"), "po", ReadOptions())
    assert found.write([Translated("à")]) == data.replace('""\n', '"à"\n').replace('"à"', '""', 1).encode("latin-1")
    assert found.write([Translated("한")]).decode() == data.replace("ISO-8859-1", "UTF-8")[:-3] + '"한"\n'


PIECES = st.sampled_from(
    ['msgid "a %s"\n', 'msgstr ""\n', 'msgstr[0] ""\n', 'msgid_plural "b"\n', 'msgctxt "c"\n', '"d\\n"\n', "# e\n",
     "#, fuzzy\n", "#| f\n", "#~ ", "\n", '  "g" "h"\r\n', 'msgid ""\n', '"Language: \\n"\n', "x\n", '"\\"\n', "\\"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=20).map("".join), st.booleans())
def test_any_file_stays_byte_for_byte_or_is_refused_in_one_line(text: str, everything: bool) -> None:
    try:
        found = document(text, everything=everything)
    except DataError:
        return
    assert found.write(Translated(unit.text) for unit in found.units) == text.encode()


MESSAGES = st.lists(
    st.tuples(st.text(st.sampled_from('ab <>"\\\n\t%'), min_size=1, max_size=30), st.booleans()),
    max_size=6,
    unique_by=lambda entry: entry[0],
)


@settings(max_examples=200)
@given(MESSAGES)
def test_the_messages_stay_and_their_translations_begin_and_end_as_they_do(
    messages: list[tuple[str, bool]],
) -> None:
    text = "".join(
        f'msgid "{escape_po(msgid)}"\nmsgstr "{escape_po(msgid) if done else ""}"\n\n' for msgid, done in messages
    )
    written = translate(text)
    for entry, (msgid, done) in zip(polib.pofile(written) if text else [], messages, strict=True):
        assert entry.msgid == msgid
        assert "".join(entry.msgstr.split()) == "".join(msgid.split()) or not done
        for border in (str.startswith, str.endswith):
            assert not entry.msgstr or border(entry.msgstr, "\n") == border(msgid, "\n")


def test_a_page_of_signs_is_read_or_refused_fast() -> None:
    for part in ('"', "[", '"" ', "#", "\\", "msgid ", 'msgid "a"msgstr "b"', "\n#~", '"\\'):
        for text in (
            part * (20_000 // len(part)),
            f'msgid "{escape_po(part * (20_000 // len(part)))}"\nmsgstr ""\n',
        ):
            with suppress(DataError):
                translate(text)
