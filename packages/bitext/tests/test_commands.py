"""The commands that bitext shares with other programs, by the program bitext: messages, results, next steps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bitext.catalogue import CORPORA
from bitext.cli import run
from dirty_pairs import clean_pairs
from fake_mtdata import NAME, URL, fake_mtdata

__all__ = ["fake_mtdata"]


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write corpus.de, corpus.en and corpus.tsv into the current folder."""
    monkeypatch.chdir(tmp_path)
    pairs = clean_pairs(60)
    for name, lines in {
        "corpus.de": [source for source, _ in pairs],
        "corpus.en": [target for _, target in pairs],
        "corpus.tsv": ["de\ten", *map("\t".join, pairs)],
    }.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_a_table_is_converted_and_the_next_command_divides_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", "corpus.tsv", "-o", "out"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == ("Next: bitext split out/corpus.de.gz out/corpus.en.gz")
    assert gzip.decompress(Path("out/corpus.de.gz").read_bytes()) == Path("corpus.de").read_bytes()
    assert json.loads(Path("out/corpus.sources.json").read_text("utf-8"))["bitext"]


def test_two_files_are_divided_into_a_folder_of_their_languages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["split", "corpus.de", "corpus.en", "--valid", "5", "--test", "5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["root"], result["valid"], result["test"]) == (str(Path("data/de-en")), 5, 5)
    names = {f"{split}.{language}" for split in ("train", "valid", "test") for language in ("de", "en")}
    assert {path.name for path in Path("data/de-en").iterdir()} == names


def test_without_a_name_fetch_lists_the_corpora(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fetch", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == list(CORPORA)


@pytest.mark.usefixtures("fake_mtdata")
def test_corpora_of_an_index_are_listed_and_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fetch", "TATOEBA v1", "--source", "ko", "--target", "en"]) == 0
    assert capsys.readouterr().out == f"{NAME}\n  {URL}\n"
    assert run(["fetch", NAME, "--source", "ko", "--target", "en"]) == 0
    folder = Path("data") / NAME
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"Next: bitext split {folder / NAME}.ko.gz {folder / NAME}.en.gz"


@pytest.mark.usefixtures("fake_mtdata")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("clean corpus.de", 2, "Missing option '-o'"),
        ("clean corpus.de corpus.en -o out --loss 3", 2, "error: loss = 3.0 is no share"),
        ("clean corpus.de corpus.en -o out --off colour", 2, "'colour' is not one of"),
        ("clean corpus.de nothing.en -o out", 2, "The languages cannot be told"),
        ("clean corpus.de corpus.fr -o out", 3, "error: There is no file corpus.fr"),
        ("report nothing", 2, "nothing alone is no parallel text"),
        ("convert corpus.de -o out", 2, "corpus.de: a format that is not known"),
        ("convert corpus.tsv -o out --columns de", 2, "'de' does not name two columns"),
        ("convert corpus.tsv -o out --name ../x", 2, '"../x" cannot name files'),
        ("convert nothing.tmx -o out", 3, "There is no file nothing.tmx"),
        ("split corpus.de", 2, "corpus.de alone is no parallel text"),
        ("split corpus.de corpus.de", 2, "corpus.de is given twice"),
        ("split corpus.tsv", 2, "The languages cannot be told from corpus.tsv"),
        ("split corpus.de corpus.en --blank-lines --document-file x", 2, "both say where documents end"),
        ("split corpus.de corpus.en --source en", 2, "Both texts have the language en"),
        ("fetch --source ko", 2, "Give both: --source ko --target en"),
        ("fetch zzz --source ko --target en", 2, 'has "zzz" in its name'),
        ("fetch no-corpus", 2, 'There is no corpus "no-corpus" to fetch'),
    ],
)
def test_a_mistake_is_one_message_with_its_exit_code(
    words: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("out").exists()
