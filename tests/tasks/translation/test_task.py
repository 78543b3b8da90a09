"""The task is the object by which the verbs build, train and describe its models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runs.parts import SENTENCES, make_config, write_split
from tests.tasks.parts import WORDS, assert_names_its_weights

from manyheads.config.schema import Config
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train
from manyheads.search.options import SearchOptions
from manyheads.tasks.translation.task import TASK
from manyheads.text.reserved import PLACEHOLDERS, TERM_SYMBOLS


def test_the_task_names_the_weights_of_its_model(tmp_path: Path) -> None:
    assert_names_its_weights(make_config(tmp_path, tokenizer=WORDS, model={"tied_embeddings": "none"}))


def test_the_reserved_symbols_of_all_stages_have_the_order_of_their_ids() -> None:
    def symbols(data: dict[str, Any], **search: bool) -> list[str]:
        return TASK.reserved_symbols(Config.model_validate({"data": data, "search": search}))

    one: dict[str, Any] = {"source": "de", "target": "en"}
    augmented = one | {"augment": 1.0, "terms": 0.5}
    assert symbols(augmented, copy_literals=True) == [*TERM_SYMBOLS, *PLACEHOLDERS]
    assert symbols(augmented, copy_literals=False) == [*TERM_SYMBOLS]
    assert symbols({"pairs": [one | {"both": True}, {"source": "fr", "target": "en"}]}) == ["<to-en>", "<to-de>"]
    assert symbols(one, copy_literals=True) == []


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
