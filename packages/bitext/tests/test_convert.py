"""Text of every format becomes two files of lines with a note of its sources; an error leaves no output file."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bitext import __version__, convert
from bitext.convert import _FORMATS, ConvertOptions, _one_line, convert_files
from bitext.errors import DataError, UsageError, WriteError
from bitext.executors import open_executor
from bitext.formats.text import TextRequest
from bitext.shards import _ShardRun
from bitext.sources import read_sources
from bitext.split import SplitOptions, split_corpus
from formats.test_moses import README, TEXT, make_archive

TMX = (
    "<tmx><header><note>Licence: MIT</note></header><body><tu><tuv xml:lang='de'><seg>{}</seg></tuv>"
    "<tuv xml:lang='en'><seg> two\u2028 lines\t</seg></tuv></tu></body></tmx>"
)


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("opus.zip").write_bytes(make_archive({**TEXT, "README": README}).read())
    Path("memory.tmx").write_text(TMX.format("zwei \n\n Zeilen"), encoding="utf-8")
    Path("c.en").write_text("one\n\n", encoding="utf-8")
    Path("c.de").write_text("eins\nzwei\n", encoding="utf-8")
    return tmp_path


def read_lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def test_several_inputs_become_one_text_with_a_note_of_each() -> None:
    inputs = ["opus.zip", "c.en", "c.de", "memory.tmx"]
    result = convert_files(inputs, Path("out"), ConvertOptions("all"))
    assert sorted(path.name for path in Path("out").iterdir()) == ["all.de.gz", "all.en.gz", "all.sources.json"]
    assert read_lines(result.files[0]) == ["Hallo", "Welt", "eins", "zwei Zeilen"]
    assert read_lines(result.files[1]) == ["Hello", "world", "one", "two lines"]
    found = json.loads(result.note.read_text(encoding="utf-8"))
    assert found["bitext"] == __version__
    assert found["languages"] == ["de", "en"]
    assert [
        (source["file"], source["format"], source["pairs"], source["empty"], source["licence"])
        for source in found["sources"]
    ] == [
        ("opus.zip", "Moses zip", 2, 0, "CC-BY 2.0 FR"),
        ("c.en", "lines", 1, 1, None),
        ("memory.tmx", "TMX", 1, 0, "MIT"),
    ]
    sums = {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in ("c.en", "c.de")}
    assert found["sources"][1]["sha256"] == sums


def test_statements_of_the_user_take_precedence_and_the_output_is_deterministic() -> None:
    options = ConvertOptions("x", TextRequest("en", "de"), "CC0", "mine")
    first, second = (convert_files(["opus.zip"], Path(out), options) for out in ("a", "b"))
    assert [(source.licence, source.origin) for source in first.sources] == [("CC0", "mine")]
    assert first.files[0].name == "x.en.gz"
    assert [path.read_bytes() for path in first.files] == [path.read_bytes() for path in second.files]


def test_worker_processes_write_the_same_bytes_and_an_interrupted_conversion_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = [f"zwei {number}\t{'two' if number % 7 else ''} {number % 7 or ''}" for number in range(10_000)]
    Path("x.tsv").write_text("\n".join(["de\ten", *text]), encoding="utf-8")
    alone = convert_files(["x.tsv", "opus.zip"], Path("alone"), ConvertOptions("x"))
    assert alone.to_json()["pairs"] == 10_000 - len(range(0, 10_000, 7)) + 2
    with open_executor(None, 2) as executor:
        Path("broken.tmx").write_text("<tmx>", encoding="utf-8")
        with pytest.raises(DataError, match=r"^broken\.tmx is no XML that can be read: no element found, line 1\."):
            convert_files(["x.tsv", "broken.tmx"], Path("out"), ConvertOptions("x"), executor=executor)
        submitted = []
        submit = _ShardRun.submit

        def record_submit(run: _ShardRun, number: int, shard: Any) -> None:
            submitted.append(number)
            submit(run, number, shard)

        monkeypatch.setattr(_ShardRun, "submit", record_submit)
        result = convert_files(["x.tsv", "opus.zip"], Path("out"), ConvertOptions("x"), executor=executor)
    assert len(submitted) == 1, "the shards of the first input were kept"
    assert [path.read_bytes() for path in result.files] == [path.read_bytes() for path in alone.files]
    assert sorted(path.name for path in Path("out").iterdir()) == ["x.de.gz", "x.en.gz", "x.sources.json"]


def test_a_full_disk_keeps_the_finished_shards_without_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"zwei {number}\ttwo {number}\n" for number in range(10_000))
    Path("x.tsv").write_text(f"de\ten\n{text}", encoding="utf-8")
    alone = convert_files(["x.tsv"], Path("alone"), ConvertOptions("x"))
    synced: list[int] = []

    def fail_on_third_shard(file: int) -> None:
        synced.append(file)
        if len(synced) == 7:  # the key, two shards and the folder after each, and the third
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_on_third_shard)
        kept = r"^out/\.x\.shards/\S+ cannot be written: No space left on device\. What is finished is kept"
        with pytest.raises(WriteError, match=kept):
            convert_files(["x.tsv"], Path("out"), ConvertOptions("x"))
    assert [path.name for path in Path("out").iterdir()] == [".x.shards"]
    assert len([*Path("out/.x.shards/0").glob("*.shard")]) == 2, "the first two shards were kept"
    result = convert_files(["x.tsv"], Path("out"), ConvertOptions("x"))
    assert [path.read_bytes() for path in result.files] == [path.read_bytes() for path in alone.files]
    assert sorted(path.name for path in Path("out").iterdir()) == ["x.de.gz", "x.en.gz", "x.sources.json"]


def test_licence_and_origin_follow_the_text_into_the_folder_of_its_splits() -> None:
    Path("many.de").write_text("".join(f"Satz {chr(97 + n // 9) * 5} {n}\n" for n in range(99)))
    Path("many.en").write_text("".join(f"line {chr(97 + n // 9) * 5} {n}\n" for n in range(99)))
    options = ConvertOptions("many", licence="CC BY 4.0", origin="Tatoeba")
    result = convert_files(["many.de", "many.en"], Path("out"), options)
    split_corpus(result.files, Path("data"), ("de", "en"), SplitOptions(9, 0, near=False))
    (source,) = read_sources([Path("data/train.de.gz"), Path("data/train.en.gz")])
    assert source.line() == "Tatoeba (many.de): 99 pairs; licence: CC BY 4.0"


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (["memroy.tmx"], DataError, "There is no file memroy.tmx. Near names there: memory.tmx"),
        (["c.de"], UsageError, f"c.de: a format that is not known. Known are {', '.join(_FORMATS)}, hf:NAME"),
        (["opus.zip", "c.de"], UsageError, "c.de: a format that is not known. Known are .zip"),
        (["broken.tmx"], DataError, "broken.tmx is no XML that can be read: unclosed token, line 1."),
        (["opus.zip", "broken.tmx"], DataError, "broken.tmx is no XML that can be read: unclosed token, line 1"),
        (["short.de", "short.en"], DataError, "The line counts differ: short.de has 1 lines and short.en has 2"),
        (["empty.tmx"], DataError, "empty.tmx: no pair has text on both sides. Nothing is written."),
        (["opus.zip", "french.tsv"], DataError, "french.tsv has no column for en. Choose two with --columns among"),
        (
            ["hf:no/such/data/x"],
            DataError,
            "hf:no/such/data/x is neither a folder nor NAME/CONFIG",
        ),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(inputs: list[str], error: type[Exception], message: str) -> None:
    Path("broken.tmx").write_text(TMX.format("a")[:-9], encoding="utf-8")
    Path("empty.tmx").write_text(TMX.format(" "), encoding="utf-8")
    Path("short.de").write_text("a\n")
    Path("short.en").write_text("a\nb\n")
    Path("french.tsv").write_text("de\tfr\na\tb\n")
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        convert_files(inputs, Path("out"), ConvertOptions("x"))
    assert not Path("out").exists()


def test_an_input_that_cannot_be_read_is_named_and_not_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(convert, "sum_of", refused)
    with pytest.raises(DataError, match=r"^opus\.zip cannot be read: Permission denied\."):
        convert_files(["opus.zip"], Path("out"), ConvertOptions("x"))

    def failing() -> Iterator[tuple[str, str]]:
        yield "a", "b"
        raise OSError(5, "Input/output error")

    with pytest.raises(DataError, match=r"^c\.de and c\.en cannot be read: Input/output error\."):
        list(convert._read_named(failing(), ("c.de", "c.en")))


@pytest.mark.parametrize(
    ("text", "line"),
    [("好。\n 不好。", "好。不好。"), ("A\nB", "A B"), ("好\nA\n好", "好 A 好"), ("예.\n네.", "예. 네.")],
)
def test_a_line_end_becomes_what_the_script_has_between_words(text: str, line: str) -> None:
    assert _one_line(text) == line


def test_existing_files_are_not_overwritten_by_a_conversion() -> None:
    Path("out").mkdir()
    Path("out/x.de.xz").write_bytes(b"mine")
    with pytest.raises(
        DataError, match=r"^out holds x\.de\.xz already; nothing is overwritten\. Name .* --name NAME\."
    ):
        convert_files(["opus.zip"], Path("out"), ConvertOptions("x"))
    with pytest.raises(DataError, match=r"^c\.de is a file\. Name a folder: -o DIR\."):
        convert_files(["opus.zip"], Path("c.de"), ConvertOptions("x"))
    with pytest.raises(UsageError, match=r"^Both texts have the language de\. Say both: --source de --target en\."):
        convert_files(["c.de", "c.en"], Path("new"), ConvertOptions("x", TextRequest("de", "de")))
    with pytest.raises(UsageError, match=r"^Both texts have the language de and deu\."):
        convert_files(["c.de", "c.en"], Path("new"), ConvertOptions("x", TextRequest("de", "deu")))
    assert [path.name for path in Path("out").iterdir()] == ["x.de.xz"]
