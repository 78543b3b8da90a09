"""The text of a run is stored, and read again only if the configuration would read another text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus
from tests.training.parts import CollectingListener

from bitext.pairs import Pair
from manyheads.config.load import parse_config
from manyheads.config.schema import DataConfig
from manyheads.data.training_text import _text_key, held_out, read_split, validation_examples
from manyheads.errors import DataError


def test_stored_text_is_used_by_tokenizers_that_treat_white_space_alike(tmp_path: Path) -> None:
    config = make_config(write_corpus(tmp_path / "corpus"))
    keys = {}
    for kind in ("bpe", "unigram", "words", "huggingface"):
        tokenizer = config.tokenizer.model_copy(update={"kind": kind})
        keys[kind] = _text_key(config.model_copy(update={"tokenizer": tokenizer}), [])
    assert keys["bpe"] == keys["unigram"] != keys["words"] == keys["huggingface"]


@pytest.mark.parametrize(("limit", "count"), [(7, 7), (0.001, 20), (1e9, 20_000), (None, 20_000)])
def test_the_limit_and_the_names_of_splits_hold_for_built_in_text_too(limit: float | None, count: int) -> None:
    data = DataConfig(dataset="builtin:de-en", source="de", target="en", limit=limit)
    assert sum(1 for _ in read_split(data, "train", "pairs")) == count
    assert sum(1 for _ in read_split(data, "valid", "pairs")) == 500
    first = next(read_split(data.model_copy(update={"train": "valid"}), "train", "pairs"))
    assert first == next(read_split(data, "valid", "pairs"))
    with pytest.raises(DataError, match='There is no split "mine" in the corpus de-en'):
        read_split(data.model_copy(update={"train": "mine"}), "train", "pairs")
    with pytest.raises(DataError, match=r"data\.train: there is no file a"):
        read_split(data.model_copy(update={"train": ("a", "b")}), "train", "pairs")


def test_held_out_pairs_without_text_are_counted_and_named(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "corpus")
    config, listener = make_config(folder), CollectingListener()
    (path,) = [path for path in folder.iterdir() if path.name.startswith(f"valid.{config.data.target}")]
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(["\u200b\u3164", *lines[1:]]), encoding="utf-8")
    assert len(held_out(config, "valid", listener)) == len(lines) - 2
    assert listener.messages == [
        f"1 of {len(lines) - 1} pairs of data.valid have no text and are left out, the first in line 1"
    ]


def test_validation_texts_of_another_task_are_examples_the_whole_ones_first() -> None:
    data = {"language": "en", "train": "train", "valid": "valid", "documents": "line"}
    config = parse_config({"task": "language-modeling", "data": data}, origin="a test")
    lines = [
        "short",
        "word " * 30,
        "a whole line",
        "a whole line",
        "a second line",
        "a third line",
        "a fourth line",
    ]
    pairs = [Pair("", line, number) for number, line in enumerate(lines, 1)]
    assert validation_examples(config, pairs) == [
        "a whole line", "a second line", "a third line", "a fourth line",
    ]  # fmt: skip
    whole, cut = validation_examples(config, pairs[:3])
    assert whole == "a whole line"
    assert cut == " ".join(["word"] * 12)
