from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.documents.xml import check_xml, declared_encoding, xml_tokens
from manyheads.errors import DataError

PIECES = [
    "<a>",
    "</a>",
    "<w:b x='1' y=\"a>b\"/>",
    "<!-- <a> -->",
    "<![CDATA[<a>&]]>",
    "<?p <a>?>",
    "text",
    "&amp;",
    " ",
]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_the_tokens_are_the_whole_text(text: str) -> None:
    tokens = list(xml_tokens(text))
    assert "".join(text[token.start : token.end] for token in tokens) == text


def test_tokens_have_names_texts_and_the_places_of_their_attributes() -> None:
    text = """<w:p w:id="1" t='a &lt; b'>x &amp; y<![CDATA[<z>]]></w:p><e/><!-- c -->"""
    tokens = list(xml_tokens(text))
    assert [(token.kind, token.name) for token in tokens] == [
        ("open", "p"), ("text", ""), ("text", ""), ("close", "p"), ("empty", "e"), ("other", ""),
    ]  # fmt: skip
    assert tokens[0].attributes == {"w:id": "1", "t": "a < b"}
    assert {name: text[slice(*span)] for name, span in tokens[0].attribute_spans.items()} == {
        "w:id": "1",
        "t": "a &lt; b",
    }
    assert [token.text for token in tokens if token.kind == "text"] == ["x & y", "<z>"]


@pytest.mark.parametrize(
    "text",
    ["<a>", "<a></b>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', '<!DOCTYPE a [<!ENTITY b SYSTEM "c">]><a/>'],
)
def test_damaged_xml_and_entities_are_refused(text: str) -> None:
    with pytest.raises(DataError):
        check_xml(text, "a")


def test_the_declared_encoding_is_read() -> None:
    assert declared_encoding(b"<?xml version='1.0' encoding='UTF-16'?>") == "utf-16"
    assert declared_encoding(b"<a/>") == "utf-8"
