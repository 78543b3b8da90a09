"""Damage ends with its unit: it is counted and named, and everything else is read exactly, in bounded memory."""

from __future__ import annotations

import gc
import io
import re
import tracemalloc
from collections.abc import Iterator

import pytest

from bitext.errors import DataError
from bitext.formats.markup import read_tmx, read_xliff
from bitext.formats.text import ParallelText, TextRequest

GOOD = "<tu><tuv xml:lang='de'><seg>{0}</seg></tuv><tuv xml:lang='en'><seg>{0}</seg></tuv></tu>\n"
TMX = "<?xml version='1.0'?>\n<tmx><header><note>License: MIT</note></header><body>\n{}</body></tmx>"


def read(document: str | bytes, *, strict: bool = False, reader=read_tmx) -> ParallelText:  # type: ignore[no-untyped-def]
    data = document.encode() if isinstance(document, str) else document
    request = TextRequest("de", "en", strict=strict)
    return reader(io.BufferedReader(io.BytesIO(data)), request, "x.tmx")


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        (GOOD.format("a\x02b"), "the control character U+0002"),
        (GOOD.format("a\ufffe"), "the control character U+FFFE"),
        (GOOD.format("R & D"), 'a "&" that is not written as "&amp;"'),
        (GOOD.format("a&nbsp;b"), '"&nbsp;" stands for nothing'),
        (GOOD.format("a&#1;b"), "reference to invalid character number"),
        (GOOD.format("<b>a"), "mismatched tag"),
        (GOOD.format("a < b"), "not well-formed (invalid token)"),
        (GOOD.format("a").replace("</tu>", ""), "it has no end tag"),
        (GOOD.format("a").replace("<tu>", ""), "mismatched tag"),
        (GOOD.format("a").replace("de'", "de"), "not well-formed (invalid token)"),
    ],
)
def test_a_damaged_unit_is_left_out_and_named(unit: str, reason: str) -> None:
    document = TMX.format(GOOD.format("eins") + unit + GOOD.format("zwei") + GOOD.format("drei"))
    text = read(document)
    assert list(text.pairs) == [("eins", "eins"), ("zwei", "zwei"), ("drei", "drei")]
    assert text.skipped.counts == {"damaged": 1}
    assert text.skipped.damage == [f"line 4: {reason}"]
    assert text.licence == "MIT"
    with pytest.raises(DataError, match=rf"^x\.tmx, line 4: {re.escape(reason)}\. Without --strict it is left out"):
        list(read(document, strict=True).pairs)


def test_bytes_of_another_encoding_damage_their_unit_alone() -> None:
    document = TMX.format(GOOD.format("eins") + GOOD.format("größer") + GOOD.format("zwei")).encode()
    text = read(document.replace("ö".encode(), b"\xf6"))
    assert list(text.pairs) == [("eins", "eins"), ("zwei", "zwei")]
    assert text.skipped.damage == ["line 4: bytes that are none of its encoding, utf-8"]


def test_damage_around_units_costs_no_unit() -> None:
    document = TMX.replace("MIT", "MIT & \x01 &copy;").format(GOOD.format("a") + "&nbsp;" + GOOD.format("b"))
    text = read(document)
    assert list(text.pairs) == [("a", "a"), ("b", "b")]
    assert text.skipped.counts == {"mended around units": 4}
    assert text.licence == "MIT ? ? ?"


@pytest.mark.parametrize(
    "content",
    [
        "<![CDATA[</tu></body><tu> R&D &nbsp;]]>",
        "a<!-- </tu> & <tu> </body> -->",
        "&lt;/tu&gt;",
    ],
)
def test_tags_in_comments_and_cdata_are_no_borders(content: str) -> None:
    document = TMX.format(f"<!-- AT&T <tu> -->{GOOD.format(content)}{GOOD.format('b')}")
    text = read(document, strict=True)
    assert len(list(text.pairs)) == 2
    assert not text.skipped.counts


def test_prefixes_of_namespaces_are_known_in_every_unit_also_after_damage() -> None:
    unit = "<x:trans-unit><x:source>{0}</x:source><x:target o:y='1'>{0}</x:target></x:trans-unit>"
    document = (
        "<x:xliff version='1.2' xmlns:x='urn:oasis:names:tc:xliff:document:1.2' xmlns:o='urn:o'><x:file "
        f"source-language='de' target-language='en'><x:body>{unit.format('a')}{unit.format('&')}{unit.format('b')}"
        "</x:body></x:file></x:xliff>"
    )
    text = read(document, reader=read_xliff)
    assert list(text.pairs) == [("a", "a"), ("b", "b")]
    assert text.skipped.counts == {"damaged": 1}


def test_a_damaged_unit_does_not_change_the_languages_of_the_next_file() -> None:
    unit = "<trans-unit><source>{0}</source><target>{0}</target></trans-unit>"
    file = "<file source-language='{}' target-language='{}'><body>{}</body></file>"
    broken = file.format(
        "de", "en", unit.format("a") + unit.format("b") + unit.format("c").replace("</trans-unit>", "")
    )
    swapped = file.format("en", "de", unit.format("d"))
    text = read(f"<xliff version='1.2'>{broken}{swapped}</xliff>", reader=read_xliff)
    assert list(text.pairs) == [("a", "a"), ("b", "b"), ("d", "d")]


def test_a_file_that_is_mostly_damaged_is_refused() -> None:
    with pytest.raises(DataError, match=r"^x\.tmx: 3 of 4 are damaged, line 4: .*\. Mend the file"):
        list(read(TMX.format(GOOD.format("a") + 3 * GOOD.format("&"))).pairs)


def blocks(count: int) -> Iterator[bytes]:
    """Yield a TMX document in which every third unit is damaged."""
    yield b"<tmx><body>"
    for number in range(count):
        yield GOOD.format(f"Satz {number} {'&' * (number % 3 == 0)}").encode()
    yield b"</body></tmx>"


def held_by_the_reader() -> int:
    """Return the bytes that the reader and its parsers hold; other threads of the process allocate too."""
    gc.collect()  # a damaged unit leaves a parser behind, which is a reference cycle
    read = [tracemalloc.Filter(inclusive=True, filename_pattern=f"*/{name}/*") for name in ("bitext", "xml")]
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(read).traces)


def test_memory_does_not_grow_with_the_number_of_damaged_units() -> None:
    data = io.BytesIO(b"".join(blocks(13_500)))
    held = []
    tracemalloc.start()
    text = read_tmx(io.BufferedReader(data), TextRequest("de", "en"), "x")
    for number, _ in enumerate(text.pairs):
        if number in (1_500, 7_500):
            held.append(held_by_the_reader())
    tracemalloc.stop()
    assert number + 1 == 9_000
    assert held[1] < held[0] + 60_000  # 3,000 damaged units later: less than 20 bytes each


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<mrk mtype='seg' mid='1'>Ja.</mrk><mrk mtype='seg' mid='2'>Nein.</mrk>", "Ja. Nein."),
        ("<mrk mtype='seg'>Ja,</mrk> <mrk mtype='seg'>nein.</mrk>", "Ja, nein."),
        ("<g id='1'>Ja.</g><g id='2'>Nein.</g>", "Ja. Nein."),
        ("„Ja!“<bpt id='1'>&lt;b&gt;</bpt>Nein.", "„Ja!“ Nein."),
        ("Ja<ph id='1'>&lt;br/&gt;</ph>nein<ph id='2'>\n</ph> doch", "Ja nein doch"),
        ("Ja.<bpt id='1'>&lt;/p&gt;&lt;p&gt;</bpt>nein", "Ja. nein"),
        (
            "Der <g id='1'>H</g>und, U.<g id='2'>S</g>., v1.<g id='3'>2</g>, x.<g id='4'>org</g>",
            "Der Hund, U.S., v1.2, x.org",
        ),
        ("好。<g id='1'>不好。</g>", "好。不好。"),
    ],
)
def test_segments_and_sentences_of_a_unit_are_joined_as_their_language_joins_sentences(
    content: str, text: str
) -> None:
    code = "zh" if text.startswith("好") else "de"
    unit = f"<tu><tuv xml:lang='{code}'><seg>{content}</seg></tuv><tuv xml:lang='en'><seg>a</seg></tuv></tu>"
    found = read_tmx(io.BufferedReader(io.BytesIO(TMX.format(unit).encode())), TextRequest(code, "en"), "x.tmx")
    assert list(found.pairs) == [(text, "a")]


def test_all_segments_of_a_variant_are_read() -> None:
    german, english = "<seg>Ja.</seg><seg>Nein.</seg>", "<seg>Yes. No.</seg>"
    unit = f"<tu><tuv xml:lang='de'>{german}</tuv><tuv xml:lang='en'>{english}</tuv></tu>"
    assert list(read(TMX.format(unit)).pairs) == [("Ja. Nein.", "Yes. No.")]
