"""Texts are joined with tags."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.improve.build.parts import write_lines

from manyheads.errors import DataError
from manyheads.improve.build.schema import Mixed
from manyheads.improve.build.steps.mix import mix_texts


def test_a_tag_is_added_to_source_lines_only(tmp_path: Path) -> None:
    files = [write_lines(tmp_path, "a.de", "eins", "zwei"), write_lines(tmp_path, "a.en", "one", "two")]
    out = [tmp_path / "text.de", tmp_path / "text.en"]
    count = mix_texts([(Mixed(text="a"), files), (Mixed(text="a", tag="<bt>", lines=1), files)], out)
    assert count == 3
    assert [path.read_text("utf-8") for path in out] == ["eins\nzwei\n<bt> eins\n", "one\ntwo\none\n"]


def test_sides_that_differ_in_length_are_refused(tmp_path: Path) -> None:
    files = [write_lines(tmp_path, "a.de", "eins", "zwei"), write_lines(tmp_path, "a.en", "one")]
    with pytest.raises(DataError, match=r"a\.de has 2 lines and .*a\.en has 1 lines"):
        mix_texts([(Mixed(text="a"), files)], [tmp_path / "text.de", tmp_path / "text.en"])
