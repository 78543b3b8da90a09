"""Token ids on disk: written once, mapped into memory, whole or not there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from manyheads.data import store as module
from manyheads.data.corpus import Pair
from manyheads.data.store import TokenStore

WORDS = ["ein", "Hund", "läuft", "over", "the", "hill", "구름", "🙂"]


def encode_words(texts: Sequence[str]) -> list[list[int]]:
    """4 + the place of each word."""
    return [[4 + WORDS.index(word) for word in text.split()] for text in texts]


def encode_letters(texts: Sequence[str]) -> list[list[int]]:
    """1000 + the code point: another vocabulary for the other side."""
    return [[1_000 + ord(letter) for letter in text] for text in texts]


def some_pairs(count: int) -> list[Pair]:
    """Pairs of 0 to 4 source words and 0 to 14 target letters, at odd lines."""
    dice = np.random.default_rng(7)
    return [
        Pair(" ".join(dice.choice(WORDS, dice.integers(0, 5))), "ab구🙂x" * dice.integers(0, 3) + "z", 2 * i + 1)
        for i in range(count)
    ]


def build(folder: Path, pairs: Sequence[Pair], **settings: object) -> TokenStore:
    options = {"key": "k", "max_length": None, "keep_texts": False} | settings
    return TokenStore.build(folder, iter(pairs), (encode_words, encode_letters), **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few pairs make several chunks, the last of them not full."""
    monkeypatch.setattr(module, "CHUNK", 5)


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    pairs = some_pairs(23)
    build(tmp_path / "store", pairs, keep_texts=True)
    opened = TokenStore(tmp_path / "store")
    assert len(opened) == len(opened.source) == len(opened.target) == 23
    assert [row.tolist() for row in opened.source] == encode_words([pair.source for pair in pairs])
    assert [row.tolist() for row in opened.target] == encode_letters([pair.target for pair in pairs])
    assert opened.lines.tolist() == [pair.line for pair in pairs]
    assert opened.text(0, range(23)) == [pair.source for pair in pairs]
    assert opened.text(1, [22, 3, 3]) == [pairs[22].target, pairs[3].target, pairs[3].target]
    assert opened.too_long == 0


def test_lengths_are_those_of_the_rows(tmp_path: Path) -> None:
    store = build(tmp_path / "store", some_pairs(12))
    assert store.source.lengths.tolist() == [len(row) for row in store.source]
    assert store.target.lengths.tolist() == [len(row) for row in store.target]


def test_texts_are_kept_on_request_only(tmp_path: Path) -> None:
    store = build(tmp_path / "store", some_pairs(3))
    assert store.texts is None
    assert not list((tmp_path / "store").glob("*-text*"))


def test_pairs_with_a_long_side_are_left_out_and_counted(tmp_path: Path) -> None:
    texts = [("ein Hund", "ab"), ("ein " * 4, "ab"), ("ein", "abcd"), ("ein " * 3, "abc"), ("", "abcde")]
    pairs = [Pair(source.strip(), target, line) for line, (source, target) in enumerate(texts, start=10)]
    store = build(tmp_path / "store", pairs, max_length=3, keep_texts=True)
    assert store.too_long == TokenStore(tmp_path / "store").too_long == 3
    assert store.lines.tolist() == [10, 13]
    assert store.text(1, [0, 1]) == ["ab", "abc"]
    assert [row.tolist() for row in store.source] == encode_words(["ein Hund", "ein ein ein"])


def test_whole_chunks_that_are_too_long_leave_no_trace(tmp_path: Path) -> None:
    pairs = (
        [Pair("ein ein", "a", line) for line in range(5)] + [Pair("Hund", "a", 99)] + [Pair("ein ein", "a", 0)] * 9
    )
    store = build(tmp_path / "store", pairs, max_length=1)
    assert (len(store), store.too_long, store.lines.tolist()) == (1, 14, [99])


@pytest.mark.parametrize("count", [0, 1, 5, 10])
def test_any_number_of_pairs_can_be_stored(tmp_path: Path, count: int) -> None:
    store = build(tmp_path / "store", some_pairs(count), keep_texts=True)
    assert len(store) == count
    assert store.text(0, range(count)) == [pair.source for pair in some_pairs(count)]


def test_pairs_without_tokens_are_rows_without_tokens(tmp_path: Path) -> None:
    store = build(tmp_path / "store", [Pair("", "", 1), Pair("", "", 2)], keep_texts=True)
    assert [row.tolist() for row in store.source] == [[], []]
    assert store.text(1, [0, 1]) == ["", ""]


def test_ids_stay_on_disk(tmp_path: Path) -> None:
    store = build(tmp_path / "store", some_pairs(9), keep_texts=True)
    assert store.texts is not None
    for ragged in (store.source, store.target, *store.texts):
        assert isinstance(ragged.values, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        store.source.values[0] = 1


def test_a_store_is_there_for_its_own_key_alone(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    assert not TokenStore.has(folder, "first")
    build(folder, some_pairs(3), key="first")
    assert TokenStore.has(folder, "first")
    assert not TokenStore.has(folder, "second")


def test_building_again_replaces_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    build(folder, some_pairs(20), key="first", keep_texts=True)
    store = build(folder, some_pairs(4), key="second")
    assert (len(store), store.texts) == (4, None)
    assert TokenStore.has(folder, "second")
    assert not list(folder.glob("*-text*"))
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def interrupted(pairs: Sequence[Pair], after: int) -> Iterator[Pair]:
    yield from pairs[:after]
    raise KeyboardInterrupt


def test_an_aborted_build_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        TokenStore.build(tmp_path / "s", interrupted(some_pairs(30), 12), (encode_words, encode_letters), key="k")
    assert not TokenStore.has(tmp_path / "s", "k")
    assert list(tmp_path.iterdir()) == []


def test_an_aborted_build_leaves_the_store_before_it(tmp_path: Path) -> None:
    build(tmp_path / "s", some_pairs(4), key="old")
    with pytest.raises(KeyboardInterrupt):
        TokenStore.build(tmp_path / "s", interrupted(some_pairs(30), 12), (encode_words, encode_letters), key="k")
    assert TokenStore.has(tmp_path / "s", "old")
    assert len(TokenStore(tmp_path / "s")) == 4


def test_what_a_kill_left_of_a_build_does_not_disturb_the_next(tmp_path: Path) -> None:
    draft = tmp_path / "s.draft"
    draft.mkdir()
    (draft / "source.values").write_bytes(b"\x01" * 40)
    (draft / "stray").write_text("x")
    assert not TokenStore.has(tmp_path / "s", "k")
    assert len(build(tmp_path / "s", some_pairs(2))) == 2
    assert not (tmp_path / "s" / "stray").exists()


@pytest.mark.parametrize("content", ["", "{", '{"key": "k"}', '{"key": "k", "format": 99}', "[1]", "null"])
def test_a_folder_without_a_proper_index_is_no_store(tmp_path: Path, content: str) -> None:
    build(tmp_path / "s", some_pairs(2))
    (tmp_path / "s" / "index.json").write_text(content)
    assert not TokenStore.has(tmp_path / "s", "k")


@pytest.mark.parametrize("name", ["source.values", "target.offsets", "lines.values"])
@pytest.mark.parametrize("damage", ["missing", "short"])
def test_a_store_that_lost_bytes_is_no_store(tmp_path: Path, name: str, damage: str) -> None:
    build(tmp_path / "s", some_pairs(8))
    path = tmp_path / "s" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "short":
        path.write_bytes(content[:-8])
    assert not TokenStore.has(tmp_path / "s", "k")


def test_the_encoders_get_whole_chunks(tmp_path: Path) -> None:
    sizes: list[int] = []

    def encode(texts: Sequence[str]) -> list[list[int]]:
        sizes.append(len(texts))
        return encode_words(texts)

    pairs = [Pair("ein", "Hund", line) for line in range(12)]
    TokenStore.build(tmp_path / "s", pairs, (encode, encode_words), key="k")
    assert sizes == [5, 5, 2]


def test_the_index_is_plain_json(tmp_path: Path) -> None:
    build(tmp_path / "s", some_pairs(2), key="some-key")
    index = json.loads((tmp_path / "s" / "index.json").read_text(encoding="utf-8"))
    assert index["key"] == "some-key"
