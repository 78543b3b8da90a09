"""`translate` writes one line for each input line, in the same order, whatever characters the lines contain."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from manyheads.cli.main import run
from manyheads.cli.streams import (
    ConstraintFiles,
    WarnedLines,
    batches,
    collect_warnings,
    input_lines,
    write_results,
)
from manyheads.cli.translate import translate_batches
from manyheads.documents.formats import SUFFIXES
from manyheads.errors import DataError, UsageError
from manyheads.inference.native.build import library
from manyheads.inference.translation.translate_file import output_lines
from manyheads.inference.translation.translator import (
    TRUNCATED,
    WARNINGS,
    Candidate,
    Translation,
    Translator,
    warnings_of,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "format-1" / "run"
REPETITION = WARNINGS["repetition"]
UNUSUAL_LINES = ["a\u2028b", "", "c\x85\x0b\x0c\x1cd", "   ", "가나\rx", "last"]


class UppercaseTranslator:
    """A translator into upper case, with a line end in each result; "last" counts as truncated."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.options: list[dict[str, object]] = []

    def translate(
        self, texts: Sequence[str], *, beam_size: int | None = None, n_best: int = 1, **options: object
    ) -> list[Translation]:
        self.sizes.append(len(texts))
        self.options.append(options)
        return [
            Translation(
                text,
                [
                    Candidate(f"{text.upper()}{rank}\r\n.", -float(rank), ["x"], [-0.5], -0.5)
                    for rank in range(n_best)
                ]
                if text.strip()
                else [],
                truncated=text == "last",
                warnings=["repetition"] if text in ("", "last") else [],
            )
            for text in texts
        ]


def translations(
    translator: UppercaseTranslator,
    lines: Iterator[str],
    size: int,
    n_best: int = 1,
    constraints: ConstraintFiles | None = None,
) -> Iterator[Translation]:
    translate_lines = partial(translator.translate, n_best=n_best)
    return translate_batches(translate_lines, batches(lines, size), constraints or ConstraintFiles())


def write(
    results: Iterator[Translation], stream: io.BytesIO, n_best: int = 1, *, as_json: bool = False
) -> WarnedLines:
    """Write translations as the verb does, and return the lines with warnings."""
    warned = WarnedLines(list)
    checked = collect_warnings(results, warned, warnings_of)
    write_results(checked, stream, partial(output_lines, n_best=n_best), as_json=as_json)
    return warned


def test_one_line_is_written_for_each_input_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\n".join(UNUSUAL_LINES).encode())
    translator, stream = UppercaseTranslator(), io.BytesIO()
    warned = write(translations(translator, input_lines(path), 4), stream)
    lines = stream.getvalue().decode().split("\n")
    assert lines == [
        *(f"{text.upper()}0  .".replace("\r", " ") if text.strip() else "" for text in UNUSUAL_LINES),
        "",
    ]
    assert translator.sizes == [4, 2]
    assert warned == {TRUNCATED: [6], REPETITION: [2, 6]}


def test_the_n_best_of_a_line_carry_its_number_and_their_scores() -> None:
    stream = io.BytesIO()
    found = translations(UppercaseTranslator(), iter(["a", "", "b"]), 2, 2)
    assert write(found, stream, 2) == {REPETITION: [2]}
    assert stream.getvalue().decode().split("\n") == [
        "0 ||| A0  . ||| -0.0000",
        "0 ||| A1  . ||| -1.0000",
        "2 ||| B0  . ||| -0.0000",
        "2 ||| B1  . ||| -1.0000",
        "",
    ]


DOCUMENTS = (
    "po pot html htm xhtml md rst tex xliff xlf tmx srt vtt ass ssa docx odt pptx epub json jsonl xml pdf HTML "
    "po.gz en.html.zst"
)


@pytest.mark.parametrize(
    "words",
    [
        ["translate", "run", "{}"],
        ["translate", "run", "{}", "-o", "out"],
        ["classify", "run", "{}"],
        ["score", "run", "a", "{}"],
        ["score", "run", "{}", "b"],
        ["evaluate", "run", "--source-file", "{}", "--reference-file", "b"],
        ["evaluate", "run", "--source-file", "a", "--reference-file", "{}"],
    ],
    ids=" ".join,
)
def test_a_document_is_refused_with_the_way_that_works(words: list[str], call: Call) -> None:
    for ending in DOCUMENTS.split():
        if words[0] == "translate" and f".{ending.lower()}" in SUFFIXES:
            continue
        error = call(*(word.format(f"x.{ending}") for word in words), code=2).err
        assert error.startswith(f"error: x.{ending} is no plain text (."), error
        assert " To read it line by line all the same: " in error


@pytest.mark.parametrize(
    "words",
    [
        ["translate", "run", "app.po", "--format", "text"],
        ["translate", "run", "-"],
        ["translate", "run", "test.de.gz"],
        ["classify", "run", "v1.0.txt"],
        ["generate", "run", "page.html"],
        ["evaluate", "run", "--source-file", "book.md"],
    ],
    ids=" ".join,
)
def test_plain_text_standard_input_and_prompts_are_not_refused(words: list[str], call: Call) -> None:
    assert call(*words, code=3).err.startswith("error: run is not a directory.")


@pytest.mark.parametrize(("lines", "named"), [("A\n", "fewer lines"), ("A\nB\nC\n", "more lines")])
def test_constraint_files_of_another_length_are_named(tmp_path: Path, lines: str, named: str) -> None:
    path = tmp_path / "prefix"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(DataError, match=rf"prefix has {named} than the input"):
        list(translations(UppercaseTranslator(), iter(["x", "y"]), 2, constraints=ConstraintFiles(path)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--temperature", "0.5"], "Give --sample too"),
        (["--sample", "--temperature", "0"], "temperature = 0.0 must be above 0"),
        (["--sample", "--top-p", "1.5"], "top_p = 1.5"),
        (["--n-best", "2", "--alignment"], "use --json"),
        (["--beam", "2", "--n-best", "3"], "error: --n-best 3 needs at least --beam 3, not 2."),
        (["--alternatives", "2"], "--alternatives needs --json"),
        (["--stream", "--beam", "3"], "--stream prints the greedy output alone"),
        (["--stream", "--match-source"], "--stream prints the greedy output alone"),
        (["--stream", "--glossary", "terms.tsv"], "--stream prints the greedy output alone"),
        (["--split-lines", "words"], "'words' is not one of 'auto', 'sentences', 'none'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["translate", "run", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_every_engine_writes_the_same_translations(call: Call, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Ein Hund läuft .\nZwei Frauen lesen .\n", encoding="utf-8")
    default = call("translate", GOLDEN, tmp_path / "text").out
    assert default.count("\n") == 2
    for name in ("auto", "torch", "native") if library() else ("auto", "torch"):
        assert call("translate", GOLDEN, tmp_path / "text", "--engine", name).out == default


@pytest.mark.parametrize("verb", ["translate", "serve"])
def test_the_former_engine_ctranslate2_is_refused_with_what_to_use(call: Call, verb: str) -> None:
    message = call(verb, GOLDEN, "--engine", "ctranslate2", code=2).err
    assert "the engine ctranslate2 is gone" in message
    assert "make a run: manyheads import FOLDER -o RUN" in message
    with pytest.raises(UsageError, match="the engine ctranslate2 is gone"):
        Translator.load(GOLDEN, engine="ctranslate2")
