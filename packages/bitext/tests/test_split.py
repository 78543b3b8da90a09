"""Splitting a corpus: no pair is in two splits or lost without being counted, and no file is overwritten."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bitext import split as module
from bitext.copies import CopyKeys, _fold
from bitext.errors import DataError
from bitext.lines import read_lines
from bitext.split import SplitOptions, SplitResult, split_corpus

SPLITS = ("train", "valid", "test")
Pairs = list[tuple[str, str]]


def sentences(count: int, seed: int = 1) -> Pairs:
    """Return pairs of random words, all different."""
    rng = random.Random(seed)

    def sentence() -> str:
        return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(3, 9))) for _ in range(8))

    return [(sentence(), sentence()) for _ in range(count)]


def write(folder: Path, pairs: Iterable[tuple[str, str]], ending: str = "\n") -> list[Path]:
    files = [folder / "corpus.aa", folder / "corpus.bb"]
    for side, file in enumerate(files):
        file.write_text("".join(f"{pair[side]}{ending}" for pair in pairs), encoding="utf-8", newline="")
    return files


def split_pairs(
    folder: Path, pairs: Iterable[tuple[str, str]], **options: Any
) -> tuple[dict[str, Pairs], SplitResult]:
    files = write(folder, pairs)
    result = split_corpus(files, folder / "out", ("aa", "bb"), SplitOptions(**options))
    return read_splits(folder / "out"), result


def read_splits(folder: Path) -> dict[str, Pairs]:
    found = {}
    for split in SPLITS:
        sides = [[*read_lines(path)] for path in sorted(folder.glob(f"{split}.*"))]
        found[split] = list(zip(*sides, strict=True)) if sides else []
    return found


def shared_keys(splits: dict[str, Pairs], *, near: bool = True) -> int:
    """Count the pairs of a split that share a key with a pair of another split, by comparing all."""
    keys = {}
    for name, pairs in splits.items():
        found = CopyKeys(near=near)
        found.add([source for source, _ in pairs], [target for _, target in pairs])
        keys[name] = [set(column.tolist()) for column in found.arrays()]
    pairs_of_splits = [(first, second) for first in keys for second in keys if first < second]
    return sum(
        len(left & right)
        for first, second in pairs_of_splits
        for left, right in zip(keys[first], keys[second], strict=True)
    )


def test_every_pair_is_in_one_split_in_the_order_of_the_text(tmp_path: Path) -> None:
    pairs = sentences(500)
    splits, result = split_pairs(tmp_path, pairs)
    assert Counter(pair for split in splits.values() for pair in split) == Counter(pairs)
    for name, split in splits.items():
        assert [pair for pair in pairs if pair in set(split)] == split
        assert len(split) == getattr(result, name)
    assert (result.valid, result.test, result.read) == (25, 25, 500)


def test_copies_of_a_pair_are_in_the_same_split(tmp_path: Path) -> None:
    """Each tenth pair is repeated with another target or source, other digits and case, or another word."""
    pairs = sentences(600)
    copies = []
    for number, (source, target) in enumerate(pairs[::10]):
        words = source.split()
        copies.append([
            (source, f"quite another sentence number {'x' * number}"),
            (f"something else entirely {'y' * number}", target.upper() + "!"),
            (f"{number} " + source.title(), target),
            (" ".join([*words[:4], "zzz", *words[5:]]), target),
        ][number % 4])  # fmt: skip
    text = [*pairs, *copies]
    random.Random(4).shuffle(text)
    splits, result = split_pairs(tmp_path, text, valid=100, test=100)
    folded = {name: [set(_fold(side)) for side in zip(*split, strict=True)] for name, split in splits.items()}
    for first, second in (("train", "valid"), ("train", "test"), ("valid", "test")):
        for left, right in zip(folded[first], folded[second], strict=True):
            assert not left & right
    assert shared_keys(splits) == 0
    assert result.copies >= 120
    assert min(result.valid, result.test) >= 95


def test_near_copies_may_be_in_different_splits_on_request(tmp_path: Path) -> None:
    pairs = [
        (f"{source} {word}", f"{target} {word}") for source, target in sentences(200) for word in ("eins", "zwei")
    ]
    together, _ = split_pairs(tmp_path, pairs, valid=60, test=60)
    (tmp_path / "again").mkdir()
    apart, _ = split_pairs(tmp_path / "again", pairs, valid=60, test=60, near=False)
    assert shared_keys(together) == 0
    assert shared_keys(apart, near=False) == 0
    assert shared_keys(apart) > 0


def test_the_split_depends_on_the_seed_alone(tmp_path: Path) -> None:
    pairs, found = sentences(300), []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        found.append(split_pairs(tmp_path / name, pairs, seed=seed)[0])
    assert found[0] == found[1] != found[2]


def test_repetitions_of_a_held_out_pair_are_left_out_and_counted(tmp_path: Path) -> None:
    pairs = [pair for pair in sentences(200) for _ in range(3)]
    splits, result = split_pairs(tmp_path, pairs, valid=40, test=40)
    assert all(max(Counter(splits[name]).values()) == 1 for name in ("valid", "test"))
    assert result.repeated == 2 * (result.valid + result.test)
    assert result.read == result.train + result.valid + result.test + result.repeated + result.empty


def test_pairs_with_an_empty_side_are_left_out_and_are_no_copies(tmp_path: Path) -> None:
    pairs = sentences(100)
    text = [*pairs, ("", "b"), ("a", " "), ("", ""), *(("", target) for _, target in pairs[:50])]
    splits, result = split_pairs(tmp_path, text)
    assert result.empty == 53
    assert Counter(pair for split in splits.values() for pair in split) == Counter(pairs)
    assert result.copies == 0


def test_documents_are_not_divided(tmp_path: Path) -> None:
    pairs = sentences(1_000)
    (tmp_path / "names").write_text("".join(f"document {n // 10}\n" for n in range(1_000)), encoding="utf-8")
    splits, result = split_pairs(tmp_path, pairs, valid=50, test=50, documents=tmp_path / "names")
    number = {pair: n // 10 for n, pair in enumerate(pairs)}
    documents = {name: {number[pair] for pair in split} for name, split in splits.items()}
    assert sum(len(found) for found in documents.values()) == 100 == result.documents
    assert 50 <= result.valid <= 75
    assert "no document" in " ".join(result.lines())


def test_blank_lines_end_documents_and_common_sentences_are_not_held_out(tmp_path: Path) -> None:
    pairs = sentences(800)
    text: Pairs = []
    for start in range(0, 800, 8):
        text += [*pairs[start : start + 8], ("Danke sehr", "thank you"), ("", "")]
    splits, result = split_pairs(tmp_path, text, valid=40, test=40, blank_lines=True)
    number = {pair: n // 8 for n, pair in enumerate(pairs)}
    owners = [{number[pair] for pair in split if pair in number} for split in splits.values()]
    assert sum(map(len, owners)) == 100
    assert result.documents == 100
    assert ("Danke sehr", "thank you") in splits["train"]
    assert ("Danke sehr", "thank you") not in [*splits["valid"], *splits["test"]]
    assert result.repeated == len(owners[1]) + len(owners[2])


def test_sentences_shared_by_documents_are_in_one_split(tmp_path: Path) -> None:
    """Each document begins with the last sentence of the document before."""
    pairs = sentences(600)
    text: Pairs = []
    for start in range(6, 600, 6):
        text += [pairs[start - 1], *pairs[start : start + 6], ("", "")]
    splits, result = split_pairs(tmp_path, text, valid=60, test=60, blank_lines=True)
    assert shared_keys(splits) == 0
    assert result.repeated > 0


def test_compressed_text_is_split_into_compressed_files(tmp_path: Path) -> None:
    plain = write(tmp_path, sentences(60))
    files = [file.with_name(f"{file.name}.gz") for file in plain]
    for file, original in zip(files, plain, strict=True):
        with module.open_packed(file) as stream:
            stream.write(original.read_bytes())
        original.unlink()
    result = split_corpus(files, tmp_path / "out", ("aa", "bb"), SplitOptions())
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".gz"}
    assert sum(map(len, read_splits(tmp_path / "out").values())) == 60 == result.read


def test_one_file_with_both_sides_becomes_two(tmp_path: Path) -> None:
    pairs = [*sentences(40), ("two\nlines", "of text")]
    (tmp_path / "corpus.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:40]), encoding="utf-8")
    split_corpus([tmp_path / "corpus.tsv"], tmp_path / "tsv", ("aa", "bb"), SplitOptions())
    assert sum(map(len, read_splits(tmp_path / "tsv").values())) == 40
    records = "".join(json.dumps({"translation": {"aa": a, "bb": b}}) + "\n" for a, b in pairs)
    (tmp_path / "corpus.jsonl").write_text(records, encoding="utf-8")
    split_corpus([tmp_path / "corpus.jsonl"], tmp_path / "jsonl", ("aa", "bb"), SplitOptions())
    assert ("two lines", "of text") in [
        pair for split in read_splits(tmp_path / "jsonl").values() for pair in split
    ]


def test_existing_splits_are_not_overwritten(tmp_path: Path) -> None:
    files = write(tmp_path, sentences(30))
    (tmp_path / "valid.bb.gz").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"holds valid\.bb\.gz already; nothing is overwritten"):
        split_corpus(files, tmp_path, ("aa", "bb"), SplitOptions())
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.aa", "corpus.bb", "valid.bb.gz"}
    assert (tmp_path / "valid.bb.gz").read_bytes() == b"mine"


def test_text_that_changes_between_the_two_passes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, original = write(tmp_path, sentences(30)), module.choose

    def choose(*arguments: Any) -> Any:
        write(tmp_path, sentences(31))
        return original(*arguments)

    monkeypatch.setattr(module, "choose", choose)
    with pytest.raises(DataError, match="has changed while it was read"):
        split_corpus(files, tmp_path / "out", ("aa", "bb"), SplitOptions())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("count", [3, 10, 21])
def test_a_few_pairs_are_split(tmp_path: Path, count: int) -> None:
    splits, _ = split_pairs(tmp_path, sentences(count))
    assert all(splits.values())
    assert len(splits["train"]) >= count - 2


def test_progress_counts_both_passes(tmp_path: Path) -> None:
    seen: list[int] = []
    split_corpus(write(tmp_path, sentences(70)), tmp_path / "out", ("aa", "bb"), SplitOptions(), seen.append)
    assert sum(seen) == 140


def test_bytes_that_are_not_utf8_are_an_error_with_advice_or_are_replaced_and_counted(tmp_path: Path) -> None:
    files = write(tmp_path, sentences(20))
    files[0].write_bytes(files[0].read_bytes() + b"gr\xfc\xdfe\n")
    files[1].write_text(files[1].read_text(encoding="utf-8") + "greetings\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 21: byte 0xFC.*iconv -f LATIN1.*--replace-invalid in data split"):
        split_corpus(files, tmp_path / "out", ("aa", "bb"), SplitOptions())
    result = split_corpus(files, tmp_path / "out", ("aa", "bb"), SplitOptions(replace_invalid=True))
    assert result.replaced == 2
    assert "  2 bytes that are no UTF-8 were replaced by U+FFFD" in result.lines()
    assert ("gr\ufffd\ufffde", "greetings") in [
        pair for pairs in read_splits(tmp_path / "out").values() for pair in pairs
    ]
