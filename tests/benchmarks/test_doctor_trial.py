"""The trial of the doctor: planted defects, and its judgement of them."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.doctor_trial import defective, held_out
from benchmarks.doctor_trial.host_models import HOSTS, TRAINING

from manyheads.config.load import load_config, recipe_paths
from manyheads.reports import SilentListener
from manyheads.runs.train import train
from manyheads.text.interface import PAD
from manyheads.training.trainer import Trainer
from transformer_doctor import watch
from transformer_doctor.catalogue import CATALOGUE

TRUE_FINDINGS = Path(defective.__file__).with_name("true_findings.toml")


def test_every_defect_is_planted_in_three_hosts_unless_it_needs_one_layout() -> None:
    hosts = [*HOSTS]
    count = {defect: sum(defect in defective.possible_defects(host) for host in hosts) for host in hosts
             for defect in defective.possible_defects(host)}  # fmt: skip
    rare = {defect for defect, number in count.items() if number < 3}
    assert rare == RARE


# Defects that need a model of one kind: heads in one matrix, a row of padding, time first, a tied output.
RARE = {
    "target-not-shifted/tied",
    "shared-projections", "mask-as-value", "pad-row-overwritten", "padding-row-trained", "weak-embeddings",
    "rows-mixed",
}  # fmt: skip


def test_findings_of_the_trial_are_in_the_catalogue() -> None:
    table = tomllib.loads(TRUE_FINDINGS.read_text(encoding="utf-8"))["finding"]
    assert {entry["name"] for entry in table} <= {*CATALOGUE, "refused"}
    assert all(entry["why"].strip() for entry in table)
    assert {*TRAINING} & {*HOSTS["einsum"][2]} == set()


@pytest.mark.parametrize("cases", [held_out.cases, held_out.kinds])
def test_each_held_out_edit_fits_its_file_and_names_findings(cases: Callable[[], dict[str, held_out.Case]]) -> None:
    for case in cases().values():
        compile(case.text(), case.file, "exec")
    assert {name for case in cases().values() for name in case.findings} <= {*CATALOGUE}


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("schedule stays zero", {"named": True, "noticed": True}),
        ("held_out_bases.py: doctor.examine_schedule(schedule)", {"beside": []}),
        ("first weights loaded again", {"named": True, "noticed": True}),
        pytest.param("positions all zero in training", {"named": True, "noticed": True}, marks=pytest.mark.slow),
        ('watched_trainings.py: closure("")', {"beside": []}),
    ],
)
def test_a_held_out_case_is_judged(name: str, verdict: dict[str, Any]) -> None:
    (row,) = held_out.held_out_case(f"{name} / float32")
    assert verdict.items() <= row.items()


WORDS = ["der", "Hund", "sieht", "die", "rote", "Katze", "und", "ein", "Haus", "im", "Garten"]


@pytest.mark.parametrize("recipe", ["demo-de-en", "sst2-scratch", "shakespeare-char"])
def test_the_watched_training_of_a_recipe_has_no_finding(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(1)
    for split, count in (("train", 400), ("valid", 30), ("dev", 30), ("input", 400)):
        lines = [" ".join(generator.choices(WORDS, k=generator.randint(3, 9))) for _ in range(count)]
        examples = [f"{number % 2}\t{line}" for number, line in enumerate(lines)]
        for ending, text in (("de", lines), ("en", lines[::-1]), ("tsv", examples), ("txt", lines)):
            (tmp_path / f"{split}.{ending}").write_text("\n".join(text) + "\n", encoding="utf-8")
    config = load_config(recipe_paths()[recipe], [
        f"data.root={tmp_path.as_posix()}", "data.dataset=none", "data.test=none", "training.steps=17",
        "training.epochs=none", "training.precision=fp32", "training.save_every=17", "training.warmup_steps=2",
        "model.d_model=16", "model.d_ff=32", *(["tokenizer.vocab_size=300"] if recipe == "demo-de-en" else []),
    ])  # fmt: skip
    reports, run = [], Trainer.run

    def watched_run(trainer: Trainer, *options: Any) -> None:
        with watch(trainer.model, trainer.updater.optimizer, pad=PAD, on_finding=lambda finding: None) as watched:
            run(trainer, *options)
        reports.append(watched.report)

    monkeypatch.setattr(Trainer, "run", watched_run)
    train(config, tmp_path / "run", listener=SilentListener())
    (report,) = reports
    assert report.names == []
    assert "every trained weight is updated, and no other one" in report.asked
