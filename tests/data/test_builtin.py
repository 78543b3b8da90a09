"""The built-in corpora exist in both directions, and unknown names are refused by name."""

from __future__ import annotations

import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from bitext.pairs import Pair
from manyheads.data import builtin
from manyheads.data.builtin import _CORPUS_SIZES, builtin_pairs
from manyheads.errors import DataError

SPLITS: tuple[Literal["train", "valid", "test"], ...] = ("train", "valid", "test")
NAMES = ("de-en", "ko-en")


def test_a_corpus_has_the_promised_sizes_and_numbers_its_lines() -> None:
    for name in NAMES:
        foreign = name[:2]
        for split in SPLITS:
            pairs = builtin_pairs(name, split, source=foreign, target="en")
            assert len(pairs) == _CORPUS_SIZES[split]
            assert [pair.line for pair in pairs] == list(range(1, len(pairs) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_occurs_twice_or_in_two_splits_on_either_side(name: str) -> None:
    pairs = [pair for split in builtin._load_texts(name).values() for pair in split]
    for side in zip(*pairs, strict=True):
        assert len(set(side)) == len(side)


@pytest.mark.parametrize("name", NAMES)
def test_every_held_out_english_word_occurs_in_the_training_text(name: str) -> None:
    words = {
        split: Counter(word for _, english in pairs for word in re.findall(r"[\w'-]+", english.lower()))
        for split, pairs in builtin._load_texts(name).items()
    }
    for split in ("valid", "test"):
        assert [word for word in words[split] if words["train"][word] < 3] == []


def test_the_reverse_direction_holds_the_same_pairs_with_sides_exchanged() -> None:
    forward = builtin_pairs("de-en", "valid", source="de", target="en")
    reverse = builtin_pairs("de-en", "valid", source="en", target="de")
    assert reverse == [Pair(pair.target, pair.source, pair.line) for pair in forward]


def test_languages_may_be_written_in_any_spelling() -> None:
    assert builtin_pairs("ko-en", "test", source="eng", target="ko_KR") == builtin_pairs(
        "ko-en", "test", source="en", target="ko"
    )


def test_a_caller_may_change_the_list_that_it_got() -> None:
    builtin_pairs("de-en", "valid", source="de", target="en").clear()
    assert len(builtin_pairs("de-en", "valid", source="de", target="en")) == _CORPUS_SIZES["valid"]


@pytest.mark.parametrize(
    ("name", "split", "source", "target", "mentioned"),
    [
        ("fr-en", "train", "fr", "en", ["fr-en", "de-en", "ko-en"]),
        ("de-en", "dev", "de", "en", ["dev", "train", "valid", "test"]),
        ("de-en", "test", "de", "fr", ["fr", "de", "en"]),
        ("ko-en", "test", "en", "en", ["ko", "en"]),
        ("ko-en", "test", "de", "en", ["ko", "en"]),
    ],
)
def test_an_unknown_corpus_split_or_language_is_refused_with_a_list_of_the_known(
    name: str, split: str, source: str, target: str, mentioned: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        builtin_pairs(name, split, source=source, target=target)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    for word in mentioned:
        assert word in str(caught.value)


@pytest.mark.parametrize("damage", [b"no archive", lzma.compress(b"Ein Hund.\tA dog.\n")])
def test_a_damaged_file_is_refused(damage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "de-en.tsv.xz").write_bytes(damage)
    monkeypatch.setattr(builtin, "files", lambda _: tmp_path)
    with pytest.raises(DataError, match="Install manyheads again"):
        builtin._load_texts.__wrapped__("de-en")
