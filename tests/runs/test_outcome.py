"""The verdicts on a training follow its curves, and the mean of checkpoints is judged by its validation loss."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.runs.parts import configure, make_config, write_corpus
from tests.tolerances import approx

from korean_evidence import expect_korean_verdicts
from manyheads.checkpoint import RunDirectory
from manyheads.checks.curves import Curves
from manyheads.cli.verbs import verdict_sentences
from manyheads.config.load import parse_config, with_overrides
from manyheads.runs.evaluate import evaluate
from manyheads.runs.outcome import (
    _bleu_after_best_loss,
    _judge_curves,
    _validation_loss,
    judge_average,
    training_verdict,
    with_steps_done,
)
from manyheads.runs.resume import average
from manyheads.runs.train import train

CHOICES, DOCTOR = 1000, "manyheads doctor 'my run'"
CONFIG = parse_config({"data": {"source": "de", "target": "en"}}, origin="test")


@pytest.fixture(autouse=True)
def verdicts_in_korean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Expect that every verdict has a Korean form."""
    module = sys.modules[__name__]
    names = "_judge_curves", "_bleu_after_best_loss", "judge_average", "training_verdict"
    yield from expect_korean_verdicts(monkeypatch, verdict_sentences(), *((module, name) for name in names))


def curves(losses: list[float], *, total: int | None = None) -> Curves:
    points = tuple((100 * (number + 1), loss) for number, loss in enumerate(losses))
    return Curves(points, points, total or 100 * len(losses), 0)


def verdicts(losses: list[float], *, total: int | None = None) -> list[str]:
    return list(_judge_curves(curves(losses, total=total), CHOICES, CONFIG, DOCTOR))


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (
            [6.7, 6.6, 6.6, 6.6, 6.6],
            "is hardly below the 6.908 of a blind guess among 1,000: nothing was learnt yet",
        ),
        ([9.7, 8.6, 7.6, 8.6, 6.95], "6.950, is no better than the 6.908 of a blind guess among 1,000: nothing"),
        ([6.0, 5.0, 4.0, 3.0, 2.5, 2.0], "still improving at the end: the last quarter of 600 updates took"),
        ([6.0, 3.0, 2.0, 2.0, 2.0, 2.2], "overfitting: the validation loss was 2.000 at step 300 and is 2.200"),
        ([6.0, 3.0, 2.1, 2.05, 2.02, 2.01], "has settled: 2.010 at step 600, 2.010 at the end. More steps alone"),
        ([6.0, 3.0, 2.0, 2.0], "4 validations cannot show whether more steps help: 5 are needed"),
        ([6.0, 5.5], "still improving at the end: 6.000 in the first three quarters, 5.500 at best. More steps"),
        ([3.0], "1 validation cannot show"),
    ],
)
def test_the_verdict_follows_the_validation_loss(losses: list[float], words: str) -> None:
    (text,) = verdicts(losses)
    assert words in text


def test_a_short_training_whose_last_validations_are_a_step_apart_has_not_settled() -> None:
    points = ((8, 6.018), (16, 5.375), (24, 4.995), (32, 4.792), (33, 4.775))
    (verdict,) = _judge_curves(Curves(points, points, 33, 0), 3_000, CONFIG, DOCTOR)
    assert verdict.startswith("still improving at the end: 4.995 in the first three quarters, 4.775 at best")


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"steps": 400, "save_every": 100}, "training.save_every = 40"),
        ({"steps": 40, "save_every": 10}, "training.save_every = 4"),
        ({"steps": 4, "save_every": 1}, "training.steps = 10"),
        ({"max_minutes": 3, "save_every": 50}, "training.max_minutes = 6"),
        ({"max_minutes": 3, "save_every": 100}, "training.save_every = 40"),
    ],
)
def test_more_validations_come_of_the_setting_that_limits_them(settings: dict[str, int], setting: str) -> None:
    config = with_overrides(CONFIG, [f"training.{name}={value}" for name, value in settings.items()])
    apart = settings.get("steps", 400) // 4
    points = tuple((apart * number, loss) for number, loss in enumerate([6.0, 3.0, 2.0, 2.0], 1))
    (text,) = _judge_curves(Curves(points, points, points[-1][0], 0), CHOICES, config, DOCTOR)
    assert text.endswith(f"5 are needed ({setting})")


def test_advice_of_more_steps_counts_from_those_that_were_done() -> None:
    found = curves([6.0, 5.0, 4.0, 3.0, 2.5, 2.0])
    config = with_steps_done(with_overrides(CONFIG, ["training.steps=120"]), found)
    (text,) = _judge_curves(found, CHOICES, config, DOCTOR)
    assert text.endswith("More steps would help; or set training.steps = 1200")


def test_a_loss_counts_as_a_blind_guess_from_95_percent_of_its_loss() -> None:
    guess = math.log(CHOICES)
    assert "blind guess" in verdicts([0.95 * guess] * 5)[0]
    assert "blind guess" not in verdicts([0.949 * guess] * 5)[0]


def test_the_verdict_on_an_unfinished_training_has_a_reservation() -> None:
    first, *_ = verdicts([6.0, 3.0, 2.1, 2.05, 2.02, 2.01], total=1000)
    assert first == "the log ends at step 600 of 1,000: later steps may change this"


def test_the_cause_is_named_before_its_consequence_and_more_of_it_is_not_advised() -> None:
    losses = tuple((10 * number, 2.0 if number < 90 else 9.0) for number in range(1, 101))
    found = Curves(losses, curves([7.0, 8.0, 9.0, 9.0, 9.0]).validations, 1000, 0)
    cause, consequence = _judge_curves(found, CHOICES, CONFIG, DOCTOR)
    assert cause.startswith("the training diverged: ")
    assert "no better than the 6.908" in consequence
    assert "Train longer" not in consequence
    assert DOCTOR in consequence


@pytest.mark.parametrize(("last", "advised"), [(18.0, True), (16.1, False), (12.0, False)])
def test_a_rise_of_bleu_after_the_best_loss_is_advice_to_choose_by_bleu(last: float, *, advised: bool) -> None:
    points = replace(curves([3.0, 2.6, 2.7]), bleu=((100, 9.0), (200, 15.25), (300, last)))
    expected = [
        f"BLEU (greedy) still rose after the best validation loss: 15.2 at step 200, {last} at step 300. "
        'Later weights translate better: training.metric = "bleu" keeps them'
    ]
    assert list(_bleu_after_best_loss(points)) == (expected if advised else [])
    assert list(_bleu_after_best_loss(curves([3.0, 2.6, 2.7]))) == []


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_run_that_chooses_by_bleu_gets_no_advice_to_do_so(averaged: Path, tmp_path: Path, metric: str) -> None:
    run = configure(Path(shutil.copytree(averaged, tmp_path / "run")), "training", metric=metric)
    losses = {1: (3.0, 2.0), 2: (2.0, 8.0), 3: (2.5, 10.0)}
    records = [
        {"kind": "validation", "step": step, "loss": loss, "bleu": bleu} for step, (loss, bleu) in losses.items()
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert any("still rose" in verdict for verdict in training_verdict(run)) == (metric == "loss")


def test_a_run_is_judged_by_its_log(averaged: Path, tmp_path: Path) -> None:
    (text,) = training_verdict(averaged)
    assert text.startswith("still improving at the end: ")
    copy = Path(shutil.copytree(averaged, tmp_path / "run"))
    (copy / "metrics.jsonl").unlink()
    assert training_verdict(copy) == []


def test_the_validation_loss_is_that_of_evaluate(averaged: Path) -> None:
    expected = evaluate(averaged, split="valid").loss
    assert _validation_loss(averaged) == approx(expected)


def test_the_mean_is_compared_with_the_best_checkpoint(
    averaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(averaged, tmp_path / "run"))
    mean = average(run)
    first, second = _validation_loss(mean), _validation_loss(run)
    assert first is not None
    assert second is not None
    text = judge_average(mean, run)
    assert text.startswith(f"validation loss {first:.3f} against {second:.3f} of the best checkpoint: ")
    assert judge_average(run, run).endswith(": as good. Keep either")
    broken = Path(shutil.copytree(run, tmp_path / "broken"))
    weights = {name: torch.zeros_like(each) for name, each in load_file(run / "model.safetensors").items()}
    RunDirectory(broken).publish(weights)
    assert "worse by" in judge_average(broken, run)
    assert f"better by {_validation_loss(broken) - second:.3f} nats. Use {run}" in judge_average(run, broken)


def test_an_average_is_not_compared_without_the_text(averaged: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    train(make_config(corpus), tmp_path / "run")
    shutil.rmtree(corpus)
    assert _validation_loss(tmp_path / "run") is None
    assert judge_average(tmp_path / "run", averaged).startswith("not compared with the best checkpoint")
