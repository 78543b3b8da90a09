"""Settings far from the usual are named, and those of the recipes are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from manyheads.checks.plan import (
    _DAY,
    Plan,
    _usual_rate,
    epoch_findings,
    machine_findings,
    rate_findings,
    size_findings,
)
from manyheads.config.load import load_config, recipe_paths
from manyheads.config.schema import Config

PLAN = Plan(
    Config.model_validate({"data": {"source": "de", "target": "en"}}),
    steps=8_000,
    epoch_steps=200,
    batch=2_048,
    parameters=7_000_000,
    tokens=800_000,
)


def config(**training: Any) -> Config:
    model = training.pop("model", {})
    return Config.model_validate({"data": {"source": "de", "target": "en"}, "training": training, "model": model})


def names(settings: Config, plan: Plan = PLAN) -> dict[str, str]:
    plan = replace(plan, config=settings)
    findings = [*rate_findings(plan), *epoch_findings(plan), *size_findings(plan)]
    return {finding.name: finding.severity for finding in findings}


def test_the_defaults_have_no_finding() -> None:
    assert names(config()) == {}


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_the_rate_of_every_recipe_is_near_the_usual_one_and_its_warm_up_ends(name: str) -> None:
    recipe = load_config(recipe_paths()[name])
    training = recipe.training
    epoch_steps = 200 if recipe.data.dataset is None else 1_000  # Multi30k; WMT16
    steps = (training.epochs or 0) * epoch_steps or training.steps
    batch = training.batch_sentences * 14.0 if training.batch_sentences else float(training.batch_tokens)
    found = names(recipe, replace(PLAN, steps=steps, batch=batch))
    assert not found.keys() & {"rate-too-high", "rate-too-low", "warm-up-too-long", "post-norm-without-warm-up"}


@pytest.mark.parametrize("rate", [0.02, 0.1, 1.0])
def test_a_rate_with_a_digit_missing_is_an_error(rate: float) -> None:
    assert names(config(learning_rate=rate)) == {"rate-too-high": "error"}


def test_the_noam_schedule_is_judged_by_the_rate_it_gives() -> None:
    assert names(config(learning_rate=1.0, schedule="noam", warmup_steps=4_000)) == {}
    assert names(config(learning_rate=30.0, schedule="noam", warmup_steps=400)) == {"rate-too-high": "error"}


def test_the_usual_rate_depends_on_width_batch_and_optimizer() -> None:
    narrow, wide = config(model={"d_model": 256}), config(model={"d_model": 1_024, "num_heads": 8})
    assert _usual_rate(narrow, 4_096) == pytest.approx(2 * _usual_rate(wide, 4_096))
    assert _usual_rate(narrow, 16_384) == pytest.approx(2 * _usual_rate(narrow, 4_096))
    assert _usual_rate(config(optimizer="muon"), 4_096) == pytest.approx(4 * _usual_rate(narrow, 4_096))


def test_no_weight_moves_further_in_adam_than_the_sum_of_the_rates() -> None:
    """Check the bound behind "rate-too-low" with torch's Adam."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(200))
    before, rate = weight.detach().clone(), 1e-3
    optimizer = torch.optim.Adam([weight], lr=rate, betas=(0.9, 0.98))
    for _ in range(50):
        optimizer.zero_grad()
        (weight * torch.randn(200)).sum().backward()
        optimizer.step()
    assert float((weight.detach() - before).abs().max()) <= 50 * rate * 1.01


def test_a_rate_too_low_to_move_weights_is_an_error_unless_a_model_is_fine_tuned() -> None:
    assert names(config(learning_rate=2e-6)) == {"rate-too-low": "error"}
    assert names(config(learning_rate=2e-6, model={"init_from": "opus-mt"})) == {}


def test_too_long_or_missing_warm_up_is_named() -> None:
    assert names(config(warmup_steps=10_000)) == {"warm-up-too-long": "error"}
    assert names(config(warmup_steps=5_000)) == {"warm-up-too-long": "warning"}
    post = {"norm": "post"}
    assert names(config(warmup_steps=0, learning_rate=1e-3, model=post)) == {"post-norm-without-warm-up": "warning"}
    assert names(config(warmup_steps=0, learning_rate=5e-4, model=post)) == {}
    assert names(config(warmup_steps=400, learning_rate=1e-3, model=post)) == {}


def test_unusual_epochs_and_model_sizes_are_named() -> None:
    assert names(config(warmup_steps=10), replace(PLAN, steps=150)) == {"less-than-an-epoch": "warning"}
    assert names(config(), replace(PLAN, epoch_steps=30)) == {"very-many-epochs": "note"}
    assert names(config(patience=5), replace(PLAN, epoch_steps=30)) == {}
    assert names(config(save_every=9_000)) == {"best-never-chosen": "note"}
    assert names(config(), replace(PLAN, tokens=20_000)) == {"model-too-large": "warning"}
    assert names(config(), replace(PLAN, tokens=80_000)) == {"model-too-large": "note"}


def test_too_little_memory_and_a_training_of_weeks_are_named() -> None:
    plan = replace(PLAN, seconds=1.0, memory=2.0 * 2**30, free=8.0 * 2**30)
    assert not list(machine_findings(plan))
    (finding,) = machine_findings(replace(plan, free=2.0 * 2**30))
    assert (finding.name, finding.severity) == ("memory", "error")
    assert "2.0 GiB are needed" in finding.evidence
    (finding,) = machine_findings(replace(plan, seconds=40 * _DAY / 8_000))
    assert (finding.name, finding.severity) == ("takes-days", "warning")
    assert "40.0 days" in finding.evidence
    assert not list(machine_findings(replace(plan, memory=None, seconds=None)))
