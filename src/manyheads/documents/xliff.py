"""Read XLIFF 1.2 and 2: sources without a translation are units, whose translations are written into `<target>`.

Inline codes: section 2.4 of XLIFF 1.2, sections 4.3.1 and 4.7 of XLIFF 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
_MAX_DEPTH = 256
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


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of an XLIFF file; see `Format.read`."""
    return text_document(data, [partial(_read_segments, options=options)], options, declared_encoding(data))


def _read_segments(text: str, options: ReadOptions) -> Iterator[Unit | Edit]:
    check_xml(text, options.name)
    tokens = list(xml_tokens(text))
    root = next(token.name for token in tokens if token.name)
    if root != "xliff":
        raise DataError(f"{options.name}: its outermost element is <{root}>, not <xliff>.")
    inherited = [(True, False)]  # whether to translate, and whether to keep white space, of the open elements
    for index, token in enumerate(tokens):
        if token.kind == "close":
            inherited.pop()
        elif token.name:
            attributes = token.attributes
            translate = is_translated(attributes, inherited[-1][0]) and attributes.get("approved") != "yes"
            space = attributes.get("xml:space")
            if len(inherited) > _MAX_DEPTH:
                raise DataError(
                    f"{options.name}: more than {_MAX_DEPTH} elements within each other. It is not read."
                )
            inherited += [(translate, space == "preserve" if space else inherited[-1][1])] * (token.kind == "open")
            for source, target in (("source-language", "target-language"), ("srcLang", "trgLang")):
                if options.target and source in attributes and not attributes.get(target):
                    yield _attribute_edit(token, target, options.target)
            if token.name in ("trans-unit", "segment") and translate and token.kind == "open":
                yield from _units(text, tokens, index, options, one_blank=not inherited[-1][1])


def _sides(tokens: Sequence[XmlToken], index: int) -> dict[str, tuple[int, int]]:
    """Return the indices of the first and the last token of the first element of each name in an element."""
    sides: dict[str, tuple[int, int]] = {}
    depth = first = 0
    for position in range(index + 1, len(tokens)):
        name, kind = tokens[position].name, tokens[position].kind
        first = position if depth == 0 else first
        depth += (kind == "open") - (kind == "close")
        if depth < 0:
            break
        if depth == 0 and name and kind != "open":
            sides.setdefault(name, (first, position))
    return sides


def _units(
    text: str, tokens: Sequence[XmlToken], index: int, options: ReadOptions, *, one_blank: bool
) -> Iterator[Unit]:
    """Yield the unit of a `<trans-unit>` of XLIFF 1.2 or a `<segment>` of XLIFF 2, if it is to be translated."""
    sides = _sides(tokens, index)
    source = sides.get("seg-source", sides.get("source"))
    first, last = sides.get("target", (index, index))
    holder = tokens[index] if tokens[index].name == "segment" else tokens[first] if "target" in sides else None
    state = holder.attributes.get("state", "") if holder else ""
    is_done = any(token.kind == "text" and token.text.strip() for token in tokens[first + 1 : last])
    if not source or (
        is_done and state not in UNTRANSLATED_STATES and (not options.everything or state in _FINAL_STATES)
    ):
        return
    beginning, content = tokens[source[0]], tokens[source[0] + 1 : source[1]]
    parts = [token for token in content if token.kind != "text" or token.text.strip()]
    is_cdata = [text.startswith(_CDATA, token.start) for token in parts] == [True]
    escape = _escape_cdata if is_cdata else escape_markup
    block, key = message_block(list(_inline_tokens(text, content, escape)), escape=escape, one_blank=one_blank)
    name = f"{text[beginning.start + 1 : text.index(beginning.name, beginning.start)]}target"
    opening, closing = "", f"</{name}>"
    if first == index:
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
