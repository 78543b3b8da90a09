"""Read XLIFF 1.2 and 2: sources without a translation are units, whose translations are written into `<target>`.

Inline codes: section 2.4 of XLIFF 1.2, sections 4.3.1 and 4.7 of XLIFF 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from bitext.formats.markup import UNTRANSLATED_STATES, is_translated
from bitext.formats.units import INLINE_CODES
from manyheads.documents.blocks import Token, escape_markup
from manyheads.documents.document import Document, ReadOptions, text_document
from manyheads.documents.messages import Message, message_block, message_tokens
from manyheads.documents.units import Edit, Translated, Unit
from manyheads.documents.xml import XmlToken, check_xml, declared_encoding, xml_tokens
from manyheads.errors import DataError

_FINAL_STATES = {"final", "signed-off", "reviewed"}  # of translations that are never replaced
_PAIRS: dict[str, Literal["open", "close"]] = {  # codes that stand for an opening or a closing tag
    "bpt": "open", "bx": "open", "sc": "open", "sm": "open",
    "ept": "close", "ex": "close", "ec": "close", "em": "close",
}  # fmt: skip
_CDATA = "<![CDATA["
_LINE_START = re.compile(r"\r?\n[ \t]*$")


@dataclass(frozen=True)
class _XliffUnit(Message):
    """A source of XLIFF.

    Attributes:
        opening, closing: what stands before and behind its translation: the tags of a new `<target>`.
        holder: the element whose attribute is the state of the translation; None for a new `<target>` of XLIFF 1.2.
    """

    opening: str = ""
    closing: str = ""
    holder: XmlToken | None = None

    def edits(self, translated: Translated) -> Iterator[Edit]:
        """Return the translation and its state."""
        opening, doubtful = self.opening, self.is_doubtful(translated)
        if self.holder is None and doubtful:
            opening = opening.replace("target>", 'target state="needs-review-translation">', 1)
        elif self.holder and self.holder.name == "segment":
            yield _attribute_edit(self.holder, "state", "initial" if doubtful else "translated")
        elif self.holder and (doubtful or "state" in self.holder.attributes):
            yield _attribute_edit(self.holder, "state", "needs-review-translation" if doubtful else "translated")
        yield Edit(self.start, self.end, f"{opening}{self.with_tags(translated)}{self.closing}")


def _attribute_edit(element: XmlToken, name: str, value: str) -> Edit:
    """Return the edit that gives an attribute of an element a value."""
    end = element.attributes_start + len(element.text.rstrip("/ \t\r\n"))
    span = element.attribute_spans.get(name)
    return Edit(*span, value) if span else Edit(end, end, f' {name}="{value}"')


@dataclass
class _Segment:
    """An element with a source and its translation: `<trans-unit>` of XLIFF 1.2, `<segment>` of XLIFF 2.

    Attributes:
        sides: indices of the first and the last token of its `<source>`, `<seg-source>` and `<target>`.
    """

    element: XmlToken
    is_translated: bool
    keeps_blanks: bool
    sides: dict[str, tuple[int, int]] = field(default_factory=dict)


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of an XLIFF file; see `Format.read`."""
    return text_document(data, [partial(_read_segments, options=options)], options, declared_encoding(data))


def _read_segments(text: str, options: ReadOptions) -> Iterator[Unit | Edit]:
    check_xml(text, options.name)
    tokens = list(xml_tokens(text))
    path: list[tuple[int, bool, bool]] = []  # index, whether to translate, and to keep blanks, of the open elements
    segment: _Segment | None = None
    for index, token in enumerate(tokens):
        if token.kind in ("open", "empty"):
            translate, preserve = path[-1][1:] if path else (True, False)
            attributes = token.attributes
            translate = is_translated(attributes, translate) and attributes.get("approved") != "yes"
            preserve = attributes.get("xml:space", "preserve" if preserve else "") == "preserve"
            if not path and token.name != "xliff":
                raise DataError(f"{options.name}: its outermost element is <{token.name}>, not <xliff>.")
            yield from _language_edits(token, options.target)
            if token.name in ("trans-unit", "segment"):
                segment = _Segment(token, translate, preserve)
            path.append((index, translate, preserve))
        if token.kind in ("close", "empty"):
            first, *_ = path.pop()
            if segment and path and tokens[path[-1][0]] is segment.element:
                segment.sides.setdefault(token.name, (first, index))
            elif segment and token.name == segment.element.name:
                yield from _units(text, tokens, segment, options)
                segment = None


def _language_edits(token: XmlToken, target: str) -> Iterator[Edit]:
    """Yield the language of the translations where an element names only that of the sources."""
    for source, attribute in (("source-language", "target-language"), ("srcLang", "trgLang")):
        if target and source in token.attributes and not token.attributes.get(attribute):
            yield _attribute_edit(token, attribute, target)


def _units(text: str, tokens: Sequence[XmlToken], segment: _Segment, options: ReadOptions) -> Iterator[Unit]:
    sides, element = segment.sides, segment.element
    source = sides.get("seg-source", sides.get("source"))
    if not source or not segment.is_translated:
        return
    first, last = sides.get("target", (0, 0))
    has_target = "target" in sides
    holder = element if element.name == "segment" else tokens[first] if has_target else None
    state = holder.attributes.get("state", "") if holder else ""
    is_done = any(token.kind == "text" and token.text.strip() for token in tokens[first + 1 : last])
    if is_done and state not in UNTRANSLATED_STATES and (not options.everything or state in _FINAL_STATES):
        return
    content = tokens[source[0] + 1 : source[1]]
    kinds = [
        text.startswith(_CDATA, token.start) for token in content if token.kind != "text" or token.text.strip()
    ]
    is_cdata = kinds == [True]
    escape = _escape_cdata if is_cdata else escape_markup
    inline = list(_inline_tokens(text, content, escape))
    block, key = message_block(inline, escape=escape, one_blank=not segment.keeps_blanks)
    beginning = tokens[source[0]]
    name = f"{text[beginning.start + 1 : text.index(beginning.name, beginning.start)]}target"
    opening, closing = "", f"</{name}>"
    if not has_target:
        start = end = max(tokens[sides[side][1]].end for side in ("source", "seg-source") if side in sides)
        indent = _LINE_START.search(text, tokens[source[0] - 1].start, beginning.start)
        opening = f"{indent[0] if indent else ''}<{name}>"
    elif tokens[first].kind == "empty":
        start, end, opening = tokens[first].end - len("/>"), tokens[first].end, ">"
    else:
        start, end, closing = tokens[first].end, tokens[last].start, ""
    if is_cdata:
        opening, closing = f"{opening}{_CDATA}", f"]]>{closing}"
    yield _XliffUnit(block, start, end, access_key=key, opening=opening, closing=closing, holder=holder)


def _escape_cdata(text: str) -> str:
    return text.replace("]]>", f"]]]]>{_CDATA}>")


def _inline_tokens(text: str, content: Sequence[XmlToken], escape: Callable[[str], str]) -> Iterator[Token]:
    """Yield the texts, tags and codes of a source."""
    code, depth = XmlToken("other", 0, 0), 0  # the element that is copied as a whole, and elements within it
    for token in content:
        if depth:
            depth += (token.kind == "open") - (token.kind == "close")
            if not depth:
                yield _code(text, code, token.end)
        elif token.kind == "text":
            yield from message_tokens(token.text, escape)
        elif token.kind == "open" and _is_code(token):
            code, depth = token, 1
        elif token.kind in ("open", "close"):
            yield Token(token.kind, text[token.start : token.end], token.name)
        else:
            yield _code(text, token, token.end)


def _is_code(token: XmlToken) -> bool:
    return (
        token.name in INLINE_CODES
        or token.attributes.get("mtype") == "protected"
        or not is_translated(token.attributes, True)
    )


def _code(text: str, token: XmlToken, end: int) -> Token:
    """Return an inline code; those that stand for the two tags of an element are its tags."""
    names = [token.attributes[name] for name in ("startRef", "rid", "id") if name in token.attributes]
    return Token(_PAIRS.get(token.name, "atom"), text[token.start : end], f"code {names[0]}" if names else "")
