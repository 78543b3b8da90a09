"""Tables: columns by name, quoted or not, in any encoding, and the errors on missing columns."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from bitext.errors import DataError, UsageError
from bitext.formats import tables
from bitext.formats.tables import _unpacked_size, read_csv, read_dataset, read_jsonl, read_parquet, read_tsv
from bitext.formats.text import ParallelText, TextRequest

REQUEST = TextRequest("de", "en")
STRICT = TextRequest("de", "en", strict=True)


def stream(text: str, encoding: str = "utf-8") -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(text.encode(encoding)))  # type: ignore[arg-type]


def check_pairs(text: ParallelText, *pairs: tuple[str, str]) -> None:
    assert text.languages == ("de", "en")
    assert list(text.pairs) == list(pairs)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_tsv_is_read_exactly(encoding: str) -> None:
    table = 'id\ten\tde\r\n1\t"a" b\tGrüße\n2\tc\u2028d\t한국\n'
    check_pairs(
        read_tsv(stream(table, encoding), TextRequest("de", "en"), "x"), ("Grüße", '"a" b'), ("한국", "c\u2028d")
    )


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_csv_is_read_with_quoted_separators_and_line_ends(separator: str) -> None:
    table = f'de{separator}en\n"a{separator}\n""b"""{separator}c\n\nx{separator}y\n'
    check_pairs(read_csv(stream(table), TextRequest(), "x"), (f'a{separator}\n"b"', "c"), ("x", "y"))


def test_columns_are_chosen_by_name_or_by_number() -> None:
    check_pairs(read_csv(stream("A,B,C\n1,2,3\n"), TextRequest("de", "en", ("C", "A")), "x"), ("3", "1"))
    check_pairs(read_tsv(stream("1\t2\t3\n"), TextRequest("de", "en", ("3", "1")), "x"), ("3", "1"))
    check_pairs(read_csv(stream("source,target\n1,2\n"), REQUEST, "x"), ("1", "2"))
    check_pairs(read_csv(stream("de-AT,fr,en_GB\n1,2,3\n"), REQUEST, "x"), ("1", "3"))


def test_json_lines_hold_the_texts_or_an_object_of_them() -> None:
    rows = [{"translation": {"de": "a\nb", "en": "c"}}, {"translation": {"en": None, "de": "d"}}]
    text = "\n\n".join(map(json.dumps, rows))
    check_pairs(read_jsonl(stream(text, "utf-16"), TextRequest(), "x"), ("a\nb", "c"), ("d", ""))
    check_pairs(read_jsonl(stream('{"de": "a", "n": 1, "en": "b"}'), TextRequest(), "x"), ("a", "b"))


@pytest.mark.parametrize("nested", [True, False])
def test_parquet_is_read_in_batches(tmp_path: Path, nested: bool) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"de": f"Satz {n}", "en": f"No. {n}"} for n in range(600)]
    columns = (
        {"translation": rows}
        if nested
        else {"de": [r["de"] for r in rows], "n": [1] * 600, "en": [r["en"] for r in rows]}
    )
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet", row_group_size=100)
    with (tmp_path / "x.parquet").open("rb") as opened:
        check_pairs(read_parquet(opened, TextRequest(), "x"), *((row["de"], row["en"]) for row in rows))


@pytest.mark.parametrize("nested", [False, True])
def test_a_parquet_file_that_repeats_a_long_text_is_refused_in_constant_memory(
    tmp_path: Path, nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sides = [arrow.array(["ab" * 500_000]).dictionary_encode().take([0] * 400) for _ in range(2)]
    columns = {"de": sides[0], "en": sides[1]}
    if nested:
        plain = [side.cast(arrow.string()) for side in sides]
        columns = {"translation": arrow.StructArray.from_arrays(plain, ["de", "en"])}
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet", compression="zstd")
    assert (tmp_path / "x.parquet").stat().st_size < 5_000
    sizes = []

    def record_size(column: Any) -> int:
        sizes.append(column.nbytes)
        return _unpacked_size(column)

    monkeypatch.setattr(tables, "_unpacked_size", record_size)
    with (
        (tmp_path / "x.parquet").open("rb") as opened,
        pytest.raises(DataError, match=r"^x unpacks to more than 200 times its size \("),
    ):
        next(read_parquet(opened, TextRequest(), "x").pairs)
    assert 0 < max(sizes) < 5_000_000, "a text is in memory once"


def test_a_parquet_bomb_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = arrow.table({"de": ["x" * 1_000_000] * 60, "en": ["y"] * 60})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    with (
        path.open("rb") as opened,
        pytest.raises(DataError, match=r"^x unpacks to more than 200 times its size \("),
    ):
        read_parquet(opened, TextRequest(), "x")
    path.write_bytes(path.read_bytes()[:50])
    with path.open("rb") as opened, pytest.raises(DataError, match=r"^x is no Parquet file that can be read: "):
        read_parquet(opened, TextRequest(), "x")


def test_invalid_utf8_in_a_parquet_file_is_named_by_row(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(arrow.table({"de": ["Satz"], "en": ["No."]}), path, compression=None, use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"Satz", b"S\xff\xfez"))
    with path.open("rb") as opened, pytest.raises(DataError, match=r"^x is damaged after row 0: .*utf-8"):
        list(read_parquet(opened, TextRequest(), "x").pairs)


def test_a_column_named_id_of_numbers_is_not_indonesian_and_vertical_bars_separate_columns() -> None:
    check_pairs(read_csv(stream("id|de|en\n1|eins|one\n"), TextRequest(), "x"), ("eins", "one"))
    assert read_csv(stream("id,en\nsatu,one\n"), TextRequest(), "x").languages == ("id", "en")


def test_a_data_set_of_a_folder_is_read_with_its_licence(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"translation": {"de": "a", "en": "b"}}])
    rows.info.license = "MIT"
    datasets.DatasetDict({"train": rows}).save_to_disk(tmp_path / "set")
    text = read_dataset(f"hf:{tmp_path / 'set'}", REQUEST)
    check_pairs(text, ("a", "b"))
    assert (text.licence, text.origin) == ("MIT", str(tmp_path / "set"))
    with pytest.raises(DataError, match=r'^hf:.*set has no split "valid"\. It has: train\.$'):
        read_dataset(f"hf:{tmp_path / 'set'}", TextRequest("de", "en", None, "valid"))


@pytest.mark.parametrize(
    ("read", "text", "request_", "error", "message"),
    [
        (read_csv, "de,en\n", TextRequest(), DataError, "x holds no rows. Name a table with a header"),
        (read_csv, "", REQUEST, DataError, "x holds no rows. Name a table with a header"),
        (
            read_csv, "de,en\n1,2\n", TextRequest("de", "ko"), DataError,
            "x has no column for ko. Choose two with --columns among: de, en.",
        ),
        (
            read_csv, "German,B\n1,2\n", REQUEST, UsageError,
            "x has no columns named by languages. Choose two with --columns among: German, B.",
        ),
        (
            read_csv, "A,B\n1,2\n", TextRequest("de", "en", ("A", "C")), DataError,
            "x has no column C. Its columns: A, B.",
        ),
        (
            read_csv, "A,B\n1,2\n", TextRequest(columns=("A", "B")), UsageError,
            "x: the languages are not clear; it names none. Say both: --source de --target en.",
        ),
        (
            read_csv, "de,en,fr\n1,2,3\n", TextRequest(), UsageError,
            "x: the languages are not clear; it names de, en, fr. Say both: --source de --target en.",
        ),
        (read_csv, "de,en\n1,2\n3\n", STRICT, DataError, 'x, row 3: no column "en". It has: de. Without --strict'),
        (read_tsv, "de\ten\n1\t2\n3\n4\n", REQUEST, DataError, "x: 2 of 3 are damaged, row 3: no column"),
        (
            read_csv, "de,en\n1,2\nJa, gut,yes\n", STRICT, DataError,
            "x, row 3: 3 columns in place of 2. A text with the separator must be quoted. Without --strict",
        ),
        (
            read_csv, 'sep=,\nde,en\n"1\n1",2\n1,"2\n3\n', REQUEST, DataError,
            "x, row 3: unexpected end of data. Is a quotation mark missing? The row begins in line 5: end its",
        ),
        (
            read_csv, 'de,en\n1,"' + "2" * 200_000, REQUEST, DataError,
            "x, row 2: unexpected end of data. Is a quotation mark missing?",
        ),
        (read_jsonl, "[]", REQUEST, DataError, "x, line 1: list in place of an object with the two texts."),
        (read_jsonl, "{", REQUEST, DataError, "x, line 1: no JSON ("),
        (read_jsonl, '{"de": 1, "en": "a"}', REQUEST, DataError, 'x, line 1: "de" holds int, not text.'),
        (
            read_jsonl, '{"de": "\\ud800", "en": "a"}', REQUEST, DataError,
            'x, line 1: "de" holds half a surrogate pair',
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_a_table_is_named(
    read, text: str, request_: TextRequest, error: type[Exception], message: str
) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        list(read(stream(text), request_, "x").pairs)


def test_all_mistakes_of_a_table_are_named_at_once() -> None:
    table = b'A,B\n1,2\n"a"b,c\n3,4,5\n' + b"Gr\xfc\xdfe,6\n"
    with pytest.raises(UsageError) as caught:
        read_csv(io.BufferedReader(io.BytesIO(table)), TextRequest(), "x")
    lines = str(caught.value).splitlines()
    assert lines[0] == "x: 4 mistakes"
    for line, words in zip(
        lines[1:], ("Say the languages", "line 5: byte 0xFC", "row 3: ", "row 4: 3 columns"), strict=True
    ):
        assert words in line
    with pytest.raises(DataError, match=r"^x: 2 mistakes\n  x has no column C\. .*\n  damaged: row 3: "):
        read_csv(stream('A,B\n1,2\n"a"b,c\n'), TextRequest("de", "en", ("A", "C")), "x")


@pytest.mark.parametrize(
    ("read", "text", "damage"),
    [
        (read_csv, 'de,en\n1,2\n"a"b,c\n3,4\n', "row 3: ',' expected after '\"'. Is a quotation mark missing?"),
        (read_csv, "de;en\n1;2\na;b;c\n3;4;;\n", "row 3: 3 columns in place of 2"),
        (read_tsv, "de\ten\n1\t2\na\n3\t4\n", 'row 3: no column "en"'),
        (read_jsonl, '{"de": "1", "en": "2"}\n{"de\n\n{"de": "3", "en": "4"}', "line 2: no JSON"),
        (
            read_jsonl,
            '{"de": "1", "en": "2"}\n{"de": 7, "en": ""}\n{"de": "3", "en": "4"}',
            'line 2: "de" holds int',
        ),
    ],
)
def test_a_damaged_row_is_left_out_and_named(read, text: str, damage: str) -> None:  # type: ignore[no-untyped-def]
    found = read(stream(text), REQUEST, "x")
    check_pairs(found, ("1", "2"), ("3", "4"))
    assert found.skipped.counts == {"damaged": 1}
    assert found.skipped.damage[0].startswith(damage)
    with pytest.raises(DataError, match=f"^x, {re.escape(damage)}.* Without --strict it is left out"):
        list(read(stream(text), STRICT, "x").pairs)


@pytest.mark.parametrize(
    "table",
    [
        "sep=;\nde;en\na,b;c,d\n",
        '"sep=;"\r\nde;en\r\na,b;c,d\r\n',
        "\ufeffSEP=|\nde|en\na,b|c,d\n",
        "sep=\t\nde\ten\na,b\tc,d\n",
        '"de";"en";"a, b, c, d"\n"a,b";"c,d";\n',
    ],
)
def test_the_separator_is_named_by_a_first_line_or_found_outside_of_quotes(table: str) -> None:
    check_pairs(read_csv(stream(table), REQUEST, "x"), ("a,b", "c,d"))


def test_a_long_cell_is_read_and_the_limit_of_the_process_is_kept() -> None:
    long = "x " * 100_000
    check_pairs(read_csv(stream(f'de,en\n"{long}",a\n'), REQUEST, "x"), (long, "a"))
    assert csv.field_size_limit() == 131_072
