"""Model cards of runs and exports."""

from __future__ import annotations

import pytest
from tests.runs.parts import make_config, write_corpus

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.shown_card import licence_of, shown_card
from manyheads.runs.model_card import _facts_of
from manyheads.runs.train import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("card")
    train(make_config(write_corpus(folder / "corpus"), training={"steps": 2}), folder / "run")
    return RunDirectory(folder / "run")


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("deu_Latn", "zh-Hant", "de, zh"),
        ("no", "en_US", "nb, en"),
        ("zh-TW", "zh-CN", "zh"),
        ("src", "tgt", "src, tgt"),
    ],
)
def test_a_card_lists_languages_by_the_codes_of_the_hub(
    trained: RunDirectory, source: str, target: str, languages: str
) -> None:
    config = trained.config()
    data = config.data.model_copy(update={"source": source, "target": target})
    facts = _facts_of(config.model_copy(update={"data": data}), trained.tokenizers(config), ())
    assert facts["languages"] == languages


def test_a_card_names_no_licence_until_its_author_does(trained: RunDirectory) -> None:
    card = (trained.path / "README.md").read_text(encoding="utf-8")
    assert licence_of(card) == ""
    assert licence_of(card.replace("license:", "license: mit")) == "mit"
    blocks = shown_card(card)["blocks"]
    assert blocks[0] == ["h1", "de to en"]
    assert not [text for _, text in blocks if "filled in" in text or "manyheads translate" in text]
    assert [text for tag, text in blocks if tag == "li" and text.startswith("Training: 2 updates")]


@pytest.mark.parametrize(
    ("train_text", "shown"),
    [
        ("train", "corpus/train"),
        ("/home/me/secret/other/train", "other/train"),
        (["de", "/x/y/en"], "corpus/de and y/en"),
    ],
)
def test_a_card_names_the_folder_of_its_text_and_no_parent_folder(
    trained: RunDirectory, train_text: object, shown: str
) -> None:
    config = trained.config()
    data = config.data.__class__(**{**vars(config.data), "root": "/home/me/corpus", "train": train_text})
    changed = config.__class__(**{**vars(config), "data": data})
    assert _facts_of(changed, trained.tokenizers(config), ())["data"] == shown


def test_a_card_names_all_texts_of_a_training(trained: RunDirectory) -> None:
    config = trained.config()
    data = config.data.__class__(
        **{**vars(config.data), "root": "corpus", "train": "train", "more": [["/x/back/a", "/x/b"]]}
    )
    changed = config.__class__(**{**vars(config), "data": data})
    assert _facts_of(changed, trained.tokenizers(config), ())["data"] == "corpus/train; back/a and x/b"
