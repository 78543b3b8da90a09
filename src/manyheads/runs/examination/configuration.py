"""`manyheads doctor CONFIG`: text, tokens, settings and the new model, before anything is trained."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.doctor.before.settings import Plan, machine_findings, plan_findings
from manyheads.doctor.before.start import start_findings
from manyheads.doctor.before.tokens import vocabulary_findings
from manyheads.doctor.diagnosis import Diagnosis
from manyheads.doctor.report import make_report
from manyheads.model.transformer import Transformer
from manyheads.runs.corpus import read_corpus
from manyheads.runs.examination.start import examine_model, first_loss, free_memory, measure_update
from manyheads.runs.examination.text import examine_text
from manyheads.runs.examination.tokens import token_counts, token_findings, vocabularies
from manyheads.runs.initialize import with_initial_shape
from manyheads.runs.training_tasks import TrainingTask, prepare_task
from manyheads.runs.translation import Validation
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import ALONE
from manyheads.training.log import Listener, SilentListener
from manyheads.training.memory import keep_few_kernels, keep_freed_memory
from manyheads.training.precision import pick_device, pick_precision
from manyheads.training.timing import Costs, expectation, sampled_validation

__all__ = ["examine_config"]

NO_LISTENER = SilentListener()
VALIDATION_SAMPLE = 5.0  # seconds that a sample may take which times a validation
ASKED = (
    "few tokens are unknown, and texts come back from their tokens",
    "the vocabulary is not too large for the text",
    "the learning rate fits the width, the batch and the optimiser",
    "the warm-up ends in time, and the text is seen",
    "the model is not too large for the text",
    "memory suffices, and the time can be waited for",
    "the loss begins near that of a blind guess",
)


def examine_config(config: Config, name: str, *, listener: Listener = NO_LISTENER) -> Diagnosis:
    """Examine a configuration and its text; nothing is kept.

    Args:
        config: of the training to be.
        name: what it is called.
        listener: who is told of the way.

    Raises:
        DataError: text is missing or cannot be used.
    """
    keep_few_kernels()
    keep_freed_memory()
    listener.message("reading the text")
    report, facts = examine_text(config)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        config = with_initial_shape(config, run, listener)
        kind = prepare_task(config, run, read_corpus(config, run), listener)
        listener.message("examining a new model")
        torch.manual_seed(config.training.seed)
        model, updates = kind.model(), kind.updates(ALONE)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        findings = [*token_findings(kind)]
        for vocabulary in vocabularies(kind):
            findings += vocabulary_findings(vocabulary)
        if config.model.init_from is None:
            findings += start_findings(first_loss(kind, model, updates))
            report += examine_model(kind, model)
        listener.message("timing some updates")
        plan, costs = plan_of(kind, model, updates)
        measured = config.expected(kind.corpus.total.kept)
    findings += [*plan_findings(config, plan), *machine_findings(plan)]
    facts |= {
        "model": f"{parameters:,} parameters, vocabulary {kind.vocabulary}",
        **plan_facts(config, plan, costs),
    }
    if measured is not None and plan.steps is not None:
        facts["expected"] = expectation(measured, costs, config.training, plan.steps)
    return Diagnosis(name, facts, report + make_report(findings, ASKED))


def plan_of(kind: TrainingTask, model: Transformer, updates: BatchSource) -> tuple[Plan, Costs]:
    """What the training comes to on this machine, and the seconds that its parts take."""
    training = kind.config.training
    device = pick_device(training.device)
    free = free_memory(device)
    measured = measure_update(kind, model, updates, device, pick_precision(training.precision, device))
    epoch_steps = len(updates.epoch(0))
    steps = training.steps if training.epochs is None else training.epochs * epoch_steps
    costs = Costs(measured.seconds, validation_seconds(kind, model))
    steps = max(1, costs.fitting(training, steps))
    plan = Plan(
        steps=steps,
        epoch_steps=epoch_steps,
        batch=measured.batch,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokens=sum(int(counts.sum()) for *_, counts in token_counts(kind)),
        seconds=measured.seconds,
        memory=measured.memory,
        free=free,
    )
    return plan, costs


def validation_seconds(kind: TrainingTask, model: Transformer) -> float:
    """Return the seconds of a validation, as training estimates them; 0 where it would make a whole one."""
    if kind.config.task != "translation":
        return 0.0
    validate = kind.validation(model.eval(), ALONE)
    assert isinstance(validate, Validation)
    with torch.inference_mode():
        return sampled_validation(validate.seconds, VALIDATION_SAMPLE)


def plan_facts(config: Config, plan: Plan, costs: Costs) -> dict[str, str]:
    """The plan for people."""
    facts = {}
    if plan.steps is not None:
        facts["updates"] = (
            f"{plan.steps:,} of {plan.batch:,.0f} {unit(config)}, {plan.steps / plan.epoch_steps:,.1f} epochs"
        )
    if plan.steps is not None and plan.seconds is not None:
        total = duration(costs.total(config.training, plan.steps))
        facts["time"] = f"{costs.update:.2f} s an update here, about {total} " + (
            f"with validations of {costs.validation:.1f} s" if costs.validation else "without validation"
        )
    if plan.memory is not None:
        free = "" if plan.free is None else f" of {plan.free / 2**30:.1f} GiB that are free"
        facts["memory"] = f"about {plan.memory / 2**30:.2f} GiB{free}"
    return facts


def unit(config: Config) -> str:
    """What an update is counted in."""
    return "texts" if config.task == "classification" else "target tokens"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days."""
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} seconds"
