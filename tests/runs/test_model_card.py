"""Model cards of runs and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.shown_card import licence_of, shown_card
from manyheads.runs.model_card import _facts_of


def facts_of(run: Path, **data: Any) -> dict[str, str]:
    """Return the facts on the card of a run with other settings of its data."""
    config = RunDirectory(run).config()
    changed = config.data.__class__(**{**vars(config.data), **data})
    return _facts_of(config.model_copy(update={"data": changed}), RunDirectory(run).tokenizers(config), ())


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
    averaged: Path, source: str, target: str, languages: str
) -> None:
    assert facts_of(averaged, source=source, target=target)["languages"] == languages


def test_a_card_names_no_licence_until_its_author_does(averaged: Path) -> None:
    card = (averaged / "README.md").read_text(encoding="utf-8")
    assert licence_of(card) == ""
    assert licence_of(card.replace("license:", "license: mit")) == "mit"
    blocks = shown_card(card)["blocks"]
    assert blocks[0] == ["h1", "de to en"]
    assert not [text for _, text in blocks if "filled in" in text or "manyheads translate" in text]
    assert [text for tag, text in blocks if tag == "li" and text.startswith("Training: 12 updates")]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"train": "train"}, "corpus/train"),
        ({"train": "/home/me/secret/other/train"}, "other/train"),
        ({"train": ["de", "/x/y/en"]}, "corpus/de and y/en"),
        ({"train": "train", "more": [["/x/back/a", "/x/b"]]}, "corpus/train; back/a and x/b"),
    ],
)
def test_a_card_names_the_folder_of_each_text_and_no_parent_folder(
    averaged: Path, data: dict[str, Any], shown: str
) -> None:
    assert facts_of(averaged, root="/home/me/corpus", **data)["data"] == shown
