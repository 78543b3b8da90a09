from __future__ import annotations

import json

import pytest

from manyheads.errors import RunError
from manyheads.text.characters import CharacterTokenizer
from manyheads.text.vocabulary import Stored, count_symbols

GOOD = Stored(kind="characters", lowercase=False, languages="de", symbols=("a", "é", " "))


def test_a_vocabulary_file_is_json_with_one_symbol_a_line() -> None:
    data = GOOD.to_bytes()
    assert json.loads(data)["symbols"] == ["a", "é", " "]
    assert '"é",\n'.encode() in data
    assert Stored.from_bytes(data, kind="characters", language="de") == GOOD


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "version: wrong value"),
        ({"format": "other"}, "format: "),
        ({"kind": "bpe"}, "kind: "),
        ({"kind": "bytes"}, 'it holds the kind "bytes"'),
        ({"lowercase": "yes"}, "lowercase: "),
        ({"symbols": "abc"}, "symbols: "),
        ({"symbols": ["a", 1]}, r"symbols\.1: "),
        ({"symbols": ["a", "b", "a"]}, "there twice"),
        ({"symbols": ["a", "<pad>"]}, "special"),
        ({"symbols": ["a", ""]}, "empty"),
        ({"symbols": ["\ud800"]}, r"symbols\.0: "),
        ({"languages": "en+fr"}, 'made for "en.fr", not for "de"'),
        ({"more": 1}, "more: "),
    ],
)
def test_a_modified_vocabulary_file_is_refused(change: dict[str, object], reason: str) -> None:
    data = json.dumps({**json.loads(GOOD.to_bytes()), **change}).encode()
    with pytest.raises(RunError, match=reason) as caught:
        Stored.from_bytes(data, kind="characters", language="de")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 1_000_000, b"[]", b"null", b'{"version": 1e999}'])
def test_bytes_that_are_no_vocabulary_file_are_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="cannot be used"):
        Stored.from_bytes(data, kind="characters", language="de")


def test_special_symbols_come_first_and_are_not_found_in_text() -> None:
    counted = count_symbols(["<pad>", "b", "<s>", "<s>", "b", "a"], min_count=1, languages="de")
    assert counted == ["b", "a"]
    tokenizer = CharacterTokenizer(counted, "de", lowercase=False)
    assert tokenizer.size == 6
    assert tokenizer.symbols == ("<unk>", "<pad>", "<s>", "</s>", "b", "a")
    assert [tokenizer.ids.get(symbol) for symbol in ("b", "a", "c", "<pad>", "<s>")] == [4, 5, None, None, None]
    assert tokenizer.encode(["abc<pad>"])[0][:3] == [5, 4, 0]
