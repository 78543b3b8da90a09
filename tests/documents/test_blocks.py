from __future__ import annotations

from manyheads.documents.blocks import Atom, Element, Token, make_block


def test_white_space_is_one_blank_in_html_and_stays_as_it_is_elsewhere() -> None:
    tokens = [Token("text", "  a\n"), Token("open", "<b>", "b"), Token("text", " b "), Token("close", "</b>", "b")]
    block = make_block(tokens)
    assert (block.text, block.lead, block.tail) == ("a b", "  ", " ")
    exact = make_block(tokens, one_blank=False)
    assert (exact.text, exact.lead, exact.tail) == ("  a\n b ", "", "")


def test_elements_hold_their_text_and_a_tag_without_its_other_half_is_an_atom() -> None:
    tokens = [
        Token("open", "<b>", "b"),
        Token("text", "a"),
        Token("close", "</i>", "i"),
        Token("close", "</b>", "b"),
    ]
    root = make_block(tokens).root
    (element,) = root.children
    assert isinstance(element, Element)
    assert (element.opening, element.start, element.end, element.closing) == ("<b>", 0, 1, "</b>")
    assert element.children == [Atom("</i>", 1, before=False, behind=False)]


def test_elements_within_each_other_are_bounded() -> None:
    deep = make_block([Token("open", "<b>", "b")] * 1_000 + [Token("close", "</b>", "b")] * 1_000)
    depth, inner = 0, [deep.root]
    while inner:
        depth += 1
        inner = [child for element in inner for child in element.children if isinstance(child, Element)]
    assert 10 < depth < 100
