"""Read Markdown: CommonMark, the tables and strikethrough of GitHub, and the usual extensions.

markdown-it-py finds the blocks and the inline markup. Front matter, code, formulas, directives, shortcodes, anchors
and reference definitions are copied. A translation is escaped only where it would be read as markup: it is read
again, and what is read must be its text. A paragraph that changes becomes one line; hard breaks divide it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any

from markdown_it import MarkdownIt, rules_inline
from markdown_it.common.html_blocks import block_names
from markdown_it.common.utils import unescapeAll
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as InlineToken

from manyheads.documents.blocks import Token, make_block
from manyheads.documents.document import Document, ReadOptions, text_document
from manyheads.documents.html import is_untouched, read_html, read_tags
from manyheads.documents.tag_projection import project_tags
from manyheads.documents.units import Edit, Translated, Unit

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?=\S)(?:.*\n)*?(?:\1|\.\.\.)[ \t]*\r?(?:\n|\Z)")
_LINE = re.compile(r"(.*?)(?:\r\n?|\n|\Z)")
# Lines that are copied: directives, templates, attributes, tables of contents, imports of MDX.
_KEPT_LINE = re.compile(
    r":::|/{3,}(?:[ \t]+[\w-]+[ \t]*(?:\|.*)?)?\s*\Z"
    r"|\{[{%].*[%}]\}\s*\Z|\{[:.#][^{}]*\}\s*\Z|\[\[?_?TOC_?\]|import\s(?:.+\sfrom\s+)?['\"].+['\"];?\s*\Z"
    r"|export\s+(?:default|const|function|let|\{)"
)
# Beginnings of formulas that are blocks, and the end of their last line.
_FORMULAS = {
    re.compile(r"\$\$"): re.compile(r"\$\$\s*\Z"),
    re.compile(r"\\\[(?:\s|\Z)"): re.compile(r"\\\]\s*\Z"),
    re.compile(r"\\begin\{"): re.compile(r"\\end\{.*\}\s*\Z"),
}
_MAX_FORMULA = 200  # lines
_MAX_TEXT = 20_000  # characters of a paragraph; a longer one is copied: the parser may need quadratic time
# Beginning of a footnote, a definition, an admonition: lines that are indented by four columns belong to it.
_CONTAINER = re.compile(r"\[\^[^\]\s]+\]:[ \t]*|:[ \t]+|(?:!!!|\?\?\?\+?|===[+!]?)[ \t]+[\w\"].*")
_KEPT = re.compile(  # formulas, templates, attributes, roles, footnotes, wiki links, emoji, addresses
    r"\$\$(?:(?!\$\$).)+\$\$|\$(?![\s$])[^$\n]*(?<![\s\\])\$(?!\d)|\\\((?:(?!\\[()]).)*\\\)|\\\[\s(?:(?!\\[\[\]]).)*\\\]"
    r"|\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}|\{[#:.][^{}\n]*\}|\{[\w:+-]+\}(?=`)"
    r"|\[\^[^\]\[\s]+\]|\[\[[^\[\]\n]+\]\]|(?<![\w:]):[a-z+-][\w+-]*:(?!\w)"
    r"|<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[\w.!#$%&'*+/=?^`{|}~-]+@[\w.-]+>",
    re.DOTALL,
)
_LABEL = re.compile(r"\[(?:[ xX]\][ \t]+|![A-Za-z]+\][^\n]*\n)")  # of a task, of an alert of GitHub
_TITLE = re.compile(
    r"""\s(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'|\(((?:[^()\\]|\\.)*+)\))\s*\)\Z""", re.DOTALL
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)")
_TAG_ALONE = re.compile(r"\s*</?([A-Za-z][\w:-]*)[^<>\n]*>[ \t]*\n")
_MARKS = re.compile(r"""\b(class|translate)\s*=\s*["']?([^"'>]*)""")  # see `is_untouched`
_BLANKS = " \t\r\n\f"
_SPECIAL = "\\`*_[]<>&#|~$:{!^\"'()"
_BEGINNING = re.compile(r"\A(\d{0,9})([-+#>=:.)])")  # of a line: a list, a heading, a quotation
# Noncharacters beside the delimiters of emphasis, until it is settled that these are read as such.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_DELIMITERS = re.compile(f"{_OPEN}[*_~]+|[*_~]+{_CLOSE}")
_Frame = tuple[str, str]
_Place = tuple[Token | None, int, int]  # a token, None for a hard break, and its offsets


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document of a Markdown file."""
    return text_document(data, [read_descriptions, read_markdown], options)


def read_markdown(text: str, references: ChainMap[str, Any] | None = None) -> Iterator[Unit]:
    """Yield the running texts: paragraphs, headings, cells of tables, and those of HTML.

    Args:
        text: Markdown.
        references: definitions of references that stand elsewhere, as markdown-it-py keeps them.
    """
    for piece in _pieces(text, references or ChainMap()):
        yield from map(piece.moved, read_html(piece.content) if piece.is_html else _running_texts(piece))


def read_descriptions(text: str, references: ChainMap[str, Any] | None = None) -> Iterator[Unit]:
    """Yield the descriptions of images, the titles of links, and the texts in attributes of HTML."""
    for piece in _pieces(text, references or ChainMap()):
        yield from map(piece.moved, _tag_texts(piece.content) if piece.is_html else _descriptions(piece))


@dataclass(frozen=True)
class _MarkdownUnit(Unit):
    """A text of Markdown.

    Attributes:
        frame: Markdown before and behind the text, with which the translation is read again.
        reader: reads the text in its frame.
    """

    frame: _Frame = ("", "")
    reader: Callable[[str], Iterator[Unit]] = read_markdown

    def edits(self, translated: Translated) -> list[Edit]:
        """Write the translation with the fewest escapes with which it is read as it is."""
        special = [character for character in _SPECIAL if character in translated.text]
        wanted = ["".join(translated.text.split())]
        for escaped in ("", "\n", *special, "\n" + "".join(special)):
            block = replace(self.block, escape=partial(_escape, escaped))
            written = _settle(project_tags(block, translated.text, translated.links))
            if "\n" in escaped:  # the beginning of the line
                written = _BEGINNING.sub(r"\1\\\2", written)
            found = ["".join(unit.text.split()) for unit in self.reader(written.join(self.frame))]
            if [text for text in found if text] == wanted:
                break
        return [Edit(self.start, self.end, written)]


@dataclass(frozen=True)
class _Piece:
    """Inline markup, or a block of HTML.

    Attributes:
        content: its lines, without the markers of the blocks around them.
        starts, places: offset of each line in the content, and in the file.
        references: see `read_markdown`.
        frame: see `_MarkdownUnit`.
        is_html: whether it is a block of HTML.
    """

    content: str
    starts: list[int]
    places: list[int]
    references: ChainMap[str, Any]
    frame: _Frame
    is_html: bool

    def moved(self, unit: Unit) -> Unit:
        """Return a unit of the content with its places in the file, without white space at its ends."""
        raw = self.content[unit.start : unit.end]
        lead, tail = len(raw) - len(raw.lstrip(_BLANKS)), len(raw) - len(raw.rstrip(_BLANKS))
        ends = unit.start + lead, max(unit.start, unit.end - tail)
        lines = [bisect_right(self.starts, offset) - 1 for offset in ends]
        start, end = (
            offset - self.starts[line] + self.places[line] for offset, line in zip(ends, lines, strict=True)
        )
        block = replace(unit.block, lead=unit.block.lead.strip(_BLANKS), tail=unit.block.tail.strip(_BLANKS))
        return replace(unit, start=start, end=end, block=block)


def _pieces(text: str, references: ChainMap[str, Any]) -> Iterator[_Piece]:
    """Yield the pieces of Markdown that may hold text."""
    matter = _FRONT_MATTER.match(text)
    first = matter.end() if matter else 0
    source = text[first:].replace("\0", "\ufffd")
    lines = [(first + match.start(), match[1]) for match in _LINE.finditer(source)]
    environment: dict[str, Any] = {"references": references.new_child()}
    frame, cell, column = ("", ""), ("||\n|-|\n|", "|"), 0
    for token in _parser().parse(source, environment):
        if token.type == "tr_open":
            column = 0
        elif token.type in ("paragraph_open", "th_open", "td_open"):
            frame = ("", "") if token.tag == "p" else cell
        elif token.type == "heading_open":
            frame = ("# ", "") if token.markup.startswith("#") else ("", "\n===")
        is_html = token.type == "html_block"
        if token.map is None or not (is_html or (token.type == "inline" and len(token.content) <= _MAX_TEXT)):
            continue
        content, (line_number, end) = token.content, token.map
        is_cell = frame is cell and not is_html
        if is_cell:
            content = content.replace("|", "\\|")
        elif is_html and (tag := _tag_alone(content)):
            content, line_number = content[len(tag) :], line_number + 1
        starts, places, start = [], [], 0
        for line, (place, whole) in zip(content.split("\n"), lines[line_number:end], strict=False):
            stripped = line.lstrip()
            column = whole.find(stripped, column) if is_cell else whole.rfind(stripped)
            if column < 0:  # not as the parser promises
                break
            starts.append(start)
            places.append(place + column + len(stripped) - len(line))
            start, column = start + len(line) + 1, column + len(stripped)
        else:
            yield _Piece(content, starts, places, environment["references"], frame, is_html)


def _tag_alone(html: str) -> str:
    """Return the first line of a block that is one only by this line: a tag of an inline element, alone."""
    match = _TAG_ALONE.match(html)
    name = match[1].lower() if match else ""
    return (
        match[0] if match and name not in block_names and not is_untouched(name, _MARKS.findall(match[0])) else ""
    )


def _running_texts(piece: _Piece) -> Iterator[_MarkdownUnit]:
    """Yield the texts between the hard breaks of inline markup."""
    content, (before, behind) = piece.content, piece.frame
    tokens, start = list[Token](), 0
    for token, first, last in (*_tokens(piece), (None, len(content), len(content))):
        if token is not None:
            tokens.append(token)
            continue
        reader = partial(read_markdown, references=piece.references)
        yield _MarkdownUnit(make_block(tokens), start, first, "<br/>", (before, behind), reader)
        tokens, start = [], last
        before = piece.frame[0] + ("`x`  " if first else "") + content[first:last]


def _descriptions(piece: _Piece) -> Iterator[Unit]:
    """Yield the texts in images, titles of links, and inline tags."""
    content, reader = piece.content, partial(read_descriptions, references=piece.references)
    for token in _inline_tokens(piece):
        start, end = token.meta.get("span", (0, 0))
        if token.type == "html_inline":
            for unit in _tag_texts(content[start:end]):
                yield replace(unit, start=start + unit.start, end=start + unit.end)
        if "label_end" not in token.meta:
            continue
        label = token.meta["label_end"]
        if token.type == "image":
            closing = _closing(content, start + 1, label, end)
            alone = closing != content[label:end]  # `![text]` names its reference by its text
            inner = replace(piece, content=content[start + 2 : label], frame=("![", "" if alone else "](x)"))
            for unit in _running_texts(inner):
                block = replace(unit.block, tail=closing) if alone else unit.block
                last = end if alone else start + 2 + unit.end
                yield replace(
                    unit, start=start + 2 + unit.start, end=last, block=block, between=None, reader=reader
                )
        title = _TITLE.search(content, label, end)
        if title and title.lastindex:
            first, last = title.span(title.lastindex)
            frame = (f"[x](y {content[first - 1]}", f"{content[last]})")
            block = make_block([Token("text", unescapeAll(content[first:last]))])
            yield _MarkdownUnit(block, first, last, None, frame, reader)


def _tag_texts(html: str) -> Iterator[Unit]:
    return (unit for unit in read_tags(html) if isinstance(unit, Unit))


def _tokens(piece: _Piece) -> Iterator[_Place]:
    """Yield the tokens of inline markup with their offsets, which matter for hard breaks only."""
    content, found = piece.content, _inline_tokens(piece)
    closing = {token.content: index for index, token in enumerate(found) if token.type == "html_inline"}
    skipping, skipped_from = "", 0  # the closing tag of an untouched element
    for index, token in enumerate(found):
        start, end = token.meta.get("span", (0, 0))
        raw = content[start:end].replace("\n", " ")
        tag = _TAG.match(raw) if token.type == "html_inline" else None
        name = tag[2].lower() if tag else ""
        if skipping:
            if raw == skipping and tag:
                yield Token("atom", content[skipped_from:end].replace("\n", " ")), start, end
                skipping = ""
        elif token.type in ("hardbreak", "label") or name == "br":
            yield None, start, end
        elif token.type in ("text", "text_special", "softbreak"):
            yield Token("text", token.content or "\n"), start, end
        elif token.type == "link_open":
            yield Token("open", "[", "link"), start, end
        elif token.type == "link_close":
            raw = _closing(content, start, token.meta["label_end"], end)
            yield Token("close", raw, "link"), start, end
        elif token.nesting > 0:
            yield Token("open", _OPEN + token.markup, token.tag), start, end
        elif token.nesting < 0:
            yield Token("close", token.markup + _CLOSE, token.tag), start, end
        elif tag and closing.get(f"</{tag[2]}>", 0) > index and is_untouched(name, _MARKS.findall(raw)):
            skipping, skipped_from = f"</{tag[2]}>", start
        elif tag and not raw.endswith("/>"):
            yield Token("close" if tag[1] else "open", raw, name), start, end
        else:
            yield Token("atom", f"{_OPEN}{raw}{_CLOSE}" if token.type == "code_inline" else raw), start, end


def _closing(content: str, start: int, label_end: int, end: int) -> str:
    """Return the end of a link or image, with its reference if that was its text alone."""
    closing = content[label_end:end]
    if closing in ("]", "][]"):
        closing = f"][{content[start + 1 : label_end]}]"
    return closing.replace("\n", " ")


def _escape(characters: str, text: str) -> str:
    return "".join("\\" + letter if letter in characters else letter for letter in text.replace("\n", " "))


def _settle(written: str) -> str:
    """Return a text whose emphasis and code is read as such (CommonMark, section 6.2, on delimiter runs).

    Empty emphasis goes, blanks move out of it, and a letter beside a delimiter that could not open or close there
    is written as a character reference.
    """
    opens, closes, letter = f"(?:{_OPEN}[*_~]++)++", f"(?:[*_~]++{_CLOSE})++", r"[^\W_]"
    while (shorter := re.sub(rf"{_OPEN}([*_~]+)(\s*)\1{_CLOSE}", r"\2", written)) != written:
        written = shorter
    written = re.sub(rf"({opens})(\s+)", r"\2\1", written)
    written = re.sub(rf"(\s+)({closes})", r"\2\1", written)
    if re.search(rf"{letter}{_OPEN}_|_{_CLOSE}{letter}", written):  # "_" is no delimiter within a word
        written = _DELIMITERS.sub(lambda match: match[0].replace("_", "*"), written)
    written = re.sub(rf"()({letter})(?={opens}[^\w\s])", _reference, written)
    written = re.sub(rf"((?<=[^\w\s{_CLOSE}]){closes})({letter})", _reference, written)
    written = written.replace(f"`{_CLOSE}{_OPEN}`", "` `")
    return written.replace(_OPEN, "").replace(_CLOSE, "")


def _reference(match: re.Match[str]) -> str:
    return f"{match[1]}&#{ord(match[2])};"


@cache
def _parser() -> MarkdownIt:
    """Return the parser of blocks; its inline rules note the characters of their tokens."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("reference", "kept_lines", _keep_lines, interrupts)
    parser.block.ruler.before("reference", "container", _read_container, interrupts)
    parser.inline.ruler.before("text", "kept", _keep)
    for name in ("newline", "escape", "link", "image", "html_inline"):
        parser.inline.ruler.at(name, _with_span(getattr(rules_inline, name)))
    parser.inline.ruler.at("backticks", _with_span(rules_inline.backtick))
    return parser


def _inline_tokens(piece: _Piece) -> list[InlineToken]:
    state = StateInline(piece.content, _parser(), {"references": piece.references}, [])
    state.md.inline.tokenize(state)
    for rule in state.md.inline.ruler2.getRules(""):
        rule(state)
    return state.tokens


def _with_span(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Return an inline rule whose tokens have their offsets in `meta`, and the end of the label of a link."""

    def rule_with_span(state: StateInline, silent: bool) -> bool:
        start, first = state.pos, len(state.tokens)
        found = rule(state, silent)
        for token in state.tokens[first:] if found and not silent else ():
            if "span" in token.meta:  # that of a rule within
                continue
            token.meta["span"] = (start, state.pos)
            if token.type in ("link_close", "image"):
                image = token.type == "image"
                token.meta["label_end"] = state.md.helpers.parseLinkLabel(state, start + image, not image)
        return found

    return rule_with_span


def _keep(state: StateInline, silent: bool) -> bool:
    """Read inline markup that is copied."""
    label = _LABEL.match(state.src) if state.pos == 0 else None
    match = label or _KEPT.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("label" if label else "kept", "", 0).meta["span"] = match.span()
    state.pos = match.end()
    return True


def _keep_lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read lines that are copied: a formula, or one of `_KEPT_LINE`."""
    lines = (_line(state, number) for number in range(start, min(end, start + _MAX_FORMULA)))
    line = next(lines)
    last: int | None = start if _KEPT_LINE.match(line) else None
    for begins, ends in _FORMULAS.items():
        if match := begins.match(line):
            rest = chain([line[match.end() :]], lines)
            last = next((start + index for index, text in enumerate(rest) if ends.search(text)), None)
    if last is None or state.is_code_block(start):
        return False
    if not silent:
        state.line = last + 1
    return True


def _read_container(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a block whose lines are indented by four columns behind the first one."""
    position = state.bMarks[start] + state.tShift[start]
    match = _CONTAINER.match(state.src, position, state.eMarks[start])
    if match is None or state.is_code_block(start):
        return False
    if silent:
        return True
    before = state.bMarks[start], state.tShift[start], state.sCount[start]
    state.push("container_open", "div", 1)
    state.blkIndent += 4
    state.bMarks[start], state.tShift[start], state.sCount[start] = match.end(), 0, state.blkIndent
    state.md.block.tokenize(state, start, end)
    state.push("container_close", "div", -1)
    state.blkIndent -= 4
    state.bMarks[start], state.tShift[start], state.sCount[start] = before
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
