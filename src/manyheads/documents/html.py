"""Read HTML: markup that is copied, and blocks of running text that are translated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate

from bitext.languages import base_language, is_right_to_left, normal_form
from manyheads.documents.blocks import Token, escape_markup, make_block
from manyheads.documents.document import Document, ReadOptions, text_document
from manyheads.documents.units import Edit, Reader, Unit


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Elements that end a running text: those that HTML shows as blocks, rows, items or options, and those that hold the
# texts of XLIFF and TMX. Every other element, known or not, is inline.
_BLOCKS = _words(
    "html head title body address article aside blockquote br caption center col colgroup datalist dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr "
    "legend li listing main menu nav ol optgroup option p plaintext pre search section select source summary "
    "table tbody td tfoot th thead tr ul xmp alt-trans ignorable note prop seg seg-source segment target "
    "trans-unit tu tuv"
)
_VOID = _words("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
# Elements whose content is not translated: code, media, readings (of ruby), and native codes of XLIFF and TMX.
_UNTOUCHED = _words(
    "pre listing xmp plaintext code kbd samp script style template textarea noscript noembed noframes svg math "
    "canvas audio video object iframe picture rt rtc rp bpt ept it ph ut skl originaldata"
)
_READINGS = _words("rt rtc rp")  # each ends where the next one begins, or with its ruby
_CLASSES = _words("notranslate mention hashtag")
_Attributes = list[tuple[str, str | None]]

# Attributes that hold text, and the elements in which they do if not in all (HTML Living Standard, section 3.2.6.2,
# "translatable attributes", and WAI-ARIA).
_TEXT_ATTRIBUTES = {
    **dict.fromkeys(
        _words("alt title placeholder aria-label aria-description aria-placeholder aria-valuetext"), ""
    ),
    "label": "option optgroup track",
    "summary": "table",
    "abbr": "th",
}
_TEXT_METADATA = _words(
    "description keywords dc.title dc.description og:title og:description og:image:alt twitter:title "
    "twitter:description twitter:image:alt"
)
_BUTTONS = _words("submit button reset")
_ATTRIBUTE = re.compile(r"""(?<=[\s"'/])([^\s"'>/=]++)\s*+=\s*+("[^"]*"|'[^']*'|[^\s"'>]++)""")
_QUOTES = {'"': "&quot;", "'": "&#39;"}
_ENCODING = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)|<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)
# Encodings that stand for a larger one (WHATWG Encoding Standard, section 4.2).
_ENCODINGS = {
    **dict.fromkeys(_words("iso-8859-1 iso8859-1 latin1 us-ascii ascii"), "cp1252"),
    **dict.fromkeys(_words("gb2312 gbk"), "gb18030"),
    **dict.fromkeys(_words("shift_jis x-sjis"), "cp932"),
    **dict.fromkeys(_words("euc-kr ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(_words("utf-16 utf-16le utf-16be"), "utf-8"),  # a declaration that can be read is not in UTF-16
}


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document of an HTML or XHTML page."""
    match = _ENCODING.search(data[:4096])
    declared = (match[1] or match[2]).decode().lower() if match else ""
    return text_document(data, html_readers(options), options, _ENCODINGS.get(declared, declared))


def html_readers(options: ReadOptions) -> list[Reader]:
    """Return the readers of a page: that of its tags, then that of its running texts."""
    return [partial(read_tags, options=options), read_html]


def read_tags(text: str, options: ReadOptions | None = None) -> Iterator[Unit | Edit]:
    """Yield the texts in attributes of tags, and edits of the attributes that tell language and direction.

    The language is edited where it was that of the page; a quotation in a third language keeps its own.
    """
    reader = _TagReader(text, options or ReadOptions())
    reader.read_source()
    return iter(reader.pieces)


def read_html(text: str, blocks: Iterable[str] = ()) -> Iterator[Unit]:
    """Yield the running texts of HTML; invalid HTML is accepted.

    Args:
        text: HTML, or text with the tags of XLIFF, TMX or a format of its own.
        blocks: names of further elements, in lower case, that end a running text, such as "string" and "item".
    """
    reader = _BlockReader(text, _BLOCKS.union(blocks))
    reader.read_source()
    return iter(reader.finish())


class _BlockReader(HTMLParser):
    """Parses tags and divides the source into blocks.

    Attributes:
        blocks: names of the elements that end a block.
        units: the result so far.
        tokens: tokens of the present block.
    """

    def __init__(self, source: str, blocks: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.blocks = blocks
        lines = [len(line) + 1 for line in source.split("\n")]
        self.line_starts = [0, *accumulate(lines)]
        self.units: list[Unit] = []
        self.tokens: list[Token] = []
        self.block_start = 0  # offset of the present block in the source
        self.skipping: tuple[str, int] | None = None  # the untranslated element that is read: its name, its offset
        self.depth = 0  # nested elements of that name

    def read_source(self) -> None:
        """Read the source; behind its last ">" is no tag (the parser would look for its end at each "<")."""
        end = self.source.rfind(">") + 1
        self.feed(self.source[:end])
        self.close()
        if self.source[end:]:
            self.handle_data(unescape(self.source[end:]))

    @property
    def position(self) -> int:
        """Return the offset in the source where the present tag or text begins."""
        line, column = self.getpos()
        return self.line_starts[line - 1] + column

    def tag_end(self) -> int:
        index = self.source.find(">", self.position)
        return len(self.source) if index < 0 else index + 1

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        raw = self.get_starttag_text() or ""
        if self.skipping is not None and self.skipping[0] in _READINGS and tag in _READINGS:
            self.end_skipping(self.position)
        if self.skipping is not None:
            self.depth += tag == self.skipping[0] and not raw.endswith("/>")
            return
        if self.holds_control():
            self.end_block(self.position)
        if is_untouched(tag, attrs) and tag not in _VOID:
            self.skipping, self.depth = (tag, self.position), 1
        elif tag in self.blocks or tag in _VOID:
            self.copy(self.position, self.position + len(raw), tag)
        else:
            self.tokens.append(Token("open", raw, tag))

    def handle_startendtag(self, tag: str, attrs: _Attributes) -> None:
        """Handle `<x/>` as in XHTML, where it is a complete element; in HTML it would open one."""
        if self.skipping is None:
            self.copy(self.position, self.position + len(self.get_starttag_text() or ""), tag)

    def handle_endtag(self, tag: str) -> None:
        end = self.tag_end()
        if self.skipping is not None and self.skipping[0] in _READINGS and tag == "ruby":
            self.end_skipping(self.position)
        if self.skipping is not None:
            self.depth -= tag == self.skipping[0]
            if self.depth == 0:
                self.end_skipping(end)
        elif tag in self.blocks:
            self.copy(self.position, end, tag)
        else:
            self.tokens.append(Token("close", self.source[self.position : end], tag))

    def handle_data(self, data: str) -> None:
        if self.skipping is None:
            self.tokens.append(Token("text", data))

    def keep_declaration(self, data: str) -> None:
        """Copy a comment, a declaration, a processing instruction or a CDATA section as an atom."""
        if self.skipping is None:
            end = self.source.find("-->", self.position) + 3 if self.source.startswith("<!--", self.position) else 0
            end = end if end >= 3 else self.tag_end()
            self.copy(self.position, end)

    handle_comment = handle_pi = unknown_decl = keep_declaration
    handle_decl = keep_declaration  # type: ignore[assignment]  # HTMLParser passes the argument by position

    def copy(self, start: int, end: int, tag: str = "") -> None:
        """Copy a part of the source: behind the present block if its tag ends blocks, else as an atom of it."""
        if tag not in self.blocks:
            self.tokens.append(Token("atom", self.source[start:end]))
            return
        self.end_block(start)
        self.block_start = end

    def end_skipping(self, end: int) -> None:
        """Copy the untranslated element that is read."""
        assert self.skipping is not None
        (tag, start), self.skipping = self.skipping, None
        self.copy(start, end, tag)

    def holds_control(self) -> bool:
        """Return whether the present block is one complete button: the next element is no part of its text."""
        ends = [*self.tokens[:2], *self.tokens[-2:]]
        marks = [token for token in ends if token.kind != "text" or token.raw.strip()]
        return bool(marks) and marks[0].name == marks[-1].name == "button" and marks[-1].kind == "close"

    def end_block(self, end: int) -> None:
        if self.tokens:
            self.units.append(Unit(make_block(self.tokens), self.block_start, end, between="<br/>"))
        self.tokens, self.block_start = [], end

    def finish(self) -> list[Unit]:
        if self.skipping is not None:  # never closed: the rest of the source belongs to it
            self.end_skipping(len(self.source))
        self.end_block(len(self.source))
        return self.units


class _TagReader(_BlockReader):
    """Reads the attributes of tags into `pieces`."""

    def __init__(self, source: str, options: ReadOptions) -> None:
        super().__init__(source, _BLOCKS)
        self.pieces: list[Unit | Edit] = []
        self.language, self.target = options.source, options.target

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        self.read_tag(tag, attrs)
        super().handle_starttag(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: _Attributes) -> None:
        self.read_tag(tag, attrs)
        super().handle_startendtag(tag, attrs)

    def end_block(self, end: int) -> None:
        """Forget the running text."""
        self.tokens = []

    def read_tag(self, tag: str, attrs: _Attributes) -> None:
        values = {name: value or "" for name, value in reversed(attrs)}
        is_page = self.target and tag in ("html", "body")
        if is_page and not self.language:
            self.language = values.get("lang") or values.get("xml:lang") or ""
        before, behind = ("rtl" if is_right_to_left(code) else "ltr" for code in (self.language, self.target))
        is_read = not _is_marked(attrs) and (self.skipping is None or self.skipping[0] == "picture")
        for match in _ATTRIBUTE.finditer(self.get_starttag_text() or ""):
            name, value = match[1].lower(), values.get(match[1].lower(), "")
            mark = match[2][0] if match[2][0] in _QUOTES else ""
            start, end = (self.position + offset for offset in match.span(2))
            if is_read and _holds_text(tag, name, values):
                block = make_block([Token("text", value)], escape=partial(_escape_value, mark or '"'))
                if not mark:
                    block = replace(block, lead='"', tail='"')
                self.pieces.append(Unit(block, start + len(mark), end - len(mark)))
            elif name in ("lang", "xml:lang") and self.target and self.language:
                if base_language(value) == base_language(self.language):
                    self.pieces.append(Edit(start, end, f'"{normal_form(self.target)}"'))
            elif name == "dir" and is_page and value.lower() == before != behind:
                self.pieces.append(Edit(start, end, f'"{behind}"'))
        if is_page and tag == "html" and before != behind and "dir" not in values:
            start = self.position + len("<html")
            self.pieces.append(Edit(start, start, f' dir="{behind}"'))


def _holds_text(tag: str, name: str, values: Mapping[str, str]) -> bool:
    """Return whether an attribute of a tag holds text to translate."""
    if name in _TEXT_ATTRIBUTES:
        return tag in _TEXT_ATTRIBUTES[name].split() or not _TEXT_ATTRIBUTES[name]
    if tag == "meta" and name == "content":
        return (values.get("name") or values.get("property", "")).lower() in _TEXT_METADATA
    return tag == "input" and name == "value" and values.get("type", "").lower() in _BUTTONS


def _escape_value(mark: str, text: str) -> str:
    return escape_markup(text).replace(mark, _QUOTES[mark])


def is_untouched(tag: str, attributes: _Attributes) -> bool:
    """Return whether the content of an element is not translated."""
    return tag in _UNTOUCHED or _is_marked(attributes)


def _is_marked(attributes: _Attributes) -> bool:
    """Return whether the attributes of an element say that it is not translated."""
    values = {name: value or "" for name, value in reversed(attributes)}
    if values.get("translate", "").strip().lower() == "no" or values.get("mtype") == "protected":
        return True
    return not _CLASSES.isdisjoint(re.split(r"\s+", values.get("class", "")))
