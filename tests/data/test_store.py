"""Token ids on disk: written once, memory-mapped, complete or missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitext.pairs import Pair
from manyheads.data import store as module
from manyheads.data.store import TextStore, TokenStore
from manyheads.errors import DataError

WORDS = ["ein", "Hund", "läuft", "over", "the", "hill", "구름", "🙂"]


def encode_words(texts: Sequence[str]) -> list[list[int]]:
    """Return 4 + the index of each word."""
    return [[4 + WORDS.index(word) for word in text.split()] for text in texts]


def encode_letters(texts: Sequence[str]) -> list[list[int]]:
    """Return 1000 + each code point, another vocabulary for the target side."""
    return [[1_000 + ord(letter) for letter in text] for text in texts]


def make_pairs(count: int) -> list[Pair]:
    """Return pairs of 0 to 4 source words and 1 to 11 target letters, with odd line numbers."""
    rng = np.random.default_rng(7)
    return [
        Pair(" ".join(rng.choice(WORDS, rng.integers(0, 5))), "ab구🙂x" * rng.integers(0, 3) + "z", 2 * i + 1)
        for i in range(count)
    ]


def text_store(folder: Path, *corpora: Sequence[Pair]) -> TextStore:
    return TextStore.build(folder, map(iter, corpora), key="text", details=lambda: {"counts": [1, 2]})


def build(folder: Path, pairs: Sequence[Pair], **settings: Any) -> TokenStore:
    texts = text_store(folder.with_name("text"), pairs)
    return TokenStore.build(folder, texts, (encode_words, encode_letters), **({"key": "k"} | settings))


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make chunks so small that a few pairs fill several, the last one in part."""
    monkeypatch.setattr(module, "_TOKENISED", 5)
    monkeypatch.setattr(module, "_WRITTEN", 4)


def test_text_is_restored_with_its_line_and_its_corpus(tmp_path: Path) -> None:
    pairs = make_pairs(23)
    text_store(tmp_path / "text", pairs[:9], [], pairs[9:])
    opened = TextStore(tmp_path / "text")
    assert len(opened) == 23
    assert opened.lines.tolist() == [pair.line for pair in pairs]
    assert opened.corpora.tolist() == [0] * 9 + [2] * 14
    assert opened.text(0, range(23)) == [pair.source for pair in pairs]
    assert opened.text(1, [22, 3, 3]) == [pairs[22].target, pairs[3].target, pairs[3].target]
    assert opened.details == {"counts": [1, 2]}
    sources, targets = opened.sides()
    assert (list(sources), list(targets)) == tuple(
        map(list, zip(*((p.source, p.target) for p in pairs), strict=True))
    )
    assert list(sources[3:20:2]) == [pair.source for pair in pairs[3:20:2]]
    assert list(opened.sides(most=10)[1]) == [pair.target for pair in pairs[::3]]


def test_the_fingerprint_depends_on_the_text_and_its_order(tmp_path: Path) -> None:
    pairs = make_pairs(9)
    sums = [text_store(tmp_path / str(n), *split).sha256
            for n, split in enumerate([[pairs], [pairs[:5], pairs[5:]], [pairs[::-1]], [pairs[1:]]])]  # fmt: skip
    assert sums[0] == sums[1]
    assert len(set(sums)) == 3


def test_the_fingerprint_depends_on_where_the_source_ends(tmp_path: Path) -> None:
    first, second = ([Pair("ein", "Hund", 1)], [Pair("einH", "und", 1)])
    assert text_store(tmp_path / "a", first).sha256 != text_store(tmp_path / "b", second).sha256


@pytest.mark.parametrize("count", [0, 1, 5, 10, 23])
def test_token_ids_are_restored_from_a_store(tmp_path: Path, count: int) -> None:
    pairs = make_pairs(count)
    build(tmp_path / "store", pairs)
    opened = TokenStore(tmp_path / "store")
    assert len(opened) == len(opened.source) == len(opened.target) == count
    assert [row.tolist() for row in opened.source] == encode_words([pair.source for pair in pairs])
    assert [row.tolist() for row in opened.target] == encode_letters([pair.target for pair in pairs])
    assert opened.rows.tolist() == list(range(count))
    assert opened.too_long == 0


def test_pairs_with_a_long_side_are_left_out_and_counted(tmp_path: Path) -> None:
    texts = [("ein Hund", "ab"), ("ein " * 4, "ab"), ("ein", "abcd"), ("ein " * 3, "abc"), ("", "abcde")]
    pairs = [Pair(source.strip(), target, line) for line, (source, target) in enumerate(texts, start=10)]
    store = build(tmp_path / "store", pairs, max_length=3)
    assert store.too_long == TokenStore(tmp_path / "store").too_long == 3
    assert store.rows.tolist() == [0, 3]
    assert [row.tolist() for row in store.source] == encode_words(["ein Hund", "ein ein ein"])


def test_chunks_of_long_pairs_alone_leave_no_rows(tmp_path: Path) -> None:
    pairs = (
        [Pair("ein ein", "a", line) for line in range(5)] + [Pair("Hund", "a", 99)] + [Pair("ein ein", "a", 0)] * 9
    )
    store = build(tmp_path / "store", pairs, max_length=1)
    assert (len(store), store.too_long, store.rows.tolist()) == (1, 14, [5])


def test_ids_are_memory_mapped_and_read_only(tmp_path: Path) -> None:
    store = build(tmp_path / "store", make_pairs(9))
    for ragged in (store.source, store.target, *TextStore(tmp_path / "text").texts):
        assert isinstance(ragged.values, np.memmap)
        assert isinstance(ragged.offsets, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        store.source.values[0] = 1


def test_a_store_is_found_by_its_own_key_alone(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    assert not TokenStore.has(folder, "first")
    build(folder, make_pairs(3), key="first")
    assert TokenStore.has(folder, "first")
    assert not TokenStore.has(folder, "second")


def test_building_again_replaces_the_earlier_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    build(folder, make_pairs(20), key="first")
    assert len(build(folder, make_pairs(4), key="second")) == 4
    assert TokenStore.has(folder, "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "text"]


def interrupted(pairs: Sequence[Pair], after: int) -> Iterator[Pair]:
    yield from pairs[:after]
    raise KeyboardInterrupt


@pytest.mark.parametrize("earlier", [False, True])
def test_an_aborted_build_leaves_no_files_but_those_of_the_earlier_store(tmp_path: Path, earlier: bool) -> None:
    if earlier:
        text_store(tmp_path / "s", make_pairs(4))
    with pytest.raises(KeyboardInterrupt):
        TextStore.build(tmp_path / "s", [interrupted(make_pairs(30), 12)], key="k", details=dict)
    assert not TextStore.has(tmp_path / "s", "k")
    assert [path.name for path in tmp_path.iterdir()] == ["s"] * earlier
    assert not earlier or len(TextStore(tmp_path / "s")) == 4


def test_a_build_refused_at_the_end_leaves_no_files(tmp_path: Path) -> None:
    def refuse() -> dict[str, Any]:
        raise DataError("nothing left")

    with pytest.raises(DataError):
        TextStore.build(tmp_path / "s", [make_pairs(3)], key="k", details=refuse)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", '{"key": "k"}', '{"key": "k", "format": 99}', "[1]", "null"])
def test_a_folder_without_a_proper_index_is_no_store(tmp_path: Path, content: str) -> None:
    build(tmp_path / "s", make_pairs(2))
    (tmp_path / "s" / "index.json").write_text(content)
    assert not TokenStore.has(tmp_path / "s", "k")


def test_a_store_of_another_format_is_no_store(tmp_path: Path) -> None:
    build(tmp_path / "s", make_pairs(2))
    path = tmp_path / "s" / "index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(index | {"format": index["format"] - 1}), encoding="utf-8")
    assert not TokenStore.has(tmp_path / "s", "k")


@pytest.mark.parametrize("name", ["source.values", "target.offsets", "rows", "index.json"])
@pytest.mark.parametrize("damage", ["missing", "short", "changed"])
def test_a_store_that_was_changed_is_no_store(tmp_path: Path, name: str, damage: str) -> None:
    build(tmp_path / "s", make_pairs(8))
    path = tmp_path / "s" / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        changed = content[:-1] + bytes([content[-1] ^ 1])
        path.write_bytes(content[:-8] if damage == "short" else changed)
    assert not TokenStore.has(tmp_path / "s", "k")
    path.write_bytes(content)
    assert TokenStore.has(tmp_path / "s", "k")
    (tmp_path / "s" / "stray").touch()
    assert not TokenStore.has(tmp_path / "s", "k")


def test_the_encoders_are_called_with_full_chunks(tmp_path: Path) -> None:
    sizes: list[int] = []

    def encode(texts: Sequence[str]) -> list[list[int]]:
        sizes.append(len(texts))
        return encode_words(texts)

    texts = text_store(tmp_path / "text", [Pair("ein", "Hund", line) for line in range(12)])
    TokenStore.build(tmp_path / "s", texts, (encode, encode_words), key="k")
    assert sizes == [5, 5, 2]
