"""Texts are joined with tags, and the hypothesis of a beam that is closest to the reference is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.improve.build.schema import Mixed
from manyheads.improve.build.text import _choose_closest, _closest_to, mix_texts


def write_lines(folder: Path, name: str, *lines: str) -> Path:
    """Write lines to a file, and return its path."""
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


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


def test_the_first_hypothesis_with_the_highest_sentence_bleu_is_chosen(tmp_path: Path) -> None:
    assert _closest_to("the red dog barks", ["a cat", "the red dog sleeps", "dog the red"]) == "the red dog sleeps"
    assert _closest_to("x", ["b", "a"]) == "b"
    candidates = write_lines(
        tmp_path, "candidates", "0 ||| a cat ||| -0.1", "0 ||| the ||| dog ||| -0.2", "1 |||  ||| -0.3"
    )
    _choose_closest(candidates, ["the ||| dog", "nothing"], tmp_path / "text.en")
    assert (tmp_path / "text.en").read_text("utf-8") == "the ||| dog\n\n"
    assert not candidates.exists()
