"""Many texts are translated in groups, with the results of single texts."""

from __future__ import annotations

import pytest
from tests.inference.translation.test_translator import assert_same
from tests.runs.parts import SENTENCES, make_config, write_corpus

from manyheads.inference.translation import grouped
from manyheads.inference.translation.grouped import spread_groups, translate_in_groups
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("grouped")
    train(make_config(write_corpus(folder / "corpus")), folder / "run")
    return Translator.load(folder / "run", device="cpu")


def test_groups_translate_like_all_texts_at_once(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "_TEXTS_PER_CALL", 7)
    sources = ["", *(source for source, _ in SENTENCES), " "]
    counted: list[int] = []
    found = translate_in_groups(translator, sources, counted.append, beam_size=2)
    for translation, alone in zip(found, translator.translate(sources, beam_size=2), strict=True):
        assert_same(translation, alone)
    assert counted == [7] * 7 + [1]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 500])
def test_spread_groups_hold_every_index_once_and_none_is_too_large(count: int) -> None:
    groups = spread_groups(count)
    assert sorted(index for group in groups for index in group) == list(range(count))
    assert all(len(group) <= grouped._TEXTS_PER_CALL for group in groups)
