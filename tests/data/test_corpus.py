"""Parallel text: file layouts, errors and filtering (FAULTS rows 1, 2, 5 to 8)."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from manyheads.config.schema import DataConfig
from manyheads.data.corpus import Pair, read_pairs
from manyheads.data.filtering import FilterCounts, PairFilter, require_pairs
from manyheads.errors import DataError

SHARED = Path(__file__).parents[3] / "shared" / "data"


def config(root: Path, **settings: Any) -> DataConfig:
    return DataConfig(root=str(root), source="de", target="en", **settings)


def write(folder: Path, **files: str) -> None:
    """Write files by name; the argument train_de names the file train.de."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content.encode(errors="surrogateescape"))


def texts(pairs: Any) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def squeeze(text: str) -> str:
    """Remove control characters and merge white space, in place of the normaliser."""
    return " ".join("".join(symbol for symbol in text if symbol.isspace() or symbol.isprintable()).split())


def filter_pairs(
    read: Iterable[Pair], config: DataConfig, normalize: Callable[[str], str], held_out: Iterable[Pair] = ()
) -> tuple[list[Pair], FilterCounts]:
    """Return the pairs that the filter keeps, and its counts."""
    judge = PairFilter(config, normalize, held_out)
    return list(judge.used(read)), judge.counts


# --- file layouts ---


def test_a_split_is_two_files_named_by_language(tmp_path: Path) -> None:
    write(tmp_path, train_de="ein\nzwei\n", train_en="one\ntwo", train_fr="un\n")
    assert list(read_pairs(config(tmp_path), "train")) == [Pair("ein", "one", 1), Pair("zwei", "two", 2)]


def test_each_split_has_the_name_that_the_configuration_gives_it(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, **{f"{name}_de": f"{name} de\n", f"{name}_en": f"{name} en\n"})
    named = config(tmp_path, train="c", valid="a", test="b")
    found = [texts(read_pairs(named, split)) for split in ("train", "valid", "test")]
    assert found == [[("c de", "c en")], [("a de", "a en")], [("b de", "b en")]]


def test_two_files_can_be_named_source_first_and_compressed_differently(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ein\n")
    (tmp_path / "out.gz").write_bytes(gzip.compress(b"one\n"))
    assert texts(read_pairs(config(tmp_path, train=("in.txt", "out.gz")), "train")) == [("ein", "one")]


def test_paths_may_be_absolute_or_in_a_folder_below(tmp_path: Path) -> None:
    write(tmp_path / "sub", train_de="ein\n", train_en="one\n")
    for name in ("sub/train", str(tmp_path / "sub" / "train")):
        assert texts(read_pairs(config(tmp_path, train=name), "train")) == [("ein", "one")]


def test_the_plain_file_takes_precedence_over_the_compressed_one(tmp_path: Path) -> None:
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"packed\n"))
    write(tmp_path, train_en="one\n")
    assert texts(read_pairs(config(tmp_path), "train")) == [("packed", "one")]
    write(tmp_path, train_de="plain\n")
    assert texts(read_pairs(config(tmp_path), "train")) == [("plain", "one")]


@pytest.mark.parametrize("existing", ["val", "dev", "validation"])
def test_an_error_on_a_missing_split_suggests_the_split_that_is_meant(tmp_path: Path, existing: str) -> None:
    files = {f"{name}_{language}": "x\n" for name in ("train", existing) for language in ("de", "en")}
    write(tmp_path, **files, other_de="x\n")
    with pytest.raises(DataError) as caught:
        read_pairs(config(tmp_path), "valid")
    message = str(caught.value)
    assert "valid.de" in message
    assert "valid.en" in message
    assert f'Use data.valid = "{existing}".' in message
    assert "other" not in message  # it has one language only


def test_a_suggested_split_keeps_its_folder_and_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for language in ("de", "en"):
        (tmp_path / "sub" / f"test_2016.{language}.gz").write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(DataError, match=r'Use data\.test = "sub/test_2016"'):
        read_pairs(config(tmp_path, test="sub/test"), "test")


def test_an_error_on_a_missing_language_lists_the_languages_present(tmp_path: Path) -> None:
    write(tmp_path, train_de="x\n", train_ko="x\n")
    with pytest.raises(DataError, match=r"no file train\.en.* Of train there is: de, ko"):
        read_pairs(config(tmp_path), "train")


def test_an_error_on_a_missing_file_suggests_a_similar_name(tmp_path: Path) -> None:
    write(tmp_path, corpus_tsv="a\tb\n")
    with pytest.raises(DataError, match=r"no file .*corpsu\.tsv\. Near names there: corpus\.tsv"):
        read_pairs(config(tmp_path, train="corpsu.tsv"), "train")


def test_a_single_file_of_another_format_is_refused_with_the_known_formats(tmp_path: Path) -> None:
    write(tmp_path, train_csv="a,b\n")
    with pytest.raises(DataError, match=r"train\.csv is a file: a single one must be named \.tsv or \.jsonl"):
        read_pairs(config(tmp_path, train="train.csv"), "train")


def test_a_path_whose_backslashes_toml_has_read_as_escapes_says_so(tmp_path: Path) -> None:
    values = tomllib.loads(r'root = "C:\new\table"')
    with pytest.raises(DataError, match=r'data\.root = "C:\\new\\table" is no folder.* single quotes'):
        read_pairs(config(tmp_path).model_copy(update=values), "train")


def test_a_missing_folder_and_an_empty_folder_have_different_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'data\.root = ".*nowhere" is no folder'):
        read_pairs(config(tmp_path / "nowhere"), "train")
    with pytest.raises(DataError, match="holds no files"):
        read_pairs(config(tmp_path), "train")


def test_an_error_on_a_missing_public_corpus_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"`manyheads data fetch multi30k --root {tmp_path}` gets it"):
        read_pairs(config(tmp_path / "multi30k"), "train")


def test_a_split_that_is_not_configured_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.test is not set"):
        read_pairs(config(tmp_path), "test")


# --- file contents ---


@pytest.mark.parametrize(("longer", "more"), [("de", 3), ("en", 7)])
@pytest.mark.parametrize("limit", [None, 1, 0.5])
def test_files_of_different_length_are_refused_with_both_counts(
    tmp_path: Path, longer: str, more: int, limit: float | None
) -> None:
    counts = {"de": 2, "en": 2} | {longer: 2 + more}
    write(tmp_path, **{f"train_{language}": "x\n" * count for language, count in counts.items()})
    with pytest.raises(DataError) as caught:
        list(read_pairs(config(tmp_path, limit=limit), "train"))
    for language, count in counts.items():
        assert f"train.{language} has {count} lines" in str(caught.value)


@pytest.mark.parametrize("name", ["c.tsv", "c.jsonl", "c.tsv.gz", "c.jsonl.gz"])
def test_one_file_can_hold_both_languages(tmp_path: Path, name: str) -> None:
    rows = [("eins", "one"), ("", ""), ("zwei\u2028", "two")]
    lines = [json.dumps({"de": s, "en": t}) if "json" in name else f"{s}\t{t}" for s, t in rows]
    content = ("\r\n".join(lines) + "\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert texts(read_pairs(config(tmp_path, train=name), "train")) == rows


@pytest.mark.parametrize("name", ["c.tsv", "c.jsonl"])
def test_a_blank_line_in_a_file_of_pairs_is_an_empty_pair(tmp_path: Path, name: str) -> None:
    line = "a\tb\n" if name == "c.tsv" else '{"de": "a", "en": "b"}\n'
    write(tmp_path, **{name.replace(".", "_"): f"{line}\n  \n"})
    found = list(read_pairs(config(tmp_path, train=name), "train"))
    assert texts(found) == [("a", "b"), ("", ""), ("", "")]
    assert filter_pairs(found, config(tmp_path), squeeze)[1].empty == 2


@pytest.mark.parametrize(("line", "found"), [("no tab", "no tab"), ("a\tb\tc", "2 tabs"), ("a\tb\t", "2 tabs")])
def test_a_line_of_tsv_without_exactly_one_tab_is_named(tmp_path: Path, line: str, found: str) -> None:
    write(tmp_path, c_tsv=f"a\tb\n\n{line}\n")
    with pytest.raises(DataError, match=rf"c\.tsv, line 3: {found}\. Each line must be source<TAB>target"):
        list(read_pairs(config(tmp_path, train="c.tsv"), "train"))


@pytest.mark.parametrize(
    "record",
    [
        {"de": "ein", "en": "one", "source": "wrong", "target": "wrong"},
        {"source": "ein", "target": "one", "en": "half"},
        {"id": 3, "translation": {"de": "ein", "en": "one", "fr": "un"}},
        {"deu_Latn": "ein", "en-US": "one", "fr": "un"},
    ],
)
def test_a_json_object_names_its_texts_by_language_or_by_side(tmp_path: Path, record: dict[str, Any]) -> None:
    write(tmp_path, c_jsonl=json.dumps(record))
    assert texts(read_pairs(config(tmp_path, train="c.jsonl"), "train")) == [("ein", "one")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"de": "a", "en": }', r"no JSON \(.*column 19"),
        ('["a", "b"]', "list in place of an object"),
        ('{"translation": "a"}', 'no keys "de" and "en".*It has: translation'),
        ('{"de": "a", "fr": "b"}', 'no keys "de" and "en".*It has: de, fr'),
        ('{"de": "a", "en": 7}', '"en" holds int, not text'),
        ('{"de": "a", "en": null}', '"en" holds NoneType, not text'),
        ('{"de": "\\ud800", "en": "b"}', '"de" holds half a surrogate pair'),
        ("[" * 100_000, "no JSON"),
        ('{"de": ' + "1" * 10_000 + "}", "no JSON"),
    ],
)
def test_a_mistake_in_json_is_named_by_line(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, c_jsonl='{"de": "a", "en": "b"}\n' + line + "\n")
    with pytest.raises(DataError, match=rf"c\.jsonl, line 2: .*{message}"):
        list(read_pairs(config(tmp_path, train="c.jsonl"), "train"))


def test_half_a_surrogate_pair_is_replaced_on_request(tmp_path: Path) -> None:
    write(tmp_path, c_jsonl='{"de": "a\\ud800b", "en": "\\ud83d\\ude00"}')
    found = list(read_pairs(config(tmp_path, train="c.jsonl", invalid_utf8="replace"), "train"))
    assert texts(found) == [("a\ufffdb", "\U0001f600")]


def test_replaced_bytes_of_both_sides_are_counted(tmp_path: Path) -> None:
    write(tmp_path, train_de="f\udcfcr\nb\n", train_en="x\udcff\udcfe\nx\ufffd\n")
    with pytest.raises(DataError, match=r"train\.de, line 1"):
        list(read_pairs(config(tmp_path), "train"))
    found = list(read_pairs(config(tmp_path, invalid_utf8="replace"), "train"))
    assert [pair.replaced for pair in found] == [3, 0]


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (5, 5), (1000, 100), (0.29, 29), (0.001, 1), (0.999, 100)])
@pytest.mark.parametrize("layout", ["train", "c.tsv"])
def test_the_limit_is_a_count_or_a_share_of_train(tmp_path: Path, limit: float, expected: int, layout: str) -> None:
    write(tmp_path, train_de="x\n" * 100, train_en="y\n" * 100, c_tsv="x\ty\n" * 100)
    found = list(read_pairs(config(tmp_path, train=layout, limit=limit), "train"))
    assert [pair.line for pair in found] == list(range(1, expected + 1))
    held_out = config(tmp_path, valid=layout, test=layout, limit=limit)
    assert [len(list(read_pairs(held_out, split))) for split in ("valid", "test")] == [100, 100]


@pytest.mark.parametrize("layout", ["train", "c.tsv"])
def test_files_without_a_line_are_refused(tmp_path: Path, layout: str) -> None:
    write(tmp_path, train_de="", train_en="", c_tsv="\ufeff"[:0])
    with pytest.raises(DataError, match=r"(train\.de and .*train\.en|c\.tsv): no lines"):
        list(read_pairs(config(tmp_path, train=layout), "train"))


# --- filtering ---


def pairs(*texts: tuple[str, str]) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(texts, 1)]


def test_each_dropped_pair_is_counted_under_one_reason(tmp_path: Path) -> None:
    read = pairs(
        ("gut", "good"),
        ("", "x"),
        ("x", "\u00a0 \x00"),
        ("x" * 31, "y" * 10),
        ("held", "out"),
        ("held", "out"),
        ("held", "differently"),
        (" gut\x07", "good "),
    )
    kept, counts = filter_pairs(read, config(tmp_path, max_ratio=3), squeeze, pairs((" held ", "out")))
    assert kept == [Pair("gut", "good", 1), Pair("held", "differently", 7)]
    assert counts == FilterCounts(
        read=8, empty=2, ratio=1, overlap=2, duplicate=1, source_overlap=1, control_characters=2
    )
    assert (counts.kept, counts.dropped) == (len(kept), 6)


def test_the_ratio_counts_normalised_characters_and_its_limit_is_inclusive(tmp_path: Path) -> None:
    read = pairs(("x" * 30, "y" * 10), ("y" * 10, "x" * 31), ("a" + " " * 50 + "b", "ab"), ("가" * 3, "x" * 9))
    kept, counts = filter_pairs(read, config(tmp_path, max_ratio=3), squeeze)
    assert [pair.line for pair in kept] == [1, 3, 4]
    assert counts.ratio == 1


def test_duplicates_and_overlaps_are_kept_on_request_and_overlapping_sources_are_still_counted(
    tmp_path: Path,
) -> None:
    lenient = config(tmp_path, drop_duplicates=False, drop_overlap=False)
    kept, counts = filter_pairs(pairs(("a", "b"), ("a", "b")), lenient, squeeze, pairs(("a", "b")))
    assert counts == FilterCounts(read=2, source_overlap=2)
    assert len(kept) == 2


def test_only_the_exact_pair_is_a_duplicate(tmp_path: Path) -> None:
    read = pairs(("a", "bc"), ("ab", "c"), ("a", "b c"), ("a", "x"), ("y", "bc"), ("1:a", "bc"), ("a", "bc"))
    kept, counts = filter_pairs(read, config(tmp_path), squeeze)
    assert [pair.line for pair in kept] == [1, 2, 3, 4, 5, 6]
    assert counts.duplicate == 1


def test_filtering_agrees_with_a_reference_implementation_on_random_pairs(tmp_path: Path) -> None:
    generator = random.Random(7)
    words = ["", " ", "a", "a ", "b", "aaaa", "bbbbbbbbb", "a\x00"]
    read = pairs(*((generator.choice(words), generator.choice(words)) for _ in range(500)))
    held_out = pairs(("a", "b"), ("aaaa", "a"))
    kept, counts = filter_pairs(read, config(tmp_path, max_ratio=4), squeeze, held_out)
    expected: list[Pair] = []
    for pair in read:
        source, target = squeeze(pair.source), squeeze(pair.target)
        if source and target and 0.25 <= len(source) / len(target) <= 4:
            known = [(other.source, other.target) for other in (*held_out, *expected)]
            if (source, target) not in known:
                expected.append(Pair(source, target, pair.line))
    assert kept == expected
    assert counts.kept == len(expected)


def test_control_characters_are_counted_only_when_they_are_removed(tmp_path: Path) -> None:
    read = pairs(("a\x00\x1fb\x9f", "c\td"), ("a\u2028b", "d"))
    assert filter_pairs(read, config(tmp_path), squeeze)[1].control_characters == 2
    assert filter_pairs(read, config(tmp_path), str)[1].control_characters == 0


def test_pairs_are_filtered_lazily_and_counted_per_corpus(tmp_path: Path) -> None:
    """Pairs of an earlier corpus are duplicates in a later one."""
    judge = PairFilter(config(tmp_path), squeeze)
    first = judge.used(iter(pairs(("a", "b"), ("", "b"), ("c", "d"))))
    assert next(first) == Pair("a", "b", 1)
    assert judge.counts == FilterCounts(read=1)
    assert len(list(first)) == 1
    assert judge.counts == FilterCounts(read=3, empty=1)
    assert [pair.line for pair in judge.used(pairs(("x", "y"), ("a", "b")))] == [1]
    assert judge.counts == FilterCounts(read=2, duplicate=1)


def test_a_huge_word_is_dropped_by_its_ratio_without_harm(tmp_path: Path) -> None:
    kept, counts = filter_pairs(pairs(("x" * 1_000_000, "y"), ("a", "b")), config(tmp_path), squeeze)
    assert (len(kept), counts.ratio) == (1, 1)


def test_the_description_of_counts_is_one_line_without_zeros() -> None:
    assert FilterCounts(read=29_000).describe() == "29,000 pairs read, 29,000 kept"
    counts = FilterCounts(read=29_000, empty=3, duplicate=1_000, control_characters=5)
    assert counts.describe() == (
        "29,000 pairs read, 27,997 kept: 3 empty, 1,000 duplicate; 5 control characters removed"
    )


def test_pairs_that_are_too_long_count_as_dropped() -> None:
    counts = dataclasses.replace(FilterCounts(read=10, empty=1), too_long=4)
    assert (counts.kept, counts.dropped) == (5, 5)
    assert "4 too long" in counts.describe()


def test_a_split_without_pairs_left_is_an_error_with_the_counts() -> None:
    with pytest.raises(DataError, match=r"data\.train leaves no pairs: 2 pairs read, 0 kept: 2 empty"):
        require_pairs(0, "data.train", FilterCounts(read=2, empty=2))
    require_pairs(1, "train")


@pytest.mark.skipif(not (SHARED / "multi30k").is_dir(), reason="needs ../shared/data")
def test_multi30k_is_read_with_its_known_counts() -> None:
    multi30k = config(SHARED / "multi30k", valid="val", test="test_2016_flickr")
    counts = [sum(1 for _ in read_pairs(multi30k, split)) for split in ("train", "valid", "test")]
    assert counts == [29_000, 1_014, 1_000]
    first = next(iter(read_pairs(multi30k, "train")))
    assert first.target == "Two young, White males are outside near many bushes."
