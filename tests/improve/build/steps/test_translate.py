"""The hypothesis of a beam that is closest to the reference is chosen."""

from __future__ import annotations

from pathlib import Path

from tests.improve.build.parts import write_lines

from manyheads.improve.build.steps.translate import _choose_closest, _closest_to


def test_the_first_hypothesis_with_the_highest_sentence_bleu_is_chosen(tmp_path: Path) -> None:
    assert _closest_to("the red dog barks", ["a cat", "the red dog sleeps", "dog the red"]) == "the red dog sleeps"
    assert _closest_to("x", ["b", "a"]) == "b"
    candidates = write_lines(
        tmp_path, "candidates", "0 ||| a cat ||| -0.1", "0 ||| the ||| dog ||| -0.2", "1 |||  ||| -0.3"
    )
    _choose_closest(candidates, ["the ||| dog", "nothing"], tmp_path / "text.en")
    assert (tmp_path / "text.en").read_text("utf-8") == "the ||| dog\n\n"
    assert not candidates.exists()
