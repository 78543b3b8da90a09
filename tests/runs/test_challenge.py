"""`doctor RUN --challenge` translates made-up inputs, which are the same at each call."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus, write_split

from bitext.defects import letters_of
from bitext.pairs import Pair
from manyheads.cli.main import run as run_program
from manyheads.config.load import with_overrides
from manyheads.evaluation.challenge import _count
from manyheads.inference.translation.translator import Translator
from manyheads.runs.challenge import Challenge, _inside_cases, _text_words, challenge_groups, challenge_run
from manyheads.runs.train import train
from manyheads.text.tokenizer import Tokenizer

LONG = [("Der alte Hund läuft heute gern.", "The old dog likes to run today."),
        ("Eine junge Katze schläft dort lange.", "A young cat sleeps there long."),
        ("Das kleine Kind singt oft leise.", "The small child often sings quietly.")]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("challenge")
    corpus = write_corpus(folder / "text")
    write_split(corpus, "valid", LONG)
    train(make_config(corpus, data={"max_ratio": 9.0}), folder / "run")
    return folder / "run"


def tokenizer_of(run: Path) -> Tokenizer:
    return Translator.load(run).tokenizers.source


@pytest.fixture(scope="module")
def result(run: Path) -> Challenge:
    return challenge_run(run, words=7, lines=8)


def test_every_kind_of_input_is_translated_and_judged(result: Challenge) -> None:
    names = [group.name for group, _ in result.results]
    assert names == [
        "single words", "capitals", "no end mark", "two sentences", "numbers", "URLs", "emoji", "placeholders",
        "tags", "texts inside of sentences", "empty-looking lines", "other scripts",
    ]  # fmt: skip
    for group, figures in result.results:
        assert group.cases
        assert figures
        assert all(figure.verdict for figure in figures)
    assert result.exit_code == 1, "twelve updates are too few"


def test_a_run_is_not_told_to_switch_on_what_is_on(result: Challenge) -> None:
    names = [group.name for group, _ in result.results]
    advised = re.findall(r"\S+ = [^,\s]*[^,.\s]", result.cure(names))
    assert {"search.copy_literals = true", "search.lower_capitals = true", "data.augment = 0.5"} <= {*advised}
    config = with_overrides(result.config, advised)
    assert "are on already" in replace(result, config=config).cure(names)


def test_two_calls_give_the_same_figures(run: Path, result: Challenge) -> None:
    assert challenge_run(run, words=7, lines=8).results == result.results


def test_single_words_are_from_the_training_text_and_are_no_lines_of_it(run: Path) -> None:
    translator = Translator.load(run)
    groups = challenge_groups(translator.config, tokenizer_of(run), words=50, lines=4)
    words = [case.source for case in groups[0].cases]
    text = (run.parent / "text" / "train.de").read_text(encoding="utf-8")
    lines = {letters_of(line) for line in text.splitlines()}
    assert len(words) > 5
    assert all(word in text.split() and letters_of(word) not in lines for word in words)


def test_each_sentence_is_changed_once_however_often_the_text_has_it(run: Path, tmp_path: Path) -> None:
    """As in the validation text of a tuning, which repeats its few corrections."""
    shutil.copytree(run.parent / "text", tmp_path / "text")
    write_split(tmp_path / "text", "valid", [*LONG, *LONG[:1] * 40])
    config = with_overrides(Translator.load(run).config, [f"data.root={tmp_path / 'text'}"])
    groups = challenge_groups(config, tokenizer_of(run), words=4, lines=20)
    capitals = next(group for group in groups if group.name == "capitals")
    assert sorted(case.usual for case in capitals.cases if case.usual) == sorted(german for german, _ in LONG)


def test_without_the_text_words_are_from_the_vocabulary_and_other_groups_are_not_measured(
    run: Path, tmp_path: Path
) -> None:
    copied = Path(shutil.copytree(run, tmp_path / "run"))
    found = challenge_run(copied, overrides=[f"data.root={tmp_path}"], words=5, lines=4)
    groups = {group.name: group for group, _ in found.results}
    assert groups["single words"].note == "pieces of the vocabulary"
    assert groups["capitals"].cases == []
    assert "not on this machine" in groups["capitals"].note
    assert len(groups["URLs"].cases) == 4
    assert any("capitals: not measured" in line for line in found.lines())


def test_settings_of_the_search_can_be_overridden(run: Path, result: Challenge) -> None:
    short = challenge_run(
        run, overrides=["search.max_length_offset=1", "search.max_length_ratio=0.1"], words=7, lines=8
    )
    (figure, *_) = short.results[0][1]
    assert figure.value < result.results[0][1][0].value


def test_the_challenge_command_prints_lines_or_one_json_document(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_program(["doctor", str(run), "--challenge"]) == 1
    assert "verdict: not good with single words" in capsys.readouterr().out
    assert run_program(["doctor", str(run), "--challenge", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert {"name", "value", "limit", "good", "verdict", "examples"} == set(document["groups"][0]["figures"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--challenge translates with a trained run"),
        (["multi30k-de-en"], "--challenge translates with a trained run"),
        (["RUN", "--format", "sarif"], "--format sarif is not for --challenge"),
        (["RUN", "--pad", "0"], "--pad"),
    ],
)
def test_a_challenge_without_a_run_or_with_unsupported_options_is_refused(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [str(run) if argument == "RUN" else argument for argument in arguments]
    assert run_program(["doctor", *named, "--challenge"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error


def test_a_word_that_is_a_whole_line_or_occurs_once_is_no_input() -> None:
    lines = ["Der Hund läuft gern", "Ein Hund läuft", "Hund!", "Wir gehen"]
    assert _text_words([Pair(line, "x", 1) for line in lines]) == ["läuft"]


@pytest.mark.parametrize(("language", "distinct"), [("de", 200), ("eng_Latn", 200), ("ko", 70)])
def test_200_sentences_have_texts_inside_that_every_translation_keeps(language: str, distinct: int) -> None:
    cases = _inside_cases(language, ["오늘은 날씨가 아주 좋습니다.", "나는 집에 간다."])
    assert len(cases) == 200
    assert len({case.source for case in cases}) >= distinct
    assert all(case.kept and _count(text, case.source) == 1 for case in cases for text in case.kept)
    assert len({case.kind for case in cases[:10]}) == 10, "every ten lines have all kinds"
    assert not any(
        "_" in case.source.replace("_", "", sum(text.count("_") for text in case.kept)) for case in cases
    )


@pytest.mark.parametrize(
    ("kind", "source"), [("prices", "나는 오늘 45 집에 간다."), ("tags", "나는 오늘 <b>집에</b> 간다.")]
)
def test_without_sentences_in_a_language_texts_are_put_into_those_of_the_validation_text(
    kind: str, source: str
) -> None:
    cases = _inside_cases("ko", ["나는 오늘 집에 간다."])
    assert source in [case.source for case in cases if case.kind == kind]


def test_without_any_sentence_the_texts_stand_alone() -> None:
    assert _inside_cases("ko", [])[0].source == "45"
