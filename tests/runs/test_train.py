"""Training into a run directory, and resuming it bit-identically."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import os
import pkgutil
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.test_directory import no_space
from tests.runs.parts import (
    SENTENCES,
    Interrupting,
    make_config,
    metrics,
    refuse_constant,
    write_corpus,
    write_split,
)
from tests.training.parts import CollectingListener, validation_report

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.checkpoints import Checkpoints, TrainingRun
from manyheads.config.schema import Config
from manyheads.data.store import TextStore, TokenStore
from manyheads.data.training_text import with_normal_form
from manyheads.errors import DataError, RunError, SaveError
from manyheads.inference.translation.translator import Translator
from manyheads.reports import StepReport, ValidationReport
from manyheads.runs.listeners import _RecordingListener
from manyheads.runs.train import TrainingSummary, train
from manyheads.tensors.weights import average_tensors, load_weights
from manyheads.text.normalize import NORMAL_FORM

translation = importlib.import_module("manyheads.tasks.translation.task")
module = importlib.import_module("manyheads.runs.train")  # the package has a function of that name


LAST = Path("checkpoints", "step-12")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run, which tests only read."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(full_config(corpus), out)
    return out


def full_config(corpus: Path, **training: Any) -> Config:
    """Return a configuration with dropout, subword sampling, accumulation, patience and averaged checkpoints."""
    return make_config(
        corpus,
        tokenizer={"sampling": 0.2},
        model={"dropout": 0.3},
        training={"accumulation": 2, "patience": 50, "average_checkpoints": 2} | training,
    )


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished run."""
    return Path(shutil.copytree(finished, tmp_path / "copied"))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same_run(found: Path, expected: Path) -> None:
    """Assert that weights, moments, state and losses are equal bit for bit, except for times."""
    assert metrics(found) == metrics(expected)
    for name in ("model.safetensors", "README.md"):
        assert (found / name).read_bytes() == (expected / name).read_bytes()
    one, other = TrainingRun(found), TrainingRun(expected)
    assert one.checkpoints.steps() == other.checkpoints.steps()
    for step in one.checkpoints.steps():
        left, right = one.checkpoints.read(step), other.checkpoints.read(step)
        for first, second in ((left.model, right.model), (left.optimizer, right.optimizer)):
            assert first.keys() == second.keys()
            assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
        for state in (left.state, right.state):
            assert state["progress"].pop("seconds") > 0
            assert state["progress"].pop("recent_seconds") > 0
            assert state["window"].pop("seconds") >= 0
        assert left.state == right.state


# --- a run ---


def test_a_run_directory_holds_all_files_of_the_model(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert names >= {
        "config.json", "environment.json", "metrics.jsonl", "model.safetensors",
        "tokenizer.source.model", "tokenizer.target.model", "checkpoints", "README.md",
    }  # fmt: skip
    assert sorted(path.name for path in (finished / "checkpoints").iterdir()) == ["step-12", "step-8"]
    assert not [path for path in finished.rglob("*") if "draft" in path.name]
    environment = json.loads((finished / "environment.json").read_text(encoding="utf-8"))
    assert environment.keys() >= {"manyheads", "python", "torch", "platform", "threads", "corpus_sha256", "corpus"}
    assert environment["corpus"]["read"] == 36


def test_the_log_holds_the_steps_and_validations(finished: Path) -> None:
    found = [(record["kind"], record["step"]) for record in metrics(finished)]
    assert [step for kind, step in found if kind == "step"] == [3, 6, 9, 12]
    assert [step for kind, step in found if kind == "validation"] == [4, 8, 12]
    for record in metrics(finished):
        if record["kind"] == "validation":
            assert record["perplexity"] == pytest.approx(math.exp(record["loss"]))
            assert 0 <= record["bleu"] <= 100
            assert (record["sample"][0], record["sample"][1]) in SENTENCES


def test_another_seed_gives_another_run(corpus: Path, finished: Path, tmp_path: Path) -> None:
    train(full_config(corpus, seed=2), tmp_path / "other")
    assert metrics(tmp_path / "other") != metrics(finished)


def test_training_lowers_the_loss(corpus: Path, tmp_path: Path, training_seed: int) -> None:
    listener = CollectingListener()
    config = make_config(corpus, training={"steps": 60, "save_every": 30, "seed": training_seed})
    train(config, tmp_path / "run", listener=listener)
    assert listener.validations[-1].loss < 0.9 * listener.validations[0].loss
    assert listener.steps[-1].nll < 0.7 * listener.steps[0].nll


@pytest.mark.parametrize(
    ("kind", "joint"), [("words", False), ("characters", True), ("bytes", False), ("unigram", True)]
)
def test_every_kind_of_tokenizer_trains_and_translates(
    corpus: Path, tmp_path: Path, kind: str, joint: bool
) -> None:
    if kind == "words":
        pytest.importorskip("spacy")
    config = make_config(
        corpus,
        tokenizer={"kind": kind, "joint": joint, "vocab_size": 45 if joint else 34},
        model={"tied_embeddings": "decoder"},
        training={"steps": 1, "valid_sentences": 0},
    )
    train(config, tmp_path / "run")
    (found,) = Translator.load(tmp_path / "run").translate(["der Hund läuft"])
    assert len(found.hypotheses) == 1


def script_losses(monkeypatch: pytest.MonkeyPatch, losses: dict[int, float]) -> None:
    """Make validation report the given losses by step."""

    class Scripted:
        def __init__(self, *_: object) -> None:
            pass

        def __call__(self, step: int) -> ValidationReport:
            return validation_report(step, losses[step], 1.0, 1.0)

    monkeypatch.setattr(translation, "Validation", Scripted)


def test_the_published_weights_are_the_best_and_not_the_last(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_losses(monkeypatch, {4: 2.0, 8: 1.0, 12: 1.5})
    found = train(make_config(corpus), tmp_path / "run")
    run = TrainingRun(tmp_path / "run")
    published = load_file(run.path / "model.safetensors")
    assert all(torch.equal(tensor, published[name]) for name, tensor in run.checkpoints.weights(8).items())
    assert not all(torch.equal(tensor, published[name]) for name, tensor in run.checkpoints.weights(12).items())
    expected = TrainingSummary(tmp_path / "run", 12, found.seconds, "loss", 1.0, 8, False)
    assert found == expected
    assert found.seconds > 0


@pytest.mark.parametrize(("mean", "kept"), [(0.5, True), (1.9, False)])
def test_the_mean_of_the_last_checkpoints_is_published_if_it_is_better(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean: float, kept: bool
) -> None:
    losses = iter([2.0, 1.0, 1.5, mean])
    script_losses(monkeypatch, {})
    monkeypatch.setattr(
        translation.Validation, "__call__", lambda self, step: validation_report(step, next(losses))
    )
    listener = CollectingListener()
    config = make_config(corpus, training={"average_checkpoints": 3})
    found = train(config, tmp_path / "run", listener=listener)
    run = TrainingRun(tmp_path / "run")
    assert run.checkpoints.steps() == [4, 8, 12]
    expected = (
        average_tensors([run.checkpoints.weights(step) for step in run.checkpoints.steps()])
        if kept
        else run.checkpoints.weights(8)
    )
    published = load_file(run.path / "model.safetensors")
    assert all(torch.equal(tensor, published[name]) for name, tensor in expected.items())
    assert found.best == (mean if kept else 1.0)
    verdict = "(better, kept)" if kept else "(not better, left)"
    assert listener.messages[-1].startswith("mean of the last 3 checkpoints")
    assert listener.messages[-1].endswith(verdict)


def test_pairs_that_are_too_long_are_left_out_and_counted(corpus: Path, tmp_path: Path) -> None:
    listener = CollectingListener()
    config = make_config(corpus, data={"max_length": 12}, tokenizer={"vocab_size": 45}, training={"steps": 1})
    train(config, tmp_path / "run", listener=listener)
    (read,) = [text for text in listener.messages if "pairs read" in text]
    (message,) = [text for text in listener.messages if "data.max_length" in text]
    counts = re.search(r"(\d+) of the (\d+) pairs kept .* = 12 tokens .* left out: (\d+) to train on", message)
    too_long, kept, left = map(int, counts.groups())
    assert f"36 pairs read, {kept} kept" in read
    assert 0 < too_long == kept - left


def test_defects_of_the_training_text_are_named_once_with_the_way_to_their_cure(
    corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(corpus, tmp_path / "text")
    for path in (tmp_path / "text").glob("train.*"):
        path.write_text("".join(f"Pu@@ der {line}\n" for line in path.read_text("utf-8").splitlines()), "utf-8")
    config = make_config(tmp_path / "text", training={"steps": 1})
    warnings = []
    for _ in range(2):
        listener = CollectingListener()
        train(config, tmp_path / "run", listener=listener)
        warnings.append([text for text in listener.messages if text.startswith("warning: train, ")])
    (source, target), again = warnings
    assert not again
    assert source.startswith(
        "warning: train, source: 36 of 36 (100 %) lines hold marks of subword pieces; line 1: "
    )
    assert target.endswith("Cure: manyheads doctor --explain subword-pieces")


# --- resuming ---


def test_a_second_call_does_not_train_a_finished_run(corpus: Path, copied: Path) -> None:
    before, listener = files(copied), CollectingListener()
    found = train(full_config(corpus), copied, listener=listener)
    assert (found.step, listener.steps, listener.validations) == (12, [], [])
    assert files(copied) == before
    assert "resuming after step 12" in listener.messages


INTERRUPTIONS = {
    "at the validation of a checkpoint": [{"validation": 4}],
    "twice": [{"step": 6}, {"step": 9}],
    "again and again before the first checkpoint": [{"step": 3}, {"step": 3}, {"step": 4}],
    "at the end": [{"step": 12}],
}


@pytest.mark.parametrize("moments", INTERRUPTIONS.values(), ids=INTERRUPTIONS.keys())
def test_an_interrupted_run_ends_like_an_uninterrupted_run(
    corpus: Path, finished: Path, tmp_path: Path, moments: list[dict[str, int]]
) -> None:
    """Invariant J, with dropout, subword sampling and accumulation: the same files, bit for bit."""
    out = tmp_path / "run"
    for moment in moments:
        with pytest.raises(KeyboardInterrupt):
            train(full_config(corpus), out, listener=Interrupting(**moment))
        torch.manual_seed(123)
    train(full_config(corpus), out)
    assert_same_run(out, finished)


class Kill(BaseException):
    """An exception that no code of manyheads catches."""


def kill_at(monkeypatch: pytest.MonkeyPatch, path: str, call: int, *, after: bool) -> None:
    """Raise `Kill` at the n-th call of a function, before or after its work."""
    original, calls = pkgutil.resolve_name(path), 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            raise Kill
        result = original(*arguments, **options)
        if calls == call:
            raise Kill
        return result

    monkeypatch.setattr(path, counted)


@pytest.mark.parametrize(
    ("path", "call", "after"),
    [
        ("manyheads.tasks.translation.task.tokenise", 1, True),
        ("manyheads.tensors.models.EncoderDecoder", 1, True),
        # of two tokenizers, the language profiles, the environment and the configuration, the last is missing
        ("manyheads.checkpoint.directory.write_atomically", 4, True),
        # the best weights and the checkpoint that records them are two files: neither may be lost
        ("manyheads.checkpoint.RunDirectory.publish", 1, True),
        ("manyheads.checkpoint.RunDirectory.publish", 3, False),
        ("manyheads.checkpoint.checkpoints.Checkpoints.save", 1, False),
        ("manyheads.checkpoint.checkpoints.Checkpoints.save", 3, True),
    ],
)
def test_a_run_killed_while_it_prepares_or_saves_ends_like_an_uninterrupted_run(
    corpus: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, call: int, after: bool
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        kill_at(patch, path, call, after=after)
        with pytest.raises(Kill):
            train(full_config(corpus), out)
    train(full_config(corpus), out)
    assert_same_run(out, finished)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a clock that advances by 10 ms at each reading, independently of the load of the machine."""
    readings = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: 0.01 * next(readings))
    names = ["training.trainer", "training.time_limit", "tasks.translation.scoring", "runs.train"]
    for name in (f"manyheads.{name}" for name in names):
        monkeypatch.setattr(importlib.import_module(name), "time", clock)


@pytest.mark.usefixtures("ticking")
@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_training_with_a_time_limit_uses_it_even_if_interrupted(
    corpus: Path, tmp_path: Path, interrupted: bool
) -> None:
    limited = {"steps": 10_000, "max_minutes": 0.1, "warmup_steps": 20, "schedule": "linear", "save_every": 10}
    config, out = full_config(corpus, **limited), tmp_path / "run"
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            train(config, out, listener=Interrupting(validation=20))
    listener = CollectingListener()
    summary = train(config, out, listener=listener)
    assert summary.used is not None
    assert 0.9 * 6 < summary.used < 1.05 * 6
    last = listener.steps[-1]
    assert last.step == last.total_steps == summary.step
    assert listener.validations[-1].step == summary.step


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="Windows has none")
def test_a_requested_checkpoint_does_not_change_the_finished_run(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    """The requested checkpoint replaces none of those that are averaged."""

    class SaveRequester(CollectingListener):
        def step(self, report: StepReport) -> None:
            super().step(report)
            seen.append(run.checkpoints.steps())
            if report.step == 9:
                signal.raise_signal(signal.SIGUSR1)

    run, seen = TrainingRun(tmp_path / "run"), list[list[int]]()
    train(full_config(corpus), run.path, listener=SaveRequester())
    assert seen == [[], [4], [4, 8], [8, 9]]
    assert_same_run(run.path, finished)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_each_validation_decodes_with_the_weights_of_its_step(corpus: Path, tmp_path: Path, optimizer: str) -> None:
    """Weights are packed for decoding again when they have changed, although fused optimizers do not signal it."""
    training = {"optimizer": optimizer, "steps": 24, "save_every": 8, "average_checkpoints": 3}
    train(make_config(corpus, training=training), tmp_path / "run")
    translator, run = Translator.load(tmp_path / "run", device="cpu"), TrainingRun(tmp_path / "run")
    logged = {record["step"]: record["samples"] for record in metrics(run.path) if record["kind"] == "validation"}
    for step in (8, 16, 24):
        load_weights(translator.model, run.checkpoints.weights(step), "the checkpoint")
        outputs = translator.translate([source for source, _, _ in logged[step]], beam_size=1)
        assert [translation.translation for translation in outputs] == [output for _, _, output in logged[step]], (
            step
        )
    assert len({str(samples) for samples in logged.values()}) > 1, "the outputs change"


def test_a_full_disk_ends_training_and_the_same_call_resumes(
    corpus: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        original = Checkpoints.save

        def fill_the_disk(checkpoints: Checkpoints, *arguments: Any, **options: Any) -> None:
            original(checkpoints, *arguments, **options)
            patch.setattr(os, "fsync", no_space)

        patch.setattr(Checkpoints, "save", fill_the_disk)
        with pytest.raises(SaveError, match="No space left on device"):
            train(full_config(corpus), out)
    assert TrainingRun(out).checkpoints.steps() == [4]
    train(full_config(corpus), out)
    assert_same_run(out, finished)


@pytest.mark.parametrize(("store", "what"), [(TextStore, "the text"), (TokenStore, "the token ids")])
def test_a_disk_that_is_full_when_text_is_stored_is_named(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: type, what: str
) -> None:
    monkeypatch.setattr(store, "build", no_space)
    with pytest.raises(SaveError, match=rf"{what} could not be written .*No space left"):
        train(make_config(corpus), tmp_path / "run")


def make_nan(run: Path, part: str) -> None:
    """Save the last checkpoint again, with NaN in its weights or moments."""
    checkpoints = TrainingRun(run).checkpoints
    checkpoint = checkpoints.read(12)
    tensors = getattr(checkpoint, part).values()
    next(tensor for tensor in tensors if tensor.is_floating_point() and tensor.ndim)[0] = math.nan
    checkpoints.save(checkpoint, keep=2)


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("model.safetensors", lambda run: os.truncate(run / LAST / "model.safetensors", 300)),
    ("optimizer.safetensors", lambda run: (run / LAST / "optimizer.safetensors").unlink()),
    ("state.json", lambda run: os.truncate(run / LAST / "state.json", 300)),
    ("model.safetensors", lambda run: make_nan(run, "model")),
    ("optimizer.safetensors", lambda run: make_nan(run, "optimizer")),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_a_damaged_checkpoint_is_named_and_training_resumes_from_the_previous_one(
    corpus: Path, finished: Path, copied: Path, name: str, damage: Callable[[Path], object]
) -> None:
    damage(copied)
    listener = CollectingListener()
    train(full_config(corpus), copied, listener=listener)
    (warning,) = [text for text in listener.messages if text.startswith("warning")]
    assert str(copied / LAST / name) in warning
    assert "resuming after step 8" in listener.messages
    assert_same_run(copied, finished)


@pytest.mark.parametrize("name", ["text/target.values", "train/rows"])
def test_a_cache_that_was_changed_between_runs_is_made_again(
    corpus: Path, finished: Path, copied: Path, name: str
) -> None:
    path = copied / "cache" / name
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    shutil.rmtree(copied / LAST)
    train(full_config(corpus), copied)
    assert_same_run(copied, finished)
    assert path.read_bytes() == content


def test_training_does_not_start_again_when_no_checkpoint_can_be_used(corpus: Path, copied: Path) -> None:
    for step in (8, 12):
        (copied / "checkpoints" / f"step-{step}" / "model.safetensors").write_bytes(b"")
    before = files(copied)
    with pytest.raises(RunError, match=r"no checkpoint in .* can be used"):
        train(full_config(corpus), copied)
    assert files(copied) == before


# --- another configuration, another corpus ---


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("data", "max_length", 99),
        ("tokenizer", "sampling", 0.1),
        ("model", "dropout", 0.2),
        ("training", "seed", 3),
        ("training", "learning_rate", 0.5),
        ("training", "betas", (0.9, 0.99)),
    ],
)
def test_another_configuration_is_refused_by_the_name_of_the_setting(
    corpus: Path, copied: Path, section: str, key: str, value: Any
) -> None:
    before = files(copied)
    config = full_config(corpus)
    other = config.model_copy(update={section: getattr(config, section).model_copy(update={key: value})})
    with pytest.raises(RunError, match="another configuration") as caught:
        train(other, copied)
    then, now = (
        list(setting) if isinstance(setting, tuple) else setting
        for setting in (getattr(getattr(config, section), key), value)
    )
    assert f"{section}.{key}: {then!r} then, {now!r} now" in str(caught.value)
    assert str(caught.value).count(" then, ") == 1
    assert "--force" in str(caught.value)
    assert files(copied) == before


def test_settings_that_do_not_change_the_training_may_differ(corpus: Path, copied: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(corpus, tmp_path / "moved"))
    config = full_config(moved, log_every=1, save_every=2)
    config = config.model_copy(update={"search": config.search.model_copy(update={"beam_size": 7})})
    assert train(config, copied).step == 12


@pytest.mark.parametrize("split", ["train", "valid"])
def test_another_corpus_is_refused_unless_forced(finished: Path, copied: Path, tmp_path: Path, split: str) -> None:
    other = write_corpus(tmp_path / "other")
    pairs = [("der Hund lacht sehr", "the dog laughs a lot"), *SENTENCES[:7]]
    write_split(other, split, pairs)
    with pytest.raises(RunError, match="the corpus has changed"):
        train(full_config(other), copied)
    assert (copied / "environment.json").read_bytes() == (finished / "environment.json").read_bytes()
    assert train(full_config(other, steps=14), copied, force=True).step == 14
    assert train(full_config(other, steps=14), copied).step == 14, "it is its corpus now"


def test_a_run_resumes_with_another_plan_by_force_and_keeps_it(corpus: Path, copied: Path) -> None:
    listener = CollectingListener()
    found = train(full_config(corpus, steps=15), copied, listener=listener, force=True)
    assert found.step == 15
    assert [report.step for report in listener.steps] == [15]
    assert RunDirectory(copied).config() == with_normal_form(full_config(corpus, steps=15), NORMAL_FORM)
    assert train(full_config(corpus, steps=15), copied).step == 15


def test_a_run_with_a_forced_plan_gets_a_new_card(corpus: Path, finished: Path, copied: Path) -> None:
    """A kill before the new card is written must not leave the card of the old plan."""
    config = full_config(corpus, steps=15)
    with pytest.raises(KeyboardInterrupt):
        train(config, copied, listener=Interrupting(step=15), force=True)
    assert not RunDirectory(copied).described
    train(config, copied)
    assert (copied / "README.md").read_bytes() != (finished / "README.md").read_bytes()


def test_a_moving_average_added_by_force_starts_with_the_current_weights(corpus: Path, copied: Path) -> None:
    no_learning = 1e-30  # a learning rate that moves nothing
    train(full_config(corpus, steps=13, ema=0.9, learning_rate=no_learning), copied, force=True)
    run = TrainingRun(copied)
    averages = run.checkpoints.read(13).optimizer
    for name, tensor in run.checkpoints.weights(12).items():
        torch.testing.assert_close(averages[f"average.{name}"], tensor)


def test_a_model_changed_by_force_translates_as_it_was_trained(corpus: Path, copied: Path) -> None:
    """Weights that fit another activation must not be run with the old one."""
    config = full_config(corpus, steps=15)
    other = config.model_copy(update={"model": config.model.model_copy(update={"activation": "gelu"})})
    train(other, copied, force=True)
    assert Translator.load(copied).config.model.activation == "gelu"


def test_weights_that_do_not_fit_are_refused_even_by_force(corpus: Path, copied: Path) -> None:
    before = files(copied)
    config = full_config(corpus)
    other = config.model_copy(update={"model": config.model.model_copy(update={"d_ff": 24})})
    with pytest.raises(RunError, match="does not fit"):
        train(other, copied, force=True)
    assert files(copied) == before


# --- what cannot be trained ---


@pytest.mark.parametrize(
    "make", [lambda out: out.write_text("x"), lambda out: (out / "thesis").mkdir(parents=True)]
)
def test_an_output_path_with_other_files_is_refused(
    corpus: Path, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    out = tmp_path / "place"
    make(out)
    with pytest.raises(RunError, match="exists and is no run of manyheads") as caught:
        train(make_config(corpus), out)
    assert str(out) in str(caught.value)


def test_an_empty_output_folder_is_used(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert train(make_config(corpus, training={"steps": 1}), tmp_path / "empty").step == 1


@pytest.mark.parametrize(("split", "pairs"), [("train", []), ("valid", [("", "x"), ("y", " ")]), ("test", [])])
def test_a_split_without_text_is_named(tmp_path: Path, split: str, pairs: list[tuple[str, str]]) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    write_split(corpus, split, pairs)
    with pytest.raises(DataError, match=split):
        train(make_config(corpus), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_corpus_of_too_long_pairs_is_refused_until_the_limit_is_larger(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(DataError, match=r"longer than data\.max_length = 1 tokens"):
        train(make_config(corpus, data={"max_length": 1}), out)
    assert train(make_config(corpus, training={"steps": 1}), out).step == 1


# --- the log ---


def test_figures_that_are_not_finite_are_null_in_the_log(tmp_path: Path) -> None:
    inner = CollectingListener()
    listener = _RecordingListener(inner, tmp_path / "metrics.jsonl")
    report = StepReport(1, 2, 0.5, math.nan, math.inf, 0.1, -math.inf, 1.0, 1.0, 0.0, 1.0, 1.0, 1)
    listener.step(report)
    listener.message("hello")
    line = json.loads((tmp_path / "metrics.jsonl").read_text(encoding="utf-8"), parse_constant=refuse_constant)
    assert (line["loss"], line["nll"], line["gradient_norm"], line["learning_rate"]) == (None, None, None, 0.1)
    assert inner.steps == [report]
    assert inner.messages == ["hello"]


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    listener = _RecordingListener(CollectingListener(), tmp_path / "missing" / "metrics.jsonl")
    with pytest.raises(SaveError, match=r"the log could not be written to .*metrics\.jsonl"):
        listener.validation(validation_report(1, 1.0))


MARKED = "de\u00adr Hu\u200bnd ﬂäuft\u2060 ｇｅｒｎ１"
PLAIN = "der Hund fläuft gern1"


def test_a_new_run_reads_marked_sources_as_plain_ones_and_an_older_run_as_before(
    corpus: Path, finished: Path, copied: Path
) -> None:
    new = Translator.load(finished)
    assert new.config.tokenizer.normal_form == 1
    assert new.tokenizers.source.encode([MARKED]) == new.tokenizers.source.encode([PLAIN])
    assert new.tokenizers.target.encode([MARKED]) != new.tokenizers.target.encode([PLAIN])
    before, after = new.translate([PLAIN, MARKED])
    assert (after.translation, after.source) == (before.translation, MARKED)
    content = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    del content["tokenizer"]["normal_form"]
    (copied / "config.json").write_text(json.dumps(content), encoding="utf-8")
    old = Translator.load(copied)
    for text in (MARKED, "eine\u00a0Katze"):
        expected = [old.tokenizers.source.for_side("").encode([text])]
        assert [side.encode([text]) for side in (old.tokenizers.source, old.tokenizers.target)] == expected * 2
    assert old.tokenizers.source.encode([MARKED]) != old.tokenizers.source.encode([PLAIN])
    train(full_config(corpus), copied)  # resumes
    assert RunDirectory(copied).config().tokenizer.normal_form == 0


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters", "bytes"])
@pytest.mark.parametrize("joint", [True, False])
def test_targets_keep_their_no_break_blanks_and_sources_do_not(tmp_path: Path, kind: str, joint: bool) -> None:
    pairs = [(f"{source}\u00a0!", f"{target}\u00a0! 1\u202f000") for source, target in SENTENCES]
    for split, part in (("train", pairs[:36]), ("valid", pairs[36:])):
        write_split(tmp_path / "text", split, part)
    size = {"vocab_size": 296} if kind in ("bpe", "unigram") else {}
    tokenizer = {"kind": kind, "joint": joint, **size}
    embeddings = {"tied_embeddings": "decoder"}
    config = make_config(tmp_path / "text", data={"test": None}, tokenizer=tokenizer, model=embeddings)
    train(config, tmp_path / "run")
    tokenizers = RunDirectory(tmp_path / "run").tokenizers(RunDirectory(tmp_path / "run").config())
    store = TokenStore(tmp_path / "run" / "cache" / "train")
    sources, targets = store.source.values, store.target.values
    assert (
        tokenizers.target.decode(targets).count("\u00a0!")
        == tokenizers.target.decode(targets).count("\u202f")
        == 36
    )
    assert not {"\u00a0", "\u202f"} & set(tokenizers.source.decode(sources))
    assert tokenizers.target.decode(*tokenizers.target.encode(["a\u00a0! 1\u202f000"])) == "a\u00a0! 1\u202f000"
