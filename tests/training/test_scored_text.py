"""A run is scored on a split of its own data, or on files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import make_config, write_corpus

from bitext.lines import read_lines
from manyheads.errors import UsageError
from manyheads.training.scored_text import ScoredText


def test_files_replace_a_split_line_by_line(tmp_path: Path) -> None:
    config = make_config(write_corpus(tmp_path))
    files = tmp_path / "valid.de", tmp_path / "valid.en"
    assert ScoredText("valid").pairs(config) == ScoredText("test", *files).pairs(config)
    assert ScoredText("valid").pairs(config)[0] == list(read_lines(files[0]))


@pytest.mark.parametrize("form", [0, 1])
def test_references_keep_their_no_break_blanks_whatever_the_run_writes(tmp_path: Path, form: int) -> None:
    config = make_config(write_corpus(tmp_path), tokenizer={"normal_form": form})
    reference = tmp_path / "test.en"
    lines = list(read_lines(reference))
    reference.write_text("".join(f"{line}\u00a0!  1\u202f0\n" for line in lines), encoding="utf-8")
    assert ScoredText("test").pairs(config)[1] == [f"{line}\u00a0! 1\u202f0" for line in lines]


def test_a_text_without_references_takes_no_reference_file(tmp_path: Path) -> None:
    config = make_language_config(write_play(tmp_path))
    text = (tmp_path / "play.txt").read_text("utf-8")
    assert all(line in text for line in ScoredText("valid").lines(config))
    with pytest.raises(UsageError, match="needs no reference"):
        ScoredText(source=tmp_path / "play.txt", reference=tmp_path / "play.txt").lines(config)
