"""A program names its commands as a user types them."""

from __future__ import annotations

from pathlib import Path

from bitext.program import BITEXT, Program


def test_a_command_line_begins_with_the_words_of_the_program_and_is_quoted() -> None:
    assert BITEXT.line("split", Path("a b.de")) == "bitext split 'a b.de'"
    assert Program("x", "1", ("x", "data")).line("fetch") == "x data fetch"
