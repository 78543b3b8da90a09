"""A note is a text that the command line can tell from others."""

from __future__ import annotations

from manyheads.notes import Note


def test_a_note_reads_as_its_text() -> None:
    assert Note("all is well") == "all is well"
    assert not isinstance("all is well", Note)
