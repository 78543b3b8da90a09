"""The text of a tuning: what is learned, held out, replayed and left out, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from tests.runs.parts import SENTENCES
from tests.training.parts import CollectingListener

from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.errors import DataError, UsageError
from manyheads.improve.tune_text import (
    GENERAL,
    TuningText,
    add_general,
    data_of,
    read_corrections,
    read_text,
    write_text,
)
from manyheads.inference.translation.translator import Translator

Texts = list[tuple[str, str]]


@pytest.fixture
def run(untrained: Path) -> RunDirectory:
    return RunDirectory(untrained)


def write(path: Path, pairs: Texts) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def read(path: Path, run: RunDirectory) -> TuningText:
    config = run.config()
    return read_corrections(path, config, run.tokenizers(config))


class Shouting(Translator):
    """A translator that writes its source in capitals."""

    def __init__(self) -> None:
        """Load no model."""

    def translate(self, texts: Sequence[str], **options: Any) -> Any:
        return [SimpleNamespace(translation=text.upper()) for text in texts]


def no_translator() -> NoReturn:
    raise AssertionError("nothing is translated")


def corrected(count: int) -> Texts:
    return [(german, f"{english} too") for german, english in SENTENCES[:count]]


def test_a_source_is_held_out_or_trained_on_and_stays_there_when_the_lines_are_in_another_order(
    run: RunDirectory, tmp_path: Path
) -> None:
    pairs = [*corrected(30), *corrected(5)]
    text = read(write(tmp_path / "some.tsv", pairs), run)
    again = read(write(tmp_path / "other.tsv", pairs[::-1]), run)
    held = {pair.source for pair in text.held_out}
    assert len(held) == len(text.held_out) == 6
    assert held == {pair.source for pair in again.held_out}
    assert not held & {pair.source for pair in text.corrections}
    assert len(text.corrections) == 24


def test_few_corrections_are_all_trained_on_and_the_report_says_so(run: RunDirectory, tmp_path: Path) -> None:
    text = read(write(tmp_path / "few.tsv", corrected(19)), run)
    assert (len(text.corrections), text.held_out) == (19, [])
    assert "none held out" in next(text.lines())
    assert text.parts()["valid.tsv"] == text.corrections


def test_lines_that_cannot_be_learned_are_left_out_by_number(run: RunDirectory, tmp_path: Path) -> None:
    pairs = [
        ("source", "target"),
        ("der Hund läuft", "the dog runs"),
        ("die Katze", ""),
        ("das Pferd", "the € horse"),
        ("ein Kind " * 100, "a child " * 100),
        ("der Hund läuft", "the hound runs"),
        ("der Mann € liest", "the man reads"),
        ("ja", "yes " * 40),
    ]
    text = read(write(tmp_path / "odd.tsv", pairs), run)
    assert [pair.line for pair in text.corrections] == [6, 7]
    assert [list(lines) for lines in text.left_out.values()] == [[2], [3], [4], [5], [8]]
    lines = "\n".join(text.lines())
    for words in ("line 3: no text", "line 4: the target has characters", "line 5: more than", "line 2: a later"):
        assert words in lines
    assert "1 sources have characters" in lines


def test_marks_of_a_spreadsheet_and_names_of_columns_are_left_out(run: RunDirectory, tmp_path: Path) -> None:
    quoted = [("German", "English"), *corrected(3), ('der ""Hund""', "the dog")]
    path = tmp_path / "quoted.tsv"
    path.write_text("".join(f'"{source}"\t"{target}"\n' for source, target in quoted), encoding="utf-8")
    found = [(pair.source, pair.target) for pair in read(path, run).corrections]
    assert found == [*corrected(3), ('der "Hund"', "the dog")]
    quotations = [('"ja"', "yes"), *corrected(2)]
    path.write_text("".join(f"{source}\t{target}\n" for source, target in quotations), encoding="utf-8")
    assert [(pair.source, pair.target) for pair in read(path, run).corrections] == quotations


def test_a_memory_is_read_in_the_languages_of_the_model(run: RunDirectory, tmp_path: Path) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en-GB"><seg>{english}</seg></tuv><tuv xml:lang="de"><seg>{german}</seg></tuv></tu>'
        for german, english in corrected(3)
    )
    path = tmp_path / "memory.tmx"
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>', encoding="utf-8")
    assert [(pair.source, pair.target) for pair in read(path, run).corrections] == corrected(3)
    path.write_text(path.read_text("utf-8").replace('"de"', '"fr"'), encoding="utf-8")
    with pytest.raises(DataError, match="no text in de"):
        read(path, run)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([], "no lines"),
        ([("", "")], "no correction that can be used"),
        ([("der Hund", "€ € €")], "line 1: the target has characters"),
        ([(target, source) for source, target in corrected(48)], "the sources look like English"),
        ([("der Hund ist da", "le chien est dans la rue et les enfants")], None),
        ([(german, "le chien est dans la rue et les enfants") for german, _ in SENTENCES[:9]], "look like French"),
    ],
)
def test_corrections_that_cannot_be_used_are_refused(
    pairs: Texts, words: str | None, run: RunDirectory, tmp_path: Path
) -> None:
    path = write(tmp_path / "bad.tsv", pairs)
    if words is None:
        assert read(path, run).corrections, "one line is too few to tell its language"
        return
    with pytest.raises(DataError, match=words):
        read(path, run)


def test_the_text_of_the_run_is_replayed_without_the_corrected_sources(run: RunDirectory) -> None:
    known = Pair(*SENTENCES[0], 1)
    text = add_general(TuningText([known]), run, [], no_translator, CollectingListener(), replay=True)
    assert len(text.replay) == 35
    assert len(text.general) == 6
    assert len(text.valid) == 6
    sources = [pair.source for pair in (*text.corrections, *text.replay, *text.general, *text.valid)]
    assert len(sources) == len({*sources})
    without = add_general(TuningText([known]), run, [], no_translator, CollectingListener(), replay=False)
    assert (without.replay, without.general) == ([], text.general)


def test_without_general_text_the_tuning_is_refused_unless_nothing_is_to_be_replayed(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = run.config()
    elsewhere = config.model_copy(update={"data": config.data.model_copy(update={"root": "nowhere"})})
    monkeypatch.setattr(RunDirectory, "config", lambda self: elsewhere)
    text = TuningText([Pair(*SENTENCES[0], 1)])
    with pytest.raises(UsageError, match="--general FILE"):
        add_general(text, run, [], no_translator, CollectingListener(), replay=True)
    alone = add_general(text, run, [], no_translator, CollectingListener(), replay=False)
    assert (alone.replay, alone.general) == ([], [])


def test_sources_alone_are_translated_by_the_model(run: RunDirectory, tmp_path: Path) -> None:
    sources, both = tmp_path / "general.de", tmp_path / "general.tsv"
    sources.write_text("".join(f"{source}\n" for source, _ in SENTENCES[:20]), encoding="utf-8")
    target = tmp_path / "general.en"
    target.write_text("".join(f"{target}\n" for _, target in SENTENCES[:20]), encoding="utf-8")
    write(both, SENTENCES[:20])
    made = add_general(TuningText([]), run, [sources], Shouting, CollectingListener(), replay=True)
    assert made.own
    assert len(made.replay) == 10
    assert {(pair.source, pair.target) for pair in made.general} < {(text, text.upper()) for text, _ in SENTENCES}
    for files in ([both], [sources, target]):
        found = add_general(TuningText([]), run, files, no_translator, CollectingListener(), replay=True)
        assert not found.own
        assert {(pair.source, pair.target) for pair in found.replay} < {*SENTENCES}
        assert len(found.general) == 5


def test_the_written_parts_are_the_data_of_a_configuration(run: RunDirectory, tmp_path: Path) -> None:
    config = run.config()
    text = TuningText(
        [Pair('der "Hund"', 'the "dog"', 1)], [Pair("die Katze", "the cat", 1)], general=[Pair("ein", "a", 1)]
    )
    write_text(tmp_path / "text", text)
    data = data_of(tmp_path / "text", config)
    assert (data["more"], data["test"]) == ([], GENERAL)
    assert read_text(tmp_path / "text", config.data) == (text, text.summary())
