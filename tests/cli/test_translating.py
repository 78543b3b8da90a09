"""`translate` with a real model in a real run directory: valid input, invalid input, and a closed pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.inference.translation.test_parts import KNOWN
from tests.inference.translation.test_translator import make_translator, save_run
from tests.stdin import set_stdin

from manyheads.cli.main import run
from manyheads.inference.translation.translate_file import TranslationJob


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_translator(end_bias=5.0, letters=KNOWN, data={"max_length": 35})
    return save_run(made, tmp_path_factory.mktemp("runs") / "run")


def translated(
    trained: Path, data: bytes, out: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, code: int = 0
) -> str:
    """Return the output of the verb for these bytes on standard input."""
    set_stdin(monkeypatch, data)
    assert run(["translate", str(trained), "--device", "cpu", "--output", str(out), *arguments]) == code
    return out.read_text(encoding="utf-8")


def test_a_missing_input_file_leaves_the_output_unchanged(trained, tmp_path, capsys) -> None:
    existing = tmp_path / "existing.en"
    existing.write_text("of yesterday", encoding="utf-8")
    missing = tmp_path / "typo.de"
    for output in (existing, tmp_path / "new.en"):
        assert run(["translate", str(trained), str(missing), "--device", "cpu", "--output", str(output)]) == 3
        assert "typo.de cannot be read" in capsys.readouterr().err
    assert existing.read_text(encoding="utf-8") == "of yesterday"
    assert not (tmp_path / "new.en").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--beam", "1"],
        ["--sample", "--top-k", "5", "--top-p", "0.9", "--temperature", "1.2", "--seed", "3"],
        ["--length-penalty", "0.5", "--no-repeat-ngram", "2"],
        ["--min-length-ratio", "0.5", "--max-length-ratio", "1.5"],
        ["--split-lines", "none"],
        ["--stream"],
        ["--match-source"],
        ["--set", "search.beam_size=2"],
    ],
    ids=" ".join,
)
def test_every_option_keeps_one_output_line_per_input_line(trained, tmp_path, monkeypatch, arguments) -> None:
    data = "Abc. Def.\n\n   \nghi\u2028k\n" + "abcdefgh, " * 9 + "\n한글"
    lines = translated(trained, data.encode(), tmp_path / "out", monkeypatch, *arguments).split("\n")
    assert len(lines) == 7
    assert (lines[1], lines[2], lines[6]) == ("", "   ", "")
    again = translated(trained, data.encode(), tmp_path / "again", monkeypatch, *arguments)
    assert again.split("\n") == lines


def test_constraint_files_set_the_prefix_and_forbidden_and_required_text(trained, tmp_path, monkeypatch) -> None:
    for name, text in (("prefix", "kk\n\n"), ("forbid", "a\tb\nc\n"), ("require", "\nml\tkl\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    arguments = [
        part for name in ("prefix", "forbid", "require") for part in (f"--{name}-file", str(tmp_path / name))
    ]
    first, second, _ = translated(trained, b"Abc.\nDef.\n", tmp_path / "out", monkeypatch, *arguments).split("\n")
    assert first.startswith("kk")
    assert not set(first) & set("ab")
    assert "c" not in second
    assert "ml" in second
    assert "kl" in second


def test_a_glossary_is_obeyed_by_a_pipe_and_in_shards_which_another_glossary_begins_anew(
    tmp_path, monkeypatch, capsys
) -> None:
    made = make_translator(end_bias=2.0, letters=KNOWN, data={"max_length": 35})
    trained = save_run(made, tmp_path / "run")
    digests = set()
    glossary, source, out = (tmp_path / name for name in ("terms.tsv", "text.de", "out"))
    source.write_text("Abc def.\nGhi.\n", encoding="utf-8")
    for translation in ("mlml", "kkk"):
        glossary.write_text(f"abc\t{translation}\n", encoding="utf-8")
        arguments = ["--glossary", str(glossary)]
        piped = translated(trained, source.read_bytes(), out, monkeypatch, *arguments)
        first, second, _ = piped.split("\n")
        assert translation in first
        assert translation not in second
        shards = ["translate", str(trained), str(source), "-o", str(out), "--workers", "1", *arguments]
        assert run(shards) == 0
        assert out.read_text(encoding="utf-8") == piped
        digests.add(TranslationJob(trained, glossary=glossary).for_workers().digest)
    assert len(digests) == 2
    glossary.write_text("abc\tÄ\n", encoding="utf-8")
    translated(trained, b"Ghi.\n", out, monkeypatch, "--glossary", str(glossary), code=2)
    assert 'terms.tsv, line 1: "Ä" cannot come out' in capsys.readouterr().err


def test_json_holds_the_alignment_the_alternatives_and_the_hypotheses(trained, tmp_path, monkeypatch) -> None:
    text = translated(
        trained, b"Abc def. Ghi.\n\n", tmp_path / "out", monkeypatch,
        "--json", "--alignment", "--attention-layer", "0", "--alternatives", "2", "--n-best", "2",
        "--split-lines", "sentences",
    )  # fmt: skip
    first, empty = json.loads(text)
    assert first["sentences"] == 2
    assert [link.split("-")[1] for link in first["alignment"].split()] == [
        str(word) for word in range(len(first["translation"].split()))
    ]
    for hypothesis in first["hypotheses"]:
        assert len(hypothesis["alternatives"]) == len(hypothesis["tokens"]) == len(hypothesis["token_scores"])
        assert all(len(beside) == 2 for beside in hypothesis["alternatives"])
        assert hypothesis["log_probability"] == pytest.approx(sum(hypothesis["token_scores"]))
    assert empty == {
        "source": "",
        "translation": "",
        "score": 0.0,
        "hypotheses": [],
        "alignment": None,
        "truncated": False,
        "sentences": 1,
        "warnings": [],
        "confidence": None,
        "confidence_level": None,
    }


def test_each_warning_is_printed_once_on_stderr(trained, tmp_path, monkeypatch, capsys) -> None:
    data = ("Abc.\n" + "a" * 100 + "\n" + "b" * 100 + "\n").encode()
    translated(trained, data, tmp_path / "out", monkeypatch)
    error = capsys.readouterr().err
    assert error.count("warning: a sentence longer than any in training was cut into pieces: line 2, 3\n") == 1
    assert "length limit" not in error
    translated(trained, data, tmp_path / "out", monkeypatch, "--split-lines", "none")
    assert "warning: cut at the length limit of the model or of the search: line 2, 3\n" in capsys.readouterr().err
    translated(trained, data, tmp_path / "out", monkeypatch, "--stream", "--split-lines", "none")
    assert "warning: cut at the length limit of the model or of the search: line 2, 3\n" in capsys.readouterr().err
    translated(trained, data, tmp_path / "out", monkeypatch, "--split-lines", "none", "--quiet")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["file", "--json", "--stream"])
def test_sentences_over_two_lines_are_named(trained, tmp_path, capsys, form) -> None:
    path = tmp_path / "in.de"
    arguments = ["translate", str(trained), str(path), "--device", "cpu", "-o", str(tmp_path / "out")]
    arguments += [form] * form.startswith("-")
    path.write_text("Ein Hund läuft schnell\nüber die Straße.\nEin Mann liest, und dabei\nsingt er.\n", "utf-8")
    assert run(arguments) == 0
    assert (
        "each line was translated by itself. Put each sentence on one line: line 1, 3\n" in capsys.readouterr().err
    )
    path.write_text("Ein Hund läuft schnell über die Straße.\nEin Mann liest, und dabei singt er.\n", "utf-8")
    assert run(arguments) == 0
    assert "translated by itself" not in capsys.readouterr().err


def test_invalid_utf8_is_an_error_at_its_line(trained, tmp_path, monkeypatch, capfd) -> None:
    set_stdin(monkeypatch, b"Abc.\nStra\xdfe\n")
    assert run(["translate", str(trained)]) == 3
    out, error = capfd.readouterr()
    assert out.count("\n") == 1
    assert error.startswith("error: standard input, line 2: byte 0xDF at offset 9 ")
    assert "Traceback" not in error


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n\n", b" \t \n"])
def test_blank_lines_stay_as_they_are(trained, tmp_path, monkeypatch, data) -> None:
    assert translated(trained, data, tmp_path / "out", monkeypatch) == data.decode()


def test_an_ensemble_of_runs_translates(trained, tmp_path, monkeypatch) -> None:
    alone = translated(trained, b"Abc.\n", tmp_path / "out", monkeypatch)
    both = translated(trained, b"Abc.\n", tmp_path / "out", monkeypatch, "--ensemble", str(trained))
    assert both == alone


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes of POSIX")
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_every_input_may_be_a_link_or_a_pipe(trained: Path, tmp_path: Path, kind: str) -> None:
    contents = {"text": "abc\ndef\n", "prefix": "a\n\n", "forbid": "\n\n", "require": "\n\n", "terms": "abc\tcba\n"}
    (tmp_path / "elsewhere").mkdir()
    paths = {name: tmp_path / name for name in contents}
    for name, content in contents.items():
        if kind == "link":
            (tmp_path / "elsewhere" / name).write_text(content)
            paths[name].symlink_to(tmp_path / "elsewhere" / name)
        else:
            os.mkfifo(paths[name])
            threading.Thread(target=paths[name].write_text, args=[content], daemon=True).start()
    command = ["translate", trained, paths["text"], "-o", tmp_path / "out", "--glossary", paths["terms"]]
    options = [word for name in ("prefix", "forbid", "require") for word in (f"--{name}-file", paths[name])]
    assert run([*map(str, [*command, *options])]) == 0
    assert (tmp_path / "out").read_text().count("\n") == 2


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="no /dev/stdin")
def test_standard_input_may_be_a_file_by_its_name(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abc\ndef\n")
    command = [sys.executable, "-m", "manyheads", "translate", trained, "/dev/stdin", "-o", tmp_path / "out"]
    with (tmp_path / "text").open() as text:
        subprocess.run(command, stdin=text, check=True)
    assert (tmp_path / "out").read_text().count("\n") == 2


def test_an_output_may_have_the_longest_name(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abc\n")
    path = tmp_path / ("o" * 255)
    assert run(["translate", str(trained), str(tmp_path / "text"), "-o", str(path)]) == 0
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "text"]


@pytest.mark.parametrize("to_file", [False, True])
@pytest.mark.parametrize(
    ("option", "line", "problem"),
    [
        ("--prefix-file", "a" * 50, "the prefix has 50 tokens, but the longest output of this model is"),
        ("--require-file", "a\t" + "b" * 50, "the phrase has 50 tokens, but the longest output"),
        ("--prefix-file", "漢", 'the prefix "漢" cannot come out: it has symbols'),
    ],
)
def test_a_forced_text_that_no_output_can_hold_is_named_with_its_file_and_line(
    trained: Path, tmp_path: Path, option: str, line: str, problem: str, to_file: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "text").write_text("abc\n" * 3)
    (tmp_path / "forced").write_text(f"\n\n{line}\n", encoding="utf-8")
    output = ["-o", str(tmp_path / "out")] if to_file else []
    assert run(["translate", str(trained), str(tmp_path / "text"), option, str(tmp_path / "forced"), *output]) == 2
    assert f"error: {tmp_path / 'forced'}, line 3: {problem}" in capsys.readouterr().err
