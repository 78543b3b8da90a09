"""A text to translate: plain text or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.serving.markup.blocks import Block
from manyheads.serving.markup.html_reader import read_blocks
from manyheads.serving.markup.tag_projection import project_tags
from manyheads.tasks.result import Translation
from manyheads.text.identification import has_letters

__all__ = ["Document", "plain_document", "read_html"]


@dataclass(frozen=True)
class Document:
    """A text to translate, divided into pieces.

    Attributes:
        unchanged: the text as it was sent.
        pieces: markup that is copied (str) and blocks that are translated; of plain text, the text alone.
        is_html: whether the text is HTML.
    """

    unchanged: str
    pieces: list[str | Block]
    is_html: bool

    @property
    def blocks(self) -> list[Block]:
        """Return the blocks that are translated: those with a letter."""
        return [piece for piece in self.pieces if isinstance(piece, Block) and has_letters(piece.text)]

    @property
    def texts(self) -> list[str]:
        """Return the texts that are translated."""
        return [block.text for block in self.blocks] if self.is_html else [self.unchanged]

    @property
    def has_letters(self) -> bool:
        """Return whether there is anything to translate."""
        return bool(self.blocks) if self.is_html else has_letters(self.unchanged)

    @property
    def is_tagged(self) -> bool:
        """Return whether a word alignment is needed to project inline tags."""
        return any(block.is_tagged for block in self.blocks)

    def assemble(self, translations: Sequence[Translation]) -> list[str]:
        """Return whole texts, best first, from the translations of `texts`; of HTML only the best one."""
        if not self.is_html:
            return [hypothesis.text for hypothesis in translations[0].hypotheses] or [self.unchanged]
        remaining = iter(translations)
        parts = []
        for piece in self.pieces:
            if isinstance(piece, str):
                parts.append(piece)
            elif has_letters(piece.text):
                translation = next(remaining)
                parts.append(project_tags(piece, translation.translation, translation.alignment))
            else:
                parts.append(piece.raw)
        return ["".join(parts)]


def plain_document(text: str) -> Document:
    """Return the document of a plain text."""
    return Document(text, [text], is_html=False)


def read_html(text: str) -> Document:
    """Return the document of an HTML text; invalid HTML is accepted."""
    return Document(text, read_blocks(text), is_html=True)
