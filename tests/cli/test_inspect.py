"""`inspect` and `curves` with a real model: printed, written, refused."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.runs.labelled import labelled_config, write_labelled, write_unlabelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import make_config, metrics, write_corpus
from tests.stdin import set_stdin
from tests.tasks.masked_lm.test_scoring import masked_config
from tests.tolerances import printed
from tests.training.parts import CollectingListener

import manyheads
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.cli.main import run
from manyheads.runs.train import train
from manyheads.views.documents import Inspection, TranslationInspection

GOLDEN = Path(__file__).parent.parent / "golden/format-1/run"
SENTENCE = "der Hund läuft"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Train a run of each task for some updates, and return their directories by task."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "plain").mkdir()
    configs = {
        "masked-lm": masked_config(write_unlabelled(folder / "plain", 40), training={"steps": 4}),
        "translation": make_config(write_corpus(folder / "pairs")),
        "classification": labelled_config(write_labelled(folder / "labelled"), training={"steps": 4}),
        "language-modeling": make_language_config(write_play(folder / "play"), training={"steps": 4}),
    }
    for name, config in configs.items():
        train(config, folder / name, listener=CollectingListener())
    return {name: folder / name for name in configs}


def test_inspect_prints_token_probabilities_without_escape_codes(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    printed = call("inspect", GOLDEN, SENTENCE)
    assert printed.out.startswith("Probability of each token\n")
    assert "\x1b" not in printed.out + printed.err
    assert "</s>" in printed.out


def test_json_equals_the_object_of_the_python_api(call: Call) -> None:
    printed = json.loads(call("inspect", GOLDEN, SENTENCE, "--json").out)
    found = manyheads.inspect(GOLDEN, SENTENCE)
    assert isinstance(found, TranslationInspection)
    assert printed == found.to_dict()
    assert isinstance(Inspection.from_dict(printed), TranslationInspection)
    assert printed["run"] == "run"


@pytest.mark.parametrize(("view", "suffix"), [("attention", ".svg"), ("beam", ".svg"), ("occlusion", ".csv")])
def test_a_view_is_written_to_a_file(view: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"out{suffix}"
    assert run(["-q", "inspect", str(GOLDEN), SENTENCE, "--view", view, "-o", str(path)]) == 0
    assert len(path.read_text(encoding="utf-8")) > 50


def test_a_kind_a_layer_and_a_head_are_chosen(call: Call) -> None:
    words = ["--view", "attention", "--kind", "encoder", "--layer", "0", "--head", "1"]
    printed = call("inspect", GOLDEN, SENTENCE, *words).out
    assert printed.startswith("Encoder self-attention, layer 0, head 1\n")


def test_a_picture_has_the_requested_width(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    assert run(["-q", "curves", str(GOLDEN), "--view", "loss", "--width", "77", "-o", str(path)]) == 0
    assert 'width="77mm"' in path.read_text(encoding="utf-8")
    command = ["-q", "inspect", str(GOLDEN), SENTENCE, "--view", "heads", "--width", "160", "-o", str(path)]
    assert run(command) == 0
    assert 'width="160mm"' in path.read_text(encoding="utf-8")


def test_a_picture_has_the_requested_language(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "out.svg"
    inspected = ["-q", "inspect", str(GOLDEN), SENTENCE, "--view", "attention"]
    for command, words in ((inspected, "크로스 어텐션"), (["-q", "curves", str(GOLDEN)], "학습 스텝")):
        assert run([*command, "-o", str(path)]) == 0
        assert words not in path.read_text(encoding="utf-8")
        assert run([*command, "--lang", "ko", "-o", str(path)]) == 0
        assert words in path.read_text(encoding="utf-8")
        assert words in call(*command, "--lang", "ko").out


def test_text_too_small_for_print_is_a_warning_in_one_line(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "out.svg"
    printed = call("inspect", GOLDEN, SENTENCE, "--view", "beam", "--width", "30", "-o", path).err.splitlines()
    assert printed[0].startswith("warning: the smallest text is")
    assert printed[1:] == [f"wrote {path}"]


def test_inspect_without_a_text_shows_the_model(call: Call) -> None:
    found = json.loads(call("inspect", GOLDEN, "--view", "learning-rate", "--json").out)
    assert (found["kind"], found["model"]["task"]) == ("model", "translation")
    assert (
        found["learning_rate"]["total_steps"]
        == json.loads((GOLDEN / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[0])["total_steps"]
    )


def test_a_text_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    set_stdin(monkeypatch, f"{SENTENCE}\n".encode())
    found = json.loads(call("inspect", GOLDEN, "-", "--json", "--no-occlusion", "--beam", "2").out)
    assert (found["source"]["text"], found["occlusion"], found["beam"]["beam_size"]) == (SENTENCE, None, 2)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["inspect", str(GOLDEN), ""], 2, "the sentence is empty"),
        (["inspect", str(GOLDEN), "Hund", "--view", "heat"], 2, 'no view "heat"'),
        (["inspect", str(GOLDEN), "Hund", "--kind", "self"], 2, "'self' is not one of 'encoder', 'decoder'"),
        (["inspect", str(GOLDEN), "Hund", "--head", "-1"], 2, "--head -1"),
        (["inspect", str(GOLDEN), "Hund", "-o", "x.gif"], 2, "must end in one of .html, .svg"),
        (["inspect", str(GOLDEN), "Hund", "--view", "beam", "-o", "x.html"], 2, "Leave out --view beam, or write"),
        (["curves", str(GOLDEN), "-o", "x.html"], 2, "Write FILE.svg, or the page of one run with its curves"),
        (
            ["inspect", str(GOLDEN), "Hund", "-o", "/nowhere/at/all/x.svg"],
            2,
            "there is no folder /nowhere/at/all",
        ),
        (["inspect", str(GOLDEN), "Hund", "-o", "x.svg", "--json"], 2, "give one of them"),
        (["inspect", "/nowhere", "Hund"], 3, "not a directory"),
        (["curves", "/nowhere"], 3, "not a directory"),
        (["curves", str(GOLDEN), "--view", "heat"], 2, 'no view "heat"'),
        (["curves"], 2, "Missing argument"),
        (["curves", str(GOLDEN), "--width", "77"], 2, "--width 77 is the width of a picture"),
        (["inspect", str(GOLDEN), "Hund", "--width", "77", "-o", "x.html"], 2, "FILE.svg or FILE.png"),
        (["inspect", str(GOLDEN), "Hund", "--width", "5", "-o", "x.svg"], 2, "--width"),
        (["inspect", str(GOLDEN), "Hund", "--lang", "fr", "-o", "x.svg"], 2, "--lang"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    arguments: list[str], code: int, message: str, call: Call
) -> None:
    printed = call(*arguments, code=code).err
    assert message in printed
    assert len(printed.strip().split("\n")) == 1


def test_a_masked_language_model_is_refused(trained: dict[str, Path], call: Call) -> None:
    err = call("inspect", trained["masked-lm"], "text", code=3).err
    assert 'task = "masked-lm", and cannot be inspected by itself' in err
    assert run(["curves", str(trained["masked-lm"]), "--view", "attention-entropy"]) == 0


@pytest.mark.parametrize(
    ("task", "text", "first"),
    [
        ("classification", "a great film", "Probability of each class"),
        ("language-modeling", "ANNA", "Probability of each token"),
    ],
)
def test_runs_of_other_tasks_are_inspected(
    trained: dict[str, Path], task: str, text: str, first: str, call: Call, tmp_path: Path
) -> None:
    assert call("inspect", trained[task], text).out.startswith(first)
    assert run(["-q", "inspect", str(trained[task]), text, "-o", str(tmp_path / "x.html")]) == 0
    err = call("inspect", trained[task], text, "--padding", "2", code=2).err
    assert f'padding has no meaning for a run of task = "{task}"' in err
    assert run(["inspect", str(trained[task]), "--view", "tensors"]) == 0


def test_validation_records_entropies_and_the_same_samples_each_time(trained: dict[str, Path]) -> None:
    kinds = {"translation": ["encoder", "decoder", "cross"], "classification": ["encoder"],
             "language-modeling": ["decoder"], "masked-lm": ["encoder"]}  # fmt: skip
    for task, path in trained.items():
        records = [record for record in metrics(path) if record["kind"] == "validation"]
        assert records
        for record in records:
            assert list(record["attention_entropy"]) == kinds[task]
            for layers in record["attention_entropy"].values():
                assert [len(heads) for heads in layers] == [2]
                assert all(value > 0 for heads in layers for value in heads)
    samples = [record["samples"] for record in metrics(trained["translation"]) if record["kind"] == "validation"]
    assert [[sample[0] for sample in rows] for rows in samples] == [[sample[0] for sample in samples[0]]] * 3
    assert len(samples[0]) == 3


def test_recorded_entropies_are_those_of_the_weights(trained: dict[str, Path]) -> None:
    """Compare the record of the last validation with the last checkpoint, which holds the same weights."""
    path = trained["translation"]
    directory = TrainingRun(path)
    config = directory.config()
    translator = manyheads.Translator.load(path)
    from manyheads.inference.inspect_options import InspectOptions
    from manyheads.inspection.translation import inspect_translation
    from manyheads.tensors.weights import load_weights

    load_weights(translator.model, directory.checkpoints.weights(12), "step 12")
    root = Path(config.data.root)
    pairs = [(root / f"valid.{side}").read_text(encoding="utf-8").split("\n")[:-1] for side in ("de", "en")]
    found = [
        inspect_translation(translator, source, InspectOptions(target=target, occlusion=False)).attention[2].entropy
        for source, target in zip(*pairs, strict=True)
    ]
    (record,) = [record for record in metrics(path) if record["kind"] == "validation" and record["step"] == 12]
    expected = sum(found) / len(found)
    for own, wanted in zip(record["attention_entropy"]["cross"], expected.tolist(), strict=True):
        assert own == printed(wanted, 4)


def test_curves_of_two_runs_are_printed_and_written(trained: dict[str, Path], call: Call, tmp_path: Path) -> None:
    both = [str(trained["translation"]), str(GOLDEN)]
    printed = call("curves", *both).out
    assert "translation: training loss, last" in printed
    assert "run: validation loss" in printed
    document = json.loads(call("curves", *both, "--json").out)
    assert [run_document["name"] for run_document in document["runs"]] == ["translation", "run"]
    for suffix in (".svg", ".csv", ".json"):
        assert run(["-q", "curves", *both, "-o", str(tmp_path / f"x{suffix}")]) == 0
    assert "layer 0 head 1" in call("curves", both[0], "--view", "attention-entropy").out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_run_whose_name_is_not_utf_8_is_read_by_every_verb(tmp_path: Path, call: Call) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xe9"))
    shutil.copytree(GOLDEN, folder)
    call("evaluate", folder, "--source-file", GOLDEN.with_name("corpus") / "test.de",
         "--reference-file", GOLDEN.with_name("corpus") / "test.en")  # fmt: skip
    call("inspect", folder, SENTENCE, "-o", tmp_path / "page.html")
    call("export", folder, "--to", "html", "-o", tmp_path / "model.html")
    call("export", folder, "--to", "ctranslate2", "-o", tmp_path / "exported")


def test_a_run_with_the_longest_name_is_exported_as_a_page(tmp_path: Path, call: Call) -> None:
    shutil.copytree(GOLDEN, tmp_path / ("r" * 255))
    call("export", tmp_path / ("r" * 255), "--to", "html", "-o", tmp_path / "model.html")
    assert (tmp_path / "model.html").is_file()
