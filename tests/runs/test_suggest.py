"""A configuration for somebody's own text: by what training will see of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.runs.suggest import Suggestion, suggest


def write_text(folder: Path, pairs: int, source_words: int = 5, target_words: int = 5, times: int = 1) -> Path:
    """train, each pair so many times, and valid."""
    folder.mkdir()
    for split, count in (("train", pairs), ("valid", 3)):
        for language, words in (("aa", source_words), ("bb", target_words)):
            lines = [f"{split} {n} {'x ' * (words - 2)}" for n in range(count)]
            text = "".join(f"{line.strip()}\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text * times, encoding="utf-8")
    return folder


def reason_of(suggestion: Suggestion, key: str) -> str:
    (reason,) = re.findall(rf"^{key} = \S+  # (.*)$", suggestion.toml, re.MULTILINE)
    return str(reason)


def test_what_the_filters_drop_does_not_count(tmp_path: Path) -> None:
    once = suggest(write_text(tmp_path / "once", 700), "aa", "bb")
    thrice = suggest(write_text(tmp_path / "thrice", 700, times=3), "aa", "bb")
    assert "700 pairs" in reason_of(thrice, "vocab_size")
    assert thrice.config.training == once.config.training


@pytest.mark.parametrize("words", [(110, 40), (40, 110)])
def test_long_texts_on_either_side_get_room_for_their_subwords(tmp_path: Path, words: tuple[int, int]) -> None:
    """A word is more than one token: 110 words are more than 128 tokens."""
    found = suggest(write_text(tmp_path / "text", 50, *words), "aa", "bb")
    assert found.config.data.max_length == 256
    assert suggest(write_text(tmp_path / "short", 50, 40, 40), "aa", "bb").config.data.max_length == 128


def test_the_plan_counts_target_tokens_and_the_rest_is_measured_by_it(tmp_path: Path) -> None:
    found = suggest(write_text(tmp_path / "text", 900, source_words=5, target_words=20), "aa", "bb")
    training = found.config.training
    (told,) = re.findall(r"about ([\d,]+) updates", reason_of(found, "epochs"))
    updates = int(told.replace(",", ""))
    words = 900 * 20 * (training.epochs or 0) / training.batch_tokens
    assert words < updates < 2 * words, "between one and two tokens a word"
    assert 0.09 * updates < training.warmup_steps < 0.11 * updates
    assert 11 < updates / training.save_every < 13, "a dozen checkpoints"


def test_a_folder_without_a_pair_to_train_with_is_named(tmp_path: Path) -> None:
    """All of it also stands in the validation set."""
    root = write_text(tmp_path / "text", 5)
    for language in ("aa", "bb"):
        (root / f"valid.{language}").write_bytes((root / f"train.{language}").read_bytes())
    with pytest.raises(DataError, match=r"text holds no pair to train with\. See: manyheads data report"):
        suggest(root, "aa", "bb")
