"""The task is the object by which the verbs build, train and describe its models."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import SENTENCES, make_config, write_split
from tests.tasks.parts import WORDS, assert_names_its_weights

from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train
from manyheads.search.options import SearchOptions


def test_the_task_names_the_weights_of_its_model(tmp_path: Path) -> None:
    assert_names_its_weights(make_config(tmp_path, tokenizer=WORDS, model={"tied_embeddings": "none"}))


@pytest.mark.parametrize(("joined", "parts"), [(2, 2), (8, 1)])
def test_a_model_that_learned_from_single_sentences_translates_each_sentence_of_a_line(
    tmp_path: Path, joined: int, parts: int
) -> None:
    singles = [(f"{german.capitalize()}.", f"{english.capitalize()}.") for german, english in SENTENCES]
    pairs = [
        (" ".join(german), " ".join(english))
        for german, english in (zip(*singles[i : i + 2], strict=True) for i in range(joined))
    ]
    for name, lines in {"train": [*pairs, *singles[:36]], "valid": singles[36:42], "test": singles[42:]}.items():
        write_split(tmp_path, name, lines)
    train(make_config(tmp_path, training={"steps": 1, "save_every": 1}), tmp_path / "run")
    translator, text = Translator.load(tmp_path / "run"), "Der Hund läuft. Die Katze singt."
    assert [result.sentences for result in translator.translate([text, "Der Hund läuft."])] == [parts, 1]
    whole = translator.translate([text], options=SearchOptions(split="none"))
    assert whole[0].sentences == 1
