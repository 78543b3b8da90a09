"""Read the paragraphs of office documents: runs in Office Open XML, text with inline tags in OpenDocument.

A paragraph is one text, however its program divided it. Paragraphs within a paragraph, such as those of a text box,
are texts of their own. What is not running text (fields, notes, formulas, deleted text) keeps its position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from html import escape

from manyheads.documents.blocks import Atom, Element, Token, make_block
from manyheads.documents.units import Edit, Reader, Translated, Unit
from manyheads.documents.xml import XmlToken, xml_tokens

_MAX_LEVELS = 4  # paragraphs within each other that are read
_MAX_CONTAINERS = 20  # elements around a text
_BREAKS = {"br", "cr", "tab", "ptab", "s", "line-break"}  # elements that part words
_HINTS = {"proofErr", "lastRenderedPageBreak", "soft-page-break"}  # on the source; a translation has none
_CONTAINERS = {  # elements around text
    *("hyperlink", "ins", "moveTo", "smartTag", "sdt", "customXml", "dir", "bdo"),  # of Word
    *("span", "a", "meta", "meta-field", "ruby", "ruby-base"),  # of OpenDocument
}
_MARK = Token("atom", "\0", "break")  # behind a break for which the text has a blank; no XML holds this character
_MARKED_BLANK = re.compile("\0((?:<[^>]*>)*) ")
_INVISIBLE = re.compile(  # properties that divide runs of equal appearance
    r"<w:(?:lang|noProof)\b[^>]*/>|\s(?:lang|altLang|dirty|err|noProof|smtClean|smtId|bmk|w:hint)=\"[^\"]*\""
    r"|<\w+:rPr\s*/>|<w:rPr>\s*</w:rPr>"
)
_FIELD_CHARACTER = re.compile(r"fldCharType\s*=\s*[\"'](\w+)")
_LINK = re.compile(r"instrText[^>]*>\s*HYPERLINK")
_MAX_CODE = 2_000  # characters in which the code of a field begins
_NO_RUN = ("", "")
_BLANKS = " \t\r\n"
_FILE_NAME = re.compile(r"\S+\.\w{2,4}")


def alternative_texts(text: str) -> Iterator[Unit]:
    """Yield the alternative texts of the drawings of Office Open XML, but for names of files."""
    for token in xml_tokens(text) if "descr=" in text or "title=" in text else ():
        if token.name in ("docPr", "cNvPr"):
            values = token.attributes
            for name, (start, end) in token.attribute_spans.items():
                if name in ("descr", "title") and not _FILE_NAME.fullmatch(values[name]):
                    yield Unit(make_block([Token("text", values[name])], escape=escape), start, end)


def paragraph_readers(
    text: str, names: Set[str], between: str | None = None, *, plain: Set[str] = frozenset()
) -> list[Reader]:
    """Return the readers of the paragraphs of an XML text, those of the innermost paragraphs first.

    Args:
        text: the whole text.
        names: names of paragraphs, with or without prefixes.
        between: see `Unit`.
        plain: opening tags of elements that change nothing, as a program writes them to mark revisions.
    """
    level = deepest = 0
    for tag in re.finditer(rf"<(/?)(?:[\w.-]+:)?(?:{'|'.join(names)})(?=[\s/>])[^<>]*?(/?)>", text):
        level += -1 if tag[1] else not tag[2]
        deepest = max(level, deepest)

    def read(level: int, text: str) -> Iterator[Unit]:
        for found, tokens in _paragraphs(text, names):
            if found == level:
                yield from _ParagraphReader(text, tokens, plain).read(between)

    return [partial(read, level) for level in range(min(deepest, _MAX_LEVELS), 0, -1)]


def _paragraphs(text: str, names: Set[str]) -> Iterator[tuple[int, list[XmlToken]]]:
    """Yield the level of each paragraph, 1 if it lies in no other one, and the tokens of its content."""
    tokens: list[XmlToken] = []
    starts: list[int] = []  # in `tokens`, of the open paragraphs
    deleted = 0  # open elements that hold deleted paragraphs of OpenDocument
    for token in xml_tokens(text):
        if token.name == "tracked-changes":
            deleted += (token.kind == "open") - (token.kind == "close")
        is_paragraph = not deleted and (token.name in names or f"{token.prefix}{token.name}" in names)
        if is_paragraph and token.kind == "close":
            start = starts.pop()
            if len(starts) < _MAX_LEVELS:
                yield len(starts) + 1, tokens[start:]
        if starts:
            tokens.append(token)
        else:
            tokens.clear()
        if is_paragraph and token.kind == "open":
            starts.append(len(tokens))


@dataclass(frozen=True)
class _Paragraph(Unit):
    """The text of a paragraph."""

    def edits(self, translated: Translated) -> Iterable[Edit]:
        """Return the translation, without the blanks for which breaks stand."""
        for edit in super().edits(translated):
            yield edit._replace(text=_MARKED_BLANK.sub(r"\1", edit.text).replace(_MARK.raw, ""))


class _ParagraphReader:
    """Reads a paragraph: ECMA-376 part 1, sections 17.3 and 21.1.2, or OpenDocument 1.3 part 3, section 6.

    Attributes:
        ends: the index of the closing tag of each opening tag.
        tokens: what was read.
        atoms: what was read behind the last text or tag.
        is_parted: whether a break stands behind the last text.
        run: the tags of the present run.
        runs: the tags of runs, by their appearance.
    """

    def __init__(self, source: str, xml: Sequence[XmlToken], plain: Set[str]) -> None:
        self.source, self.xml, self.plain = source, xml, plain
        self.has_runs = any(token.name == "t" for token in xml)
        self.tokens: list[Token] = []
        self.atoms: list[Token] = []
        self.is_parted, self.depth = False, 0
        self.last_letter = ""
        self.run = _NO_RUN
        self.runs: dict[str, tuple[str, str]] = {}
        self.ends: dict[int, int] = {}
        stack: list[int] = []
        for index, token in enumerate(xml):
            if token.kind == "open":
                stack.append(index)
            elif token.kind == "close":
                self.ends[stack.pop()] = index

    def read(self, between: str | None) -> Iterator[Unit]:
        """Yield the text of the paragraph, if it has any, without what stands before and behind it."""
        kinds = {("open", "t"), ("empty", "fldChar"), ("open", "fldChar")} if self.has_runs else {("text", "")}
        texts = [index for index, token in enumerate(self.xml) if (token.kind, token.name) in kinds]
        if not texts:
            return
        children = list(self.children(0, len(self.xml)))
        first = next(start for start, end in children if end >= texts[0])
        last = next(end for _, end in children if end >= texts[-1])
        self.read_children(first, last + 1)
        self.close_run()
        self.add_atoms()
        block = make_block(self.tokens)
        if self.runs:
            _set_wraps(block.root, dict(self.runs.values()), next(iter(self.runs.values()))[0])
            lead, tail = (blanks and blanks.join(block.root.wrap) for blanks in (block.lead, block.tail))
            block = replace(block, lead=lead, tail=tail)
        if any(token.kind == "atom" and not token.name for token in self.tokens):
            between = None  # a document may not hold a note or an image twice
        yield _Paragraph(block, self.xml[first].start, self.xml[last].end, between)

    def raw(self, first: int, last: int) -> str:
        return self.source[self.xml[first].start : self.xml[last].end]

    def children(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the first and last index of each piece between two indices."""
        while first < last:
            end = self.ends.get(first, first)
            yield first, end
            first = end + 1

    def read_children(self, first: int, last: int) -> None:
        children = list(self.children(first, last))
        fields, read = self.fields(children), -1
        for position, (index, end) in enumerate(children):
            token = self.xml[index]
            if position <= read:
                continue
            if position in fields:
                read, separator = fields[position]
                if separator is None or self.depth == _MAX_CONTAINERS:
                    self.add_atom(self.raw(index, children[read][1]))
                else:
                    self.read_container(index, children[separator][1] + 1, *children[read])
            elif token.kind == "text":
                self.add_text("" if self.has_runs else token.text)
            elif token.kind == "open" and token.name == "r":
                self.read_run(index, end)
            elif token.kind == "open" and token.name in _CONTAINERS and self.depth < _MAX_CONTAINERS:
                self.read_container(index, *self.content(index, end), end)
            elif token.name not in _HINTS:
                self.add_atom(self.raw(index, end), token.name)

    def fields(self, children: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int | None]]:
        """Map the first piece of each field to its last one, and to the one before its text if it is a link."""
        fields: dict[int, tuple[int, int | None]] = {}
        begun: list[list[int]] = []  # of each open field, the first piece and those before its text
        for position, (index, end) in enumerate(children):
            for token in self.xml[index:end] if self.xml[index].name == "r" else ():
                kind = _FIELD_CHARACTER.search(token.text) if token.name == "fldChar" else None
                if kind and kind[1] == "begin":
                    begun.append([position])
                elif kind and begun and kind[1] == "separate":
                    begun[-1].append(position)
                elif kind and begun:
                    begin, *separators = begun.pop()
                    start = self.xml[children[begin][0]].start
                    is_link = begin not in separators and _LINK.search(self.source, start, start + _MAX_CODE)
                    fields[begin] = position, separators[0] if is_link and separators else None
        return fields

    def content(self, first: int, last: int) -> tuple[int, int]:
        """Return where the content of an element begins and ends, without its properties."""
        inner = first + 1
        for index, end in self.children(first + 1, last):
            if self.xml[index].name == "sdtContent" and self.xml[index].kind == "open":
                return index + 1, end
            inner = end + 1 if self.xml[index].name.endswith("Pr") else inner
        return inner, last

    def read_container(self, first: int, inner: int, outer: int, last: int) -> None:
        """Read an element: its tags, from `inner` its content, from `outer` the tags that close it."""
        opening = Token("open", self.raw(first, inner - 1), "container")
        is_plain = opening.raw in self.plain
        if not is_plain:
            self.close_run()
            self.add_atoms()
            self.tokens.append(opening)
        self.depth += 1
        self.read_children(inner, outer)
        self.depth -= 1
        if not is_plain:
            self.close_run()
            self.add_atoms()
            self.tokens.append(Token("close", self.raw(outer, last), "container"))

    def read_run(self, first: int, last: int) -> None:
        children = [(index, end, self.xml[index].name) for index, end in self.children(first + 1, last)]
        children = [child for child in children if child[2] and child[2] not in _HINTS]
        names, prefix = {name for _, _, name in children} - {"rPr"}, self.xml[first].prefix
        if "t" not in names:
            if names:
                self.add_atom(self.raw(first, last), "br" if names <= _BREAKS else "")
            return
        properties = "".join(self.raw(index, end) for index, end, name in children if name == "rPr")
        space = "" if prefix == "a:" else ' xml:space="preserve"'  # DrawingML knows no such attribute
        run = f"<{prefix}r>{properties}<{prefix}t{space}>", f"</{prefix}t></{prefix}r>"
        run = self.runs.setdefault(_INVISIBLE.sub("", properties), run)
        for index, end, name in children:
            if name == "t":
                text = "".join(token.text for token in self.xml[index:end] if token.kind == "text")
                is_kept = not space or "preserve" in self.xml[index].text
                self.add_text(text if is_kept else text.strip(_BLANKS), run)
            elif name == "noBreakHyphen":
                self.add_text("\N{NON-BREAKING HYPHEN}", run)
            elif name != "rPr":
                self.add_atom(f"<{prefix}r>{properties}{self.raw(index, end)}</{prefix}r>", name)

    def add_text(self, text: str, run: tuple[str, str] = _NO_RUN) -> None:
        if not text:
            return
        is_new = run != self.run
        if is_new:
            self.close_run()
        self.add_atoms(text[0])
        if is_new:
            self.tokens.append(Token("open", run[0], "run"))
        self.tokens.append(Token("text", text))
        self.run, self.last_letter, self.is_parted = run, text[-1], False

    def close_run(self) -> None:
        if self.run != _NO_RUN:
            self.tokens.append(Token("close", self.run[1], "run"))
        self.run = _NO_RUN

    def add_atom(self, raw: str, name: str = "") -> None:
        is_break = name in _BREAKS
        self.atoms.append(Token("atom", raw, "break" if is_break else ""))
        self.is_parted = self.is_parted or is_break

    def add_atoms(self, next_letter: str = "") -> None:
        """Add the atoms behind the last text, and a blank where a break stands between two words."""
        self.tokens += self.atoms
        if self.is_parted and self.last_letter.strip() and next_letter.strip():
            if self.atoms and self.atoms[-1].name == "break":
                self.tokens.append(_MARK)
            self.tokens.append(Token("text", " "))
        self.atoms = []


def _set_wraps(element: Element, runs: Mapping[str, str], default: str) -> None:
    """Turn the elements with the tags of `runs` into runs; that with most letters becomes the run of its element.

    An element that holds no run has the run with the opening tag `default`.
    """
    letters = Counter[str]()
    for child in element.children:
        if isinstance(child, Element) and child.opening in runs:
            letters[child.opening] += child.end - child.start
    main = letters.most_common(1)[0][0] if letters else default
    element.wrap = (main, runs[main])
    children: list[Element | Atom] = []
    for child in element.children:
        if isinstance(child, Element) and child.opening == main:
            children += child.children
            continue
        children.append(child)
        if isinstance(child, Element) and child.opening in runs:
            child.wrap, child.opening, child.closing = (child.opening, child.closing), "", ""
        elif isinstance(child, Element):
            _set_wraps(child, runs, main)
    element.children = children
