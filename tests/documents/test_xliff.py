"""XLIFF: sources without a translation get one beside them, with their codes; other readers of XML judge."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.formats.markup import read_xliff
from bitext.formats.text import TextRequest
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated
from manyheads.errors import DataError


def first_version(units: str) -> str:
    return (
        '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f' <file source-language="en" original="x" datatype="x"><body>\n{units}</body></file>\n</xliff>\n'
    )


def second_version(segments: str) -> str:
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en">\n'
        f' <file id="f"><unit id="u">{segments}</unit></file>\n</xliff>\n'
    )


def document(text: str, *, everything: bool = False) -> Document:
    return read_document(text.encode(), "xliff", ReadOptions("x.xlf", "en", "ko", everything))


def translate(text: str, *, everything: bool = False, doubtful: bool = False) -> str:
    found = document(text, everything=everything)
    return found.write(Translated(unit.text.upper(), doubtful=doubtful) for unit in found.units).decode()


@pytest.mark.parametrize(
    ("unit", "result"),
    [
        ("<trans-unit id='1'>\n  <source>yes</source>\n  <note>no</note>\n</trans-unit>",
         "<trans-unit id='1'>\n  <source>yes</source>\n  <target>YES</target>\n  <note>no</note>\n</trans-unit>"),
        ("<trans-unit><source>yes</source><target state='new'/></trans-unit>",
         "<trans-unit><source>yes</source><target state='translated'>YES</target></trans-unit>"),
        ("<trans-unit><source>yes</source><target ></target></trans-unit>",
         "<trans-unit><source>yes</source><target >YES</target></trans-unit>"),
        ("<trans-unit><source>yes</source><target state='needs-translation'>yes</target></trans-unit>",
         "<trans-unit><source>yes</source><target state='translated'>YES</target></trans-unit>"),
        ("<trans-unit><source>a <g id='1'>big</g><x id='2'/> &lt;b&gt;dog&lt;/b&gt; &amp; x</source></trans-unit>",
         "<target>A <g id='1'>BIG</g><x id='2'/> &lt;b&gt;DOG&lt;/b&gt; &amp; X</target>"),
        ("<trans-unit><source>a <bpt id='1'>&lt;i></bpt>big<ept id='1'>&lt;/i></ept> dog</source></trans-unit>",
         "<target>A <bpt id='1'>&lt;i></bpt>BIG<ept id='1'>&lt;/i></ept> DOG</target>"),
        ("<trans-unit><source><![CDATA[<p>a & b</p>]]></source></trans-unit>",
         "<target><![CDATA[<p>A & B</p>]]></target>"),
        ("<trans-unit><source>a <mrk mtype='protected'>Foo</mrk> b</source></trans-unit>",
         "<target>A <mrk mtype='protected'>Foo</mrk> B</target>"),
        ("<trans-unit><source>a b</source><seg-source><mrk mtype='seg' mid='1'>a b</mrk></seg-source></trans-unit>",
         "</seg-source><target><mrk mtype='seg' mid='1'>A B</mrk></target>"),
        ("<trans-unit xml:space='preserve'><source>  a\n  b </source></trans-unit>", "<target>  A\n  B </target>"),
        ("<trans-unit><source>\n  a\n  b\n</source></trans-unit>", "<target>\n  A B\n</target>"),
    ],
)  # fmt: skip
def test_a_target_stands_behind_its_source_with_the_codes_of_it(unit: str, result: str) -> None:
    written = translate(first_version(unit))
    assert result in written
    assert 'source-language="en" original="x" datatype="x" target-language="ko">' in written
    ElementTree.fromstring(written)


@pytest.mark.parametrize(
    ("unit", "everything"),
    [
        ("<trans-unit><source>yes</source><target>ja</target></trans-unit>", True),
        ("<trans-unit translate='no'><source>yes</source></trans-unit>", False),
        ("<group translate='no'><trans-unit><source>yes</source></trans-unit></group>", False),
        ("<trans-unit approved='yes'><source>yes</source><target>ja</target></trans-unit>", False),
        ("<trans-unit><source>yes</source><target state='final'>ja</target></trans-unit>", False),
        ("<trans-unit><source>1</source><alt-trans><source>a</source><target/></alt-trans></trans-unit>", False),
    ],
)
def test_what_is_translated_or_final_or_not_to_be_translated_stays(unit: str, *, everything: bool) -> None:
    assert not document(first_version(unit)).units
    assert bool(document(first_version(unit), everything=True).units) == everything


def test_the_state_says_whether_a_translation_is_doubtful() -> None:
    units = "<trans-unit><source>a</source></trans-unit><trans-unit><source>a</source><target/></trans-unit>"
    assert translate(first_version(units), doubtful=True).count('<target state="needs-review-translation">A<') == 2
    segments = '<segment><source>a</source></segment><segment state="initial"><source>a</source><target/></segment>'
    sure, doubtful = (translate(second_version(segments), doubtful=doubtful) for doubtful in (False, True))
    assert sure.count('<segment state="translated"><source>a</source><target>A</target></segment>') == 2
    assert doubtful.count('<segment state="initial"><source>a</source><target>A</target></segment>') == 2


def test_the_second_version_is_read_by_its_segments() -> None:
    segments = (
        "<segment><source>a <pc id='1'>big</pc> dog<ph id='2'/></source></segment><ignorable><source> </source>"
        "</ignorable>\n<segment state='final'><source>b</source><target>c</target></segment>"
        "<segment><source>an <sc id='3'/>old<ec startRef='3'/> cat</source><target/></segment>"
    )
    written = translate(second_version(segments))
    assert "<target>A <pc id='1'>BIG</pc> DOG<ph id='2'/></target>" in written
    assert "<target>AN <sc id='3'/>OLD<ec startRef='3'/> CAT</target>" in written
    assert 'srcLang="en" trgLang="ko">' in written
    pairs = read_xliff(io.BufferedReader(io.BytesIO(written.encode())), TextRequest(), "x.xlf").pairs  # type: ignore[arg-type]
    assert list(pairs) == [("a big dog", "A BIG DOG"), ("b", "c"), ("an old cat", "AN OLD CAT")]


INLINE = st.recursive(
    st.sampled_from(
        ["a ", "dog", " %s", "&lt;i&gt;", "<x id='1'/>", "<ph id='2'>&lt;br></ph>", "<!-- c -->", "\n "]
    ),
    lambda inner: st.lists(inner | inner.map("<g id='3'>{}</g>".format), max_size=4).map("".join),
    max_leaves=6,
)
TARGETS = st.sampled_from(["", "<target/>", "<target state='new'></target>", "<target>ja</target>"])
UNITS = st.lists(st.tuples(INLINE, TARGETS), max_size=4)


@settings(max_examples=150)
@given(UNITS, st.booleans())
def test_the_source_stays_and_the_target_has_its_codes(units: list[tuple[str, str]], everything: bool) -> None:
    text = first_version(
        "".join(f"<trans-unit>\n <source>{source}</source>{target}\n</trans-unit>" for source, target in units)
    )
    found = document(text, everything=everything)
    assert found.write(Translated(unit.text) for unit in found.units) == text.encode()
    written = translate(text, everything=everything)
    for unit in re.findall("<trans-unit>.*?</trans-unit>", written, re.DOTALL):
        source, target = (
            re.search(f"<{side}[^>]*>(.*)</{side}>", unit, re.DOTALL) for side in ("source", "target")
        )
        if source and target and target[1] not in ("", "ja"):
            tags = [sorted(re.findall(r"<[^>]*>|&lt;\w*&gt;", side[1])) for side in (source, target)]
            assert [tag.lower() for tag in tags[0]] == [tag.lower() for tag in tags[1]]
    assert re.sub(r"<target[^/>]*>.*?</target>|<target/>", "", written).count("<source>") == len(units)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<xliff><file></xliff>", "x.xlf is no well-formed XML: mismatched tag, line 1"),
        ("<html/>", "its outermost element is <html>, not <xliff>"),
        ("<" * 100_000, "x.xlf is no well-formed XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', 'declares the entity "a", as bombs do'),
        ("", "x.xlf is no well-formed XML"),
        (f"<xliff>{'<segment>' * 300}{'</segment>' * 300}</xliff>", "more than 256 elements within each other"),
    ],
)
def test_another_file_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^[^\n]*{re.escape(message)}[^\n]*$"):
        document(text)
