"""Fluent: the texts of messages, attributes and variants are translated; fluent.syntax finds the same structure."""

from __future__ import annotations

import re

import pytest
from fluent.syntax import FluentParser, ast
from fluent.syntax.visitor import Transformer
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated

_COPIED = re.compile(r"\{[^{}]*\}")


def document(text: str) -> Document:
    return read_document(text.encode(), "fluent", ReadOptions("x.ftl", "en", "ko"))


def shouted(text: str) -> str:
    """Return a text in capitals, its placeables as they were."""
    pieces = _COPIED.split(text)
    return "".join(
        piece.upper() + copied for piece, copied in zip(pieces, [*_COPIED.findall(text), ""], strict=True)
    )


def translate(text: str) -> str:
    found = document(text)
    return found.write(Translated(shouted(unit.text)) for unit in found.units).decode()


class _WithoutTexts(Transformer):  # type: ignore[misc]  # has no types
    def visit_TextElement(self, node: ast.TextElement) -> None:
        return None


def structure(text: str) -> object:
    """Return what fluent.syntax finds in a file, without its texts."""
    return _WithoutTexts().visit(FluentParser(with_spans=False).parse(text)).to_json()


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a = one\n# two\nb = three", "a = ONE\n# two\nb = THREE"),
        ("-brand = Fox\na = { -brand } and { $x }", "-brand = FOX\na = { -brand } AND { $x }"),
        ("a =\n    one\n    two\n\n    three\nb = x", "a =\n    ONE TWO\n\n    THREE\nb = X"),
        ("a = x\n    .label = one\n    .accesskey = o", "a = X\n    .label = ONE\n    .accesskey = o"),
        ('a = Read <a data-l10n-name="x">this</a>', 'a = READ <a data-l10n-name="x">THIS</a>'),
        (
            "a = You { $n ->\n    [one] got one\n   *[other] got { $n ->\n       *[x] many\n    } it\n} now",
            "a = YOU { $n ->\n    [one] GOT ONE\n   *[other] GOT { $n ->\n       *[x] MANY\n    } IT\n} NOW",
        ),
        ('a = "{ "{" }" is { -b(c: "x") }', 'a = "{ "{" }" IS { -b(c: "x") }'),
        ("a = x\r\n    .b = y\r\n", "a = X\r\n    .b = Y\r\n"),
        ("no entry\na = b", "no entry\na = B"),
    ],
)
def test_texts_are_replaced_and_the_rest_stays(text: str, result: str) -> None:
    assert translate(text) == result


def test_a_translation_may_begin_with_any_sign_and_keeps_its_placeables() -> None:
    text = "a =\n    Of .net { $x }\n"
    assert document(text).write([Translated(".net { $x }")]).decode() == 'a =\n    { "." }net { $x }\n'
    assert document(text).write([Translated("no { $y }")]).decode() == text


PIECES = st.sampled_from(
    ["a = ", "-b = ", "one two", " { $x } ", "{ $n ->", "\n    [one] ", "\n   *[other] ", "}", "{", "\n    ", "\n",
     "\n\n", "# c", "    .d = ", '{ "{" }', "<i>", "</i>", '"', "\r\n", "*", ".e"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=20).map("".join))
def test_any_file_stays_byte_for_byte(text: str) -> None:
    found = document(text)
    assert found.write(Translated(unit.text) for unit in found.units) == text.encode()


VALUES = st.recursive(
    st.lists(st.sampled_from(["one ", "two", " { $x }", "{ -b }", "<i>x</i>", '"']), min_size=1, max_size=4).map(
        "".join
    ),
    lambda inner: st.tuples(inner, inner).map(
        lambda pair: "{{ $n ->\n    [one] {}\n   *[other] {}\n }}".format(*pair)
    ),
    max_leaves=4,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=3))
def test_fluent_syntax_finds_the_same_structure(values: list[tuple[str, str]]) -> None:
    text = "".join(f"m{n} = {value}\n    .label = {label}\n" for n, (value, label) in enumerate(values))
    assert structure(translate(text)) == structure(text)
    assert "Junk" not in str(structure(text))


def test_a_page_of_signs_is_read_fast() -> None:
    for part in ("{", "{ ", "}", "[", "\n", "\n ", "{ $x -> ", "\n [a]", '{"', "->", "<", "{ { "):
        document(f"a = {part * (100_000 // len(part))}\n")
