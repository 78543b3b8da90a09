"""HTML as what is kept to the letter and blocks of text between it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import accumulate

from manyheads.serving.markup.blocks import Block, Part, make_block

__all__ = ["read_blocks"]


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


INLINE = words(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q ruby s small span strike strong sub "
    "sup time tt u var"
)
VOID = words("area base br col embed hr img input link meta param source track wbr")
VOID_INLINE = frozenset(("img", "wbr", "input"))
# Not translated, whatever is in them.
UNTOUCHED_INLINE = words("code kbd samp svg math canvas audio video object")
UNTOUCHED = words("pre script style template textarea noscript head") | UNTOUCHED_INLINE
CLASSES = frozenset(("notranslate", "mention", "hashtag"))
Attributes = list[tuple[str, str | None]]


def read_blocks(source: str) -> list[str | Block]:
    """The pieces of a document in order; together they are the document."""
    reader = Reader(source)
    reader.feed(source)
    reader.close()
    return reader.finish()


class Reader(HTMLParser):
    """Follows the tags, and cuts the source where blocks begin and end."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        lines = [len(line) + 1 for line in source.split("\n")]
        self.line_starts = [0, *accumulate(lines)]
        self.pieces: list[str | Block] = []
        self.parts: list[Part] = []
        self.begun = 0  # where the present block began in the source
        self.skipping: tuple[str, int, bool] | None = None  # name, where it began, whether it is inline
        self.depth = 0  # elements of that name in each other

    @property
    def here(self) -> int:
        """Where in the source the present tag or text begins."""
        line, column = self.getpos()
        return self.line_starts[line - 1] + column

    def tag_end(self) -> int:
        """Where the present tag ends."""
        found = self.source.find(">", self.here)
        return len(self.source) if found < 0 else found + 1

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        """A tag that opens an element, or one without an end."""
        raw = self.get_starttag_text() or ""
        if self.skipping is not None:
            self.depth += tag == self.skipping[0] and not raw.endswith("/>")
            return
        inline = tag in INLINE or tag in UNTOUCHED_INLINE or tag in VOID_INLINE
        if is_untouched(tag, attrs) and tag not in VOID:
            self.skipping, self.depth = (tag, self.here, inline), 1
            if not inline:
                self.end_block(self.here)
        elif tag in VOID_INLINE:
            self.parts.append(Part("atom", raw))
        elif inline:
            self.parts.append(Part("open", raw, tag))
        else:
            self.end_block(self.here)
            self.keep(raw)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        """`<x/>`: for HTML this opens x, but in XHTML it is all of it."""
        raw = self.get_starttag_text() or ""
        if self.skipping is not None:
            return
        if tag in INLINE or tag in UNTOUCHED_INLINE or tag in VOID_INLINE:
            self.parts.append(Part("atom", raw))
        else:
            self.end_block(self.here)
            self.keep(raw)

    def handle_endtag(self, tag: str) -> None:
        """A tag that closes an element."""
        end = self.tag_end()
        if self.skipping is not None:
            name, begun, inline = self.skipping
            self.depth -= tag == name
            if self.depth == 0:
                self.skipping = None
                self.leave_out(begun, end, inline=inline)
            return
        raw = self.source[self.here : end]
        if tag in INLINE:
            self.parts.append(Part("close", raw, tag))
        elif tag in UNTOUCHED_INLINE:
            self.parts.append(Part("atom", raw))
        else:
            self.end_block(self.here)
            self.keep(raw)

    def handle_data(self, data: str) -> None:
        """Text, unescaped."""
        if self.skipping is None:
            self.parts.append(Part("text", data))

    def handle_comment(self, data: str) -> None:
        """A comment, which has no place in a sentence."""
        self.aside()

    def handle_decl(self, decl: str) -> None:
        """Such as <!DOCTYPE html>."""
        self.aside()

    def handle_pi(self, data: str) -> None:
        """Such as <?xml ...?>."""
        self.aside()

    def unknown_decl(self, data: str) -> None:
        """Such as <![CDATA[...]]>."""
        self.aside()

    def aside(self) -> None:
        """Leave a comment or its like as it is; where it ends is seen when the next thing begins."""
        if self.skipping is None:
            end = self.source.find("-->", self.here) + 3 if self.source.startswith("<!--", self.here) else 0
            end = end if end >= 3 else self.tag_end()
            self.parts.append(Part("atom", self.source[self.here : end]))

    def leave_out(self, begun: int, end: int, *, inline: bool) -> None:
        """Keep a stretch of the source to the letter, in the block or after it."""
        if inline:
            self.parts.append(Part("atom", self.source[begun:end]))
        else:
            self.keep(self.source[begun:end])

    def keep(self, raw: str) -> None:
        """Add something that is kept to the letter, behind the block that has ended."""
        self.pieces.append(raw)
        self.begun += len(raw)

    def end_block(self, end: int) -> None:
        """The present block ends at a place of the source."""
        if self.parts:
            self.pieces.append(make_block(self.parts, self.source[self.begun : end]))
        self.parts, self.begun = [], end

    def finish(self) -> list[str | Block]:
        """All pieces."""
        if self.skipping is not None:  # never closed: all that follows belongs to it
            _, begun, inline = self.skipping
            self.leave_out(begun, len(self.source), inline=inline)
        self.end_block(len(self.source))
        return self.pieces


def is_untouched(tag: str, attributes: Attributes) -> bool:
    """Whether what is in an element is not translated."""
    if tag in UNTOUCHED:
        return True
    found = {name: value or "" for name, value in reversed(attributes)}
    if found.get("translate", "").strip().lower() == "no":
        return True
    return not CLASSES.isdisjoint(re.split(r"\s+", found.get("class", "")))
