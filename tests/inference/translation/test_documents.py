"""Documents are translated by their units, each text once, also in shards that resume."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.inference.translation.test_parts import KNOWN
from tests.inference.translation.test_translator import make_translator, save_run

from manyheads.cli.main import run
from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import read_document
from manyheads.errors import DataError
from manyheads.inference.translation import translate_file as module
from manyheads.inference.translation.documents import Doubt, UnitFields, read_file, write_document
from manyheads.inference.translation.translate_file import TranslationJob, _shards_folder

PAGE = "<p>abc <b>def</b></p><p>ghi</p><p>123</p><p>ghi</p>"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_translator(end_bias=5.0, letters=KNOWN, data={"max_length": 35})
    return save_run(made, tmp_path_factory.mktemp("runs") / "run")


def test_each_text_is_translated_once_and_what_is_doubtful_has_a_place() -> None:
    document = read_document(PAGE.replace("<p>1", "\n<p>1").encode(), "html", ReadOptions())
    asked: list[str] = []

    def translate(texts: list[str]) -> Iterator[UnitFields]:
        asked.extend(texts)
        yield from [("abc def", None, []), ("GHI", None, ["low confidence"])]

    data, report = write_document(document, translate)
    assert asked == ["abc def", "ghi"]
    assert data.decode() == "<p>abc <b>def</b></p><p>GHI</p>\n<p>123</p><p>GHI</p>"
    assert (report.units, report.unchanged) == (3, 1)
    assert report.doubtful == [Doubt(f"line {line}", "ghi", ["low confidence"]) for line in (1, 2)]
    assert report.lines() == [
        "3 texts, 1 unchanged, 2 doubtful",
        *(f"  line {n}: low confidence: ghi" for n in (1, 2)),
    ]


def test_plain_text_is_no_document_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    assert read_file(tmp_path / "a.txt", None, ReadOptions()) is None
    (tmp_path / "a.docx").write_bytes(b"PK\3\4")
    with pytest.raises(DataError):
        read_file(tmp_path / "a.docx", None, ReadOptions(str(tmp_path / "a.docx")))
    with pytest.raises(DataError, match="cannot be read"):
        read_file(tmp_path / "b.srt", None, ReadOptions())


def test_a_document_is_the_same_in_python_by_the_command_and_in_shards(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(module, "SHARD_LINES", 1)
    page, python = tmp_path / "page.html", tmp_path / "python.html"
    page.write_text(PAGE)
    report = TranslationJob(trained, device="cpu").open().translate_file(page, python)
    assert report.units == 3
    words = ["translate", str(trained), str(page), "--device", "cpu"]
    assert run(words) == 0
    assert capfdbinary.readouterr().out == python.read_bytes()
    assert run([*words, "-o", str(tmp_path / "out.html")]) == 0
    assert (tmp_path / "out.html").read_bytes() == python.read_bytes()
    assert not _shards_folder(tmp_path / "out.html").exists()
    assert b"3 texts, " in capfdbinary.readouterr().err
    assert re.sub("<[^>]*>|[^<>]", "", python.read_text()) == ""
    assert re.findall("<[^>]*>", python.read_text()) == re.findall("<[^>]*>", PAGE)


def test_an_interrupted_translation_of_a_document_goes_on(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARD_LINES", 1)
    page, out = tmp_path / "page.html", tmp_path / "out.html"
    page.write_text(PAGE)
    words = ["translate", str(trained), str(page), "--device", "cpu", "-o", str(out)]
    original, done = module._translate_shard, list[str]()

    def interrupted(job: TranslationJob, shard: module.Shard) -> bytes:
        if done:
            raise KeyboardInterrupt
        return counted(job, shard)

    def counted(job: TranslationJob, shard: module.Shard) -> bytes:
        done.extend(shard.lines)
        return original(job, shard)

    monkeypatch.setattr(module, "_translate_shard", interrupted)
    assert run(words) == 130
    assert not out.exists()
    assert len(list(_shards_folder(out).glob("*.shard"))) == 1
    monkeypatch.setattr(module, "_translate_shard", counted)
    assert run(words) == 0
    assert done == ["abc def", "ghi"]


def test_the_documents_of_a_folder_go_to_a_folder(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.html").write_text(PAGE)
    (tmp_path / "in" / "deep" / "b.md").write_text("abc *def*\n")
    (tmp_path / "in" / "picture.png").write_text("")
    words = ["translate", str(trained), str(tmp_path / "in"), "--device", "cpu"]
    assert run([*words, "-o", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.*")) == ["a.html", "b.md"]
    capsys.readouterr()
    assert run(words) == 2
    assert "-o FOLDER" in capsys.readouterr().err
    assert run([*words, "-o", str(tmp_path / "in")]) == 2
    assert "would be replaced by its translation" in capsys.readouterr().err
    twice = [str(tmp_path / "in" / "a.html"), str(tmp_path / "out" / "a.html")]
    assert run([*words[:2], *twice, "-o", str(tmp_path / "other")]) == 2
    assert "the same name" in capsys.readouterr().err
    assert (tmp_path / "in" / "a.html").read_text() == PAGE


def test_options_of_lines_are_refused_for_a_document(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    assert run(["translate", str(trained), str(tmp_path / "a.html"), "--n-best", "2", "--device", "cpu"]) == 2
    assert "--n-best is for lines of text (--format text)" in capsys.readouterr().err
