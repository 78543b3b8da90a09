"""Units: the texts of a document that are translated, with the places where their translations are written.

A document is never written anew. A reader finds the spans of its units; what stands between them is copied.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bitext.letters import has_letters
from manyheads.documents.blocks import Block
from manyheads.documents.tag_projection import project_tags


class Edit(NamedTuple):
    """Characters of a text, from `start` to `end`, and the text that replaces them."""

    start: int
    end: int
    text: str


class Translated(NamedTuple):
    """The translation of a unit.

    Attributes:
        text: the translation.
        links: its word alignment as pairs "source-target" of word indices, separated by blanks; None means a
            monotone alignment.
        doubtful: whether it should be checked; formats with a mark for that get it.
    """

    text: str
    links: str | None = None
    doubtful: bool = False


@dataclass(frozen=True)
class Unit:
    """A text that is translated as a whole, with its inline tags.

    Attributes:
        block: the text and its tags.
        start, end: offsets of the text that the translation replaces.
        between: what stands between source and translation where a document shows both; None where it cannot.
    """

    block: Block
    start: int
    end: int
    between: str | None = None

    @property
    def text(self) -> str:
        """Return the text to translate, without tags."""
        return self.block.text

    @property
    def is_tagged(self) -> bool:
        """Return whether a word alignment is needed to write the translation."""
        return self.block.is_tagged

    def edits(self, translated: Translated) -> Iterable[Edit]:
        """Return what replaces the text of the unit; subclasses may write to several places."""
        return [Edit(self.start, self.end, project_tags(self.block, translated.text, translated.links))]

    def is_doubtful(self, translated: Translated) -> bool:
        """Return whether a translation should be checked."""
        return translated.doubtful


# A reader yields the units of a text in order, without overlap, and edits that the text needs as soon as one of its
# units is translated, such as the code of its language.
Reader = Callable[[str], Iterable[Unit | Edit]]


@dataclass(frozen=True)
class Part:
    """A text file, or a text file of a container, such as a chapter of a book.

    Attributes:
        text: the whole text.
        readers: its readers. Their units may lie within each other, such as the `alt` text of an image within a
            paragraph: the units of the first reader are written first, and the next one reads the result.
        name: name of the file within its container; "" for a file of its own.
    """

    text: str
    readers: Sequence[Reader]
    name: str = ""
    _found: list[list[Unit]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the units."""
        object.__setattr__(self, "_found", [list(_units(reader(self.text))) for reader in self.readers])

    @property
    def units(self) -> list[Unit]:
        """Return the units that have a letter, in the order in which `write` takes their translations."""
        return [unit for units in self._found for unit in units]

    @property
    def places(self) -> list[str]:
        """Return where each unit begins, for messages."""
        line_ends = [match.start() for match in re.finditer("\n", self.text)]
        lines = (bisect_left(line_ends, unit.start) + 1 for unit in self.units)
        return [f"{self.name}, line {line:,}" if self.name else f"line {line:,}" for line in lines]

    def write(self, translations: Iterable[Translated], *, bilingual: bool = False) -> str:
        """Return the text with translations in the places of the units.

        A unit whose translation is its text is copied as it is. With `bilingual`, source and translation stand
        beside each other.
        """
        given = list(translations)
        changes = any(translated.text != unit.text for unit, translated in zip(self.units, given, strict=False))
        text, remaining = self.text, iter(given)
        for reader, found in zip(self.readers, self._found, strict=True):
            pieces = list(reader(text))
            units = list(_units(pieces))
            assert [unit.text for unit in units] == [unit.text for unit in found], "the structure changed"
            edits = [
                edit
                for unit, translated in zip(units, remaining, strict=False)
                if translated.text != unit.text
                for edit in _shown(unit, translated, text, bilingual=bilingual)
            ]
            if changes:
                edits += [piece for piece in pieces if isinstance(piece, Edit)]
            text = apply_edits(text, edits)
        return text


def _units(pieces: Iterable[Unit | Edit]) -> Iterator[Unit]:
    return (piece for piece in pieces if isinstance(piece, Unit) and has_letters(piece.text))


def _shown(unit: Unit, translated: Translated, text: str, *, bilingual: bool) -> Iterator[Edit]:
    for edit in unit.edits(translated):
        if bilingual and unit.between is not None:
            edit = edit._replace(text=f"{text[edit.start : edit.end]}{unit.between}{edit.text}")
        yield edit


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with its edits, which do not overlap; equal ones are one."""
    parts, position = [], 0
    for edit in sorted(set(edits)):
        assert edit.start >= position, "edits overlap"
        parts += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, text[position:]])
