"""A text that somebody wants translated: plain, or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.serving.markup.blocks import Block
from manyheads.serving.markup.carrying import carry
from manyheads.serving.markup.reading import read_blocks
from manyheads.tasks.result import Translation
from manyheads.text.identification import has_letters

__all__ = ["Document", "plain_document", "read_html"]


@dataclass(frozen=True)
class Document:
    """What is translated of a text, and what is around it.

    Attributes:
        unchanged: the text as it came.
        pieces: what is kept to the letter, and what is translated; a single text where it is no HTML.
        is_html: whether it is.
    """

    unchanged: str
    pieces: list[str | Block]
    is_html: bool

    @property
    def blocks(self) -> list[Block]:
        """What is translated: blocks with a letter in them."""
        return [one for one in self.pieces if isinstance(one, Block) and has_letters(one.text)]

    @property
    def texts(self) -> list[str]:
        """The texts that are translated."""
        return [block.text for block in self.blocks] if self.is_html else [self.unchanged]

    @property
    def has_letters(self) -> bool:
        """Whether there is anything to translate."""
        return bool(self.blocks) if self.is_html else has_letters(self.unchanged)

    @property
    def is_tagged(self) -> bool:
        """Whether it must be known which word comes from which."""
        return any(block.is_tagged for block in self.blocks)

    def put_together(self, translations: Sequence[Translation]) -> list[str]:
        """The whole text from the translations of its texts, best first; of HTML only the best one."""
        if not self.is_html:
            return [one.text for one in translations[0].hypotheses] or [self.unchanged]
        each = iter(translations)
        out = []
        for piece in self.pieces:
            if isinstance(piece, str):
                out.append(piece)
            elif has_letters(piece.text):
                found = next(each)
                out.append(carry(piece, found.translation, found.alignment))
            else:
                out.append(piece.raw)
        return ["".join(out)]


def plain_document(text: str) -> Document:
    """A text that is no HTML."""
    return Document(text, [text], is_html=False)


def read_html(text: str) -> Document:
    """A text that is HTML, however broken."""
    return Document(text, read_blocks(text), is_html=True)
