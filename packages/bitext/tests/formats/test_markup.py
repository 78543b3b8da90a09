"""TMX and XLIFF are read exactly in every encoding; decompression bombs are refused in constant memory."""

from __future__ import annotations

import gzip
import io
import random
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.errors import DataError, UsageError
from bitext.formats.markup import read_tmx, read_xliff
from bitext.formats.opening import open_input
from bitext.formats.text import ParallelText, TextRequest
from bitext.languages import SENTENCE_ENDS

ENCODINGS = {  # name -> (declaration, byte order mark, codec)
    "UTF-8": ("UTF-8", b"", "utf-8"),
    "UTF-8 with mark": ("UTF-8", b"\xef\xbb\xbf", "utf-8"),
    "UTF-16, big end first": ("UTF-16", b"\xfe\xff", "utf-16-be"),
    "UTF-16, little end first": ("UTF-16", b"\xff\xfe", "utf-16-le"),
    "UTF-32": ("UTF-32", b"\xff\xfe\x00\x00", "utf-32-le"),
    "Korean of Windows": ("EUC-KR", b"", "cp949"),
    "Latin-1": ("ISO-8859-1", b"", "latin-1"),
}
TEXTS = [
    "Grüße & Küsse",
    "a < b > c",
    '"quoted" it\'s',
    "50 % für 3 €",
    "x]]>y",
    "  zwei  Blanks ",
    "한국어 😀",
    "a\tb",
]
REQUEST = TextRequest("de", "en")


def read(data: bytes, request: TextRequest = REQUEST, reader=read_tmx) -> ParallelText:  # type: ignore[no-untyped-def]
    return reader(io.BufferedReader(io.BytesIO(data)), request, "x.tmx")  # type: ignore[arg-type]


def to_xml(text: str, rng: random.Random, codec: str, tags: tuple[str, ...]) -> str:
    """Return a text as XML with random entities, character references, CDATA sections and inline tags."""
    parts = []
    for symbol in text:
        plain = symbol.encode(codec, "ignore")
        forms = [f"&#{ord(symbol)};", f"&#x{ord(symbol):X};"]
        if plain:
            forms += [escape(symbol, {'"': "&quot;", "'": "&apos;"})] * 8
            forms += [f"<![CDATA[{symbol}]]>"] * (symbol not in "]>")
        parts.append(rng.choice(forms))
        if rng.random() < 0.2:
            parts.append(rng.choice(tags))
    return "".join(parts)


TMX_TAGS = (
    '<ph x="1">&lt;img/&gt;</ph>',
    "<bpt i='1'>&lt;b&gt;</bpt>",
    "<ut>{\\i <sub>no</sub>}</ut>",
    "<hi></hi>",
    "<!-- no -->",
)
XLIFF_TAGS = ("<x id='1'/>", "<ph id='2'>&lt;img/&gt;</ph>", "<g id='3'></g>", "<mrk mtype='x'></mrk>", "<?pi no?>")


def tmx(pairs: list[tuple[str, str]], rng: random.Random, codec: str) -> str:
    units = "".join(
        f"<tu>\n <note>no</note><tuv xml:lang='de-DE'><prop type='x'>no</prop><seg>"
        f"{to_xml(de, rng, codec, TMX_TAGS)}</seg></tuv><tuv xml:lang='EN'>\n<seg>"
        f"{to_xml(en, rng, codec, TMX_TAGS)}</seg></tuv></tu>\n"
        for de, en in pairs
    )
    return (
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="de"><note>License: CC BY 4.0</note>'
        f"<prop type='x-origin'>mine</prop></header><body>{units}</body></tmx>"
    )


def xliff(pairs: list[tuple[str, str]], rng: random.Random, codec: str) -> str:
    units = "".join(
        f"<trans-unit id='{n}'><source>{to_xml(de, rng, codec, XLIFF_TAGS)}</source><target state='final'>"
        f"{to_xml(en, rng, codec, XLIFF_TAGS)}</target><alt-trans><source>no</source><target>no</target>"
        "</alt-trans></trans-unit>"
        for n, (de, en) in enumerate(pairs)
    )
    return (
        "<xliff version='1.2' xmlns='urn:oasis:names:tc:xliff:document:1.2'><file original='x' "
        f"source-language='de' target-language='en'><body>{units}</body></file></xliff>"
    )


def xliff2(pairs: list[tuple[str, str]], rng: random.Random, codec: str) -> str:
    tags = ("<ph id='1'/>", "<pc id='2'></pc>", "<mrk id='m'></mrk>", "<cp hex='001A'/>")
    units = "".join(
        f"<unit id='{n}'><notes><note>no</note></notes><segment><source>{to_xml(de, rng, codec, tags)}</source>"
        f"<target>{to_xml(en, rng, codec, tags)}</target></segment>"
        "<ignorable><source>no</source></ignorable></unit>"
        for n, (de, en) in enumerate(pairs)
    )
    return (
        "<xliff version='2.0' xmlns='urn:oasis:names:tc:xliff:document:2.0' srcLang='de' trgLang='en'>"
        f"<file id='f'>{units}</file></xliff>"
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("make", [tmx, xliff, xliff2])
@pytest.mark.parametrize("seed", [1, 2])
def test_generated_files_are_read_exactly(make, encoding: str, seed: int) -> None:  # type: ignore[no-untyped-def]
    """42 files with entities, inline tags, marks, CDATA and both byte orders."""
    rng = random.Random(seed)
    declared, mark, codec = ENCODINGS[encoding]
    pairs = [(rng.choice(TEXTS) + str(n), rng.choice(TEXTS) * rng.randint(1, 3)) for n in range(50)]
    document = f'<?xml version="1.0" encoding="{declared}"?>\n{make(pairs, rng, codec)}'
    text = read(mark + document.encode(codec), reader=read_tmx if make is tmx else read_xliff)
    assert list(text.pairs) == pairs
    assert text.languages == ("de", "en")


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])).filter(
                lambda text: not re.search(f"[{SENTENCE_ENDS}]", text)  # a tag between two sentences is a blank
            ),
            st.text("ab<&"),
        )
    )
)
def test_any_text_that_xml_can_hold_is_read_exactly(pairs: list[tuple[str, str]]) -> None:
    pairs = [*pairs, ("de", "en")]
    assert list(read(tmx(pairs, random.Random(1), "utf-8").encode()).pairs) == pairs


def test_licence_and_origin_are_those_of_the_header() -> None:
    text = read(tmx([("a", "b")], random.Random(1), "utf-8").encode(), TextRequest())
    assert (text.licence, text.origin, text.languages) == ("CC BY 4.0", "mine", ("de-DE", "en"))


def test_an_error_on_a_missing_language_lists_the_languages_present() -> None:
    document = tmx([("a", "b")] * 3, random.Random(1), "utf-8").encode()
    with pytest.raises(DataError, match=r"x\.tmx holds no text in ko\. Languages there: EN, de-DE\."):
        list(read(document, TextRequest("de", "ko")).pairs)
    three = document.replace(b"</tu>", b"<tuv lang='fr'><seg>c</seg></tuv></tu>")
    with pytest.raises(UsageError, match=r"it names de-DE, EN, fr\. Say both: --source de --target en"):
        read(three, TextRequest())
    assert list(read(three, TextRequest("fr", "de")).pairs) == [("c", "a")] * 3


def test_many_languages_are_listed_in_one_short_line() -> None:
    units = "".join(f"<tu><tuv lang='a\n{n}{'x' * 99}'><seg>a</seg></tuv></tu>" for n in range(999))
    with pytest.raises(DataError, match=r"Languages there: a 0x+, .*, and others\. Choose") as caught:
        list(read(f"<tmx><body>{units}</body></tmx>".encode()).pairs)
    assert len(str(caught.value)) < 1_500


def test_untranslated_units_have_no_target() -> None:
    document = (
        "<xliff version='1.2'><file source-language='en' target-language='ko'><body>"
        "<trans-unit><source>a</source></trans-unit>"
        "<trans-unit><source>b</source><target state='needs-translation'>b</target></trans-unit>"
        "<trans-unit><source>c</source><target state='translated'>다</target></trans-unit></body></file></xliff>"
    )
    text = read(document.encode(), TextRequest(), read_xliff)
    assert text.languages == ("en", "ko")
    assert list(text.pairs) == [("a", ""), ("b", ""), ("c", "다")]


SEGMENTS = (
    "<mrk mtype='seg' mid='1'>One.</mrk> <mrk mtype='seg' mid='2'>Two.</mrk><mrk mtype='seg' mid='3'>Three.</mrk>"
)
BOTH = "<source>a</source><target>b</target>"


def unit(unit_says: str = "", target_says: str = "") -> str:
    """Return a unit of XLIFF 1.2 with some attributes."""
    return f"<trans-unit id='1' {unit_says}><source>a</source><target {target_says}>b</target></trans-unit>"


@pytest.mark.parametrize(
    ("content", "pairs", "skipped"),
    [
        pytest.param(
            f"<trans-unit><source>One. Two. Three.</source><seg-source>{SEGMENTS}</seg-source><target>"
            "<mrk mtype='seg' mid='1'/><mrk mtype='seg' mid='2'>Zwei<g id='1'>.</g></mrk></target></trans-unit>",
            [("One.", ""), ("Two.", "Zwei."), ("Three.", "")], {}, id="one of three segments is translated",
        ),
        pytest.param(
            f"<trans-unit><source>One. Two. Three.</source><target><g id='1'>{SEGMENTS}</g></target></trans-unit>",
            [("One. Two. Three.", "One. Two. Three.")], {}, id="only the target is divided",
        ),
        pytest.param(
            f"<trans-unit><source>One.</source><seg-source>{SEGMENTS}</seg-source><target>Eins</target></trans-unit>",
            [("One.", "Eins")], {}, id="only the source is divided",
        ),
        pytest.param(unit("translate='no'"), [], {"not to be translated": 1}, id="translate=no"),
        pytest.param(
            f"<group translate='no'>{unit()}" + unit("translate='yes'") + "</group>",
            [("a", "b")], {"not to be translated": 1}, id="translate=no of a group",
        ),
        pytest.param(unit("", "state='new'"), [("a", "")], {}, id="new"),
        pytest.param(unit("", "state='needs-translation'"), [("a", "")], {}, id="needs-translation"),
        pytest.param(unit("", "state='needs-review-translation'"), [("a", "b")], {}, id="to be reviewed"),
        pytest.param(unit("", "xml:lang='fr'"), [("a", "")], {}, id="another language"),
        pytest.param(
            "<trans-unit restype='x-gettext-domain-header'><source>Project-Id-Version: x\nContent-Type: y</source>"
            "<target>Project-Id-Version: x\nContent-Type: y</target></trans-unit>",
            [], {"header": 1}, id="header of a PO file",
        ),
        pytest.param(
            "<trans-unit><source>a<x id='1' ctype='lb'/>b<bx id='2'/>c<ph id='3'>no <sub>no</sub></ph><ex id='4'/>"
            "<mrk mtype='protected'>d</mrk><![CDATA[<&]]></source><target>e</target></trans-unit>",
            [("a bcd<&", "e")], {}, id="inline elements",
        ),
        pytest.param(
            f"<trans-unit>{BOTH}<alt-trans>{BOTH.replace('b', 'no')}</alt-trans></trans-unit><bin-unit/>",
            [("a", "b")], {}, id="proposals",
        ),
    ],
)  # fmt: skip
def test_a_unit_of_xliff_1_is_read_by_its_segments(
    content: str, pairs: list[tuple[str, str]], skipped: dict[str, int]
) -> None:
    skeleton = "<header><skl><internal-file><![CDATA[<trans-unit> & ]]></internal-file></skl></header>"
    document = (
        "<xliff version='1.2'><file source-language='en' target-language='de'>"
        f"{skeleton}<body>{unit()}{content}{unit()}</body></file></xliff>"
    )
    text = read(document.encode(), TextRequest(), read_xliff)
    assert list(text.pairs) == [("a", "b"), *pairs, ("a", "b")]
    assert text.skipped.counts == skipped


@pytest.mark.parametrize(
    ("content", "pairs", "skipped"),
    [
        (f"<unit><segment>{BOTH}</segment><segment state='initial'>{BOTH}</segment></unit>",
         [("a", "b"), ("a", "")], {}),
        (f"<unit><segment><source>a</source></segment><segment>{BOTH}</segment></unit>",
         [("a", ""), ("a", "b")], {}),
        (f"<unit translate='no'><segment>{BOTH}</segment></unit>", [], {"not to be translated": 1}),
        (f"<group translate='no'><unit><segment>{BOTH}</segment></unit></group>", [], {"not to be translated": 1}),
        ("<unit><segment><source>a</source><target xml:lang='fr'>b</target></segment></unit>", [("a", "")], {}),
        (f"<unit><matches><match>{BOTH}</match></matches><ignorable><source>c</source></ignorable></unit>", [], {}),
        ("<unit><segment><source>a<ph id='1' type='fmt' subType='xlf:lb'/>b<pc id='2'>c</pc><sc id='3'/>"
         "<mrk id='m' translate='no'>d</mrk></source><target>e</target></segment></unit>", [("a bcd", "e")], {}),
    ],
)  # fmt: skip
def test_a_unit_of_xliff_2_is_read_by_its_segments(
    content: str, pairs: list[tuple[str, str]], skipped: dict[str, int]
) -> None:
    plain = f"<unit><segment>{BOTH}</segment></unit>"
    document = f"<xliff version='2.1' srcLang='en' trgLang='de'><file>{plain}{content}{plain}</file></xliff>"
    text = read(document.encode(), TextRequest(), read_xliff)
    assert list(text.pairs) == [("a", "b"), *pairs, ("a", "b")]
    assert text.skipped.counts == skipped


def test_the_header_of_a_po_file_is_no_pair_in_tmx_either_and_a_first_unit_may_lack_a_language() -> None:
    header = "Project-Id-Version: x\nPlural-Forms: y"
    units = [{"de": "allein"}, {"de": header, "en": header}, {"de": "eins", "en": "one"}]
    document = "".join(
        f"<tu>{''.join(f'<tuv xml:lang={code!r}><seg>{text}</seg></tuv>' for code, text in unit.items())}</tu>"
        for unit in units
    )
    text = read(f"<tmx><body>{document}</body></tmx>".encode(), TextRequest())
    assert text.languages == ("de", "en")
    assert list(text.pairs) == [("allein", ""), ("eins", "one")]
    assert text.skipped.counts == {"header": 1}


def billion_laughs() -> bytes:
    """Return a TMX document whose nested entities would expand to 10**9 words."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE tmx [<!ENTITY l0 "lol">{entities}]><tmx><body><tu>&l9;</tu></body></tmx>'.encode()


BOMBS = {
    "entities": (billion_laughs(), 'declares the entity "l0"'),
    "a file of the machine": (
        b'<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx>&x;</tmx>',
        'declares the entity "x"',
    ),
    "an unknown entity": (b"<tmx><body>&nbsp;</body></tmx>", "holds no translation"),
    "depth": (b"<tmx>" + b"<a>" * 999, "more than 256 elements within each other"),
    "a long text": (b"<tmx><tu><tuv><seg>" + b"x" * (1 << 24), "a unit has more than 1,048,576 characters"),
    "many texts": (b"<tmx><tu>" + b"<tuv><seg>x</seg></tuv>" * (1 << 20), "a unit has more than"),
    "a long attribute": (b"<tmx a='" + b"x" * (1 << 24), "bytes without an element"),
    "another root": (b"<html><body></body></html>", r"outermost element is <html>, not <tmx>"),
    "no XML": (b"PK\x03\x04 hello", "no XML that can be read: .*line 1"),
    "cut": (tmx([("a", "b")], random.Random(1), "utf-8").encode()[:-20], "no XML that can be read"),
    "nothing": (b"", "no element found"),
    "no unit": (b"<tmx><header/><body/></tmx>", "holds no translation"),
    "defaults of attributes": (
        b"<!DOCTYPE tmx [" + b"".join(b"<!ATTLIST tu a%d CDATA 'x'>" % n for n in range(2_000)) + b"]><tmx/>",
        "declares more than 1,000 attributes",
    ),
    "no encoding": (b"<?xml version='1.0' encoding='base64'?><tmx/>", 'declares the encoding "base64"'),
    "bytes of no encoding": (b"<?xml version='1.0' encoding='EUC-KR'?><tmx>\xff\xff", "none of its encoding"),
    "CP949": ("<tmx><body><tu>한국어".encode("cp949"), "If it is CP949, convert it: iconv -f CP949 -t UTF-8"),
    "another version": (b"<xliff version='9'/>", "outermost element"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_and_broken_files_are_refused_by_name_in_constant_memory(name: str) -> None:
    data, message = BOMBS[name]
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"^x\.tmx.*{message}"):
        list(read(data).pairs)
    assert tracemalloc.get_traced_memory()[1] < 40e6
    tracemalloc.stop()


def tmx_blocks(count: int) -> Iterator[bytes]:
    """Yield the bytes of a TMX document of `count` units, one unit at a time."""
    yield b"<tmx><body>"
    for n in range(count):
        sides = (
            f"<tuv xml:lang='{code}'><seg>{text} {n}</seg></tuv>" for code, text in (("de", "Satz"), ("en", "No."))
        )
        yield f"<tu>{''.join(sides)}</tu>\n".encode()
    yield b"</body></tmx>"


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for count in (500, 6_000):
        path = tmp_path / f"{count}.tmx.gz"
        with gzip.open(path, "wb", compresslevel=1) as stream:
            stream.writelines(tmx_blocks(count))
        tracemalloc.start()
        with open_input(path) as stream:
            assert sum(1 for _ in read_tmx(stream, REQUEST, "x").pairs) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 250_000  # the document is 0.6 MB larger
