"""`manyheads doctor CONFIG`: text, tokens, settings and the new model, before anything is trained."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from manyheads.allocator import keep_few_kernels, keep_freed_memory
from manyheads.checkpoint import RunDirectory
from manyheads.checks.catalogue import with_settings
from manyheads.checks.check import make_checks, name_direction
from manyheads.checks.invariants import examine_own_model
from manyheads.checks.machine import memory
from manyheads.checks.plan import GIB, Plan
from manyheads.checks.registry import NEW_TRAINING, NewTraining
from manyheads.checks.start import first_loss, measure_update
from manyheads.checks.text import examine_text
from manyheads.checks.tokens import count_side, count_vocabulary, length_findings
from manyheads.config.schema import Config
from manyheads.data.reading import READINGS, describe_too_long
from manyheads.data.training_text import cleaning, name_limit, read_corpus, read_splits
from manyheads.model.attention import attend
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.reports import NO_LISTENER, Listener, track
from manyheads.runs.estimate import free_share
from manyheads.tasks.translation.mean_scoring import MeanValidation
from manyheads.tasks.translation.scoring import Validation
from manyheads.tensors.devices import pick_device, pick_precision
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import ALONE
from manyheads.training.initialize import with_initial_shape
from manyheads.training.registry import prepare_task
from manyheads.training.task import TrainingTask
from manyheads.training.time_limit import fitting_updates, sampled_validation, seconds_per_update
from transformer_doctor.checks.formula import examine_attention
from transformer_doctor.module_state import restored_settings
from transformer_doctor.report import Diagnosis, Finding, Report

_VALIDATION_SAMPLE = 5.0  # maximum seconds of the sample that times a validation
_NUM_SAMPLE_TEXTS = 2_000  # texts of a side that are encoded once more


@restored_settings()
def examine_config(config: Config, name: str, *, listener: Listener = NO_LISTENER) -> Diagnosis:
    """Examine a configuration, called `name` in the report, and its text; no file is written."""
    keep_few_kernels()
    keep_freed_memory()
    text = examine_config_text(config, name, listener=listener)
    report, facts = text.report, dict(text.facts)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        config = with_initial_shape(config, run, listener)
        task = prepare_task(config, run, read_corpus(config, run.path), listener)
        listener.message("examining a new model")
        torch.manual_seed(config.training.seed)
        model, updates = task.model(), task.updates(ALONE)
        new = config.model.init_from is None
        start = _loss_at_start(task, model, updates) if new else None
        if new:
            report += examine_attention(attend) + examine_own_model(model, task.tokenizers, task.objective(model))
        counts = list(task.task.count_tokens(task))
        token_sides = [count_side(*side) for side in task.task.sample_sides(task, _NUM_SAMPLE_TEXTS)]
        subwords = config.tokenizer.kind in ("bpe", "unigram")
        vocabularies = [count_vocabulary(*vocabulary) for vocabulary in counts] if subwords else []
        listener.message("timing some updates")
        tokens = sum(int(frequencies.sum()) for *_, frequencies in counts)
        plan = _plan_training(task, model, updates, tokens)
        training = NewTraining(plan, token_sides, vocabularies, _length_findings(task), start)
    report += with_settings(make_checks(NEW_TRAINING, training), config)
    facts |= {
        "model": f"{plan.parameters:,} parameters, vocabulary {task.vocabulary}",
        **plan.facts(),
    }
    if task.too_long:
        noun, kept = READINGS[config.spec.reads].noun, task.corpus.total.kept
        facts["length"] = describe_too_long(kept, task.too_long, name_limit(config), noun)
    facts |= task.task.describe_lengths(task)
    return Diagnosis(facts, report, {**text.document, "facts": facts}, text.table)


def examine_config_text(config: Config, name: str, *, listener: Listener = NO_LISTENER) -> Diagnosis:
    """Examine the text of a configuration, called `name` in the report; `data report` prints the result."""
    if config.multilingual:
        return _examine_directions(config, name, listener)
    splits = {
        split: track(pairs, listener, f"reading the text ({split})", unit=READINGS[config.spec.reads].noun)
        for split, pairs in read_splits(config).items()
    }
    text = examine_text(config, splits, cleaning(config))
    document = {"subject": name, "facts": text.facts, **({"text": text.document} if text.document else {})}
    return replace(text, report=with_settings(text.report, config), document=document)


def _examine_directions(config: Config, name: str, listener: Listener) -> Diagnosis:
    """Examine the text of each direction; see `examine_config_text`."""
    parts = {
        "-".join(view.languages): examine_config_text(view, name, listener=listener)
        for view in config.for_directions()
    }
    report = Report()
    for direction, part in parts.items():
        report += name_direction(part.report, direction)
    facts = {f"{direction} {fact}": text for direction, part in parts.items() for fact, text in part.facts.items()}
    texts = {direction: part.document.get("text", {}) for direction, part in parts.items()}
    table = [line for direction, part in parts.items() for line in (direction, *part.table)]
    return Diagnosis(facts, report, {"subject": name, "facts": facts, "text": texts}, table)


def _loss_at_start(task: TrainingTask, model: Transformer, updates: BatchSource) -> tuple[float, int, int]:
    """Return the loss of the first batch, the number of choices, and the width of tied embeddings or 0."""
    loss = first_loss(model, task.objective(model), updates.batches(0, 0, updates.epoch(0)[0]))
    if isinstance(model, TextClassifier):
        return loss, model.output.out_features, 0
    tied = task.config.model.tied_embeddings != "none"
    return loss, task.tokenizers.target.size, task.config.model.d_model if tied else 0


def _plan_training(task: TrainingTask, model: Transformer, updates: BatchSource, tokens: int) -> Plan:
    """Time some updates and a validation; return the plan of a training on `tokens` tokens."""
    training = task.config.training
    device = pick_device(training.device)
    free = _free_memory(device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    precision = pick_precision(training.precision, device)
    seconds, needed, batch = measure_update(
        model, lambda: task.objective(model), updates, training, device, precision
    )
    resident = 0.0 if device.type == "cuda" else _resident_memory()
    epoch_steps = len(updates.epoch(0))
    steps = training.steps if training.epochs is None else training.epochs * epoch_steps
    free_processors = free_share(device)  # as in the estimate of `manyheads init`
    seconds, validation = free_processors * seconds, free_processors * _validation_seconds(task, model)
    if training.max_minutes is not None:
        steps = max(1, min(steps, fitting_updates(60 * training.max_minutes, seconds, validation, training)))
    return Plan(
        config=task.config,
        steps=steps,
        epoch_steps=epoch_steps,
        batch=batch,
        parameters=parameters,
        tokens=tokens,
        seconds=seconds,
        validation=validation,
        total=steps * seconds_per_update(seconds, validation, training.save_every) + validation,
        memory=needed + resident,
        free=free,
        free_processors=free_processors,
    )


def _validation_seconds(task: TrainingTask, model: Transformer) -> float:
    """Return the seconds of a validation, as training estimates them; 0 where they are not worth a measurement."""
    if not task.task.spec.decodes:
        return 0.0
    validate = task.validation(model.eval(), ALONE)
    assert isinstance(validate, Validation | MeanValidation)
    with torch.inference_mode():
        return sampled_validation(validate.seconds, _VALIDATION_SAMPLE)


def _length_findings(task: TrainingTask) -> list[Finding]:
    """Return a finding if many texts are longer than data.max_length."""
    lengths = task.task.count_long(task)
    if lengths is None:
        return []
    return list(length_findings(lengths.long, lengths.examples, lengths.limit, dropped=lengths.dropped))


def _resident_memory() -> float:
    """Return the resident memory of this process in bytes; 0 where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):  # not Linux
        return 0.0
    return pages * 4096.0


def _free_memory(device: torch.device) -> float | None:
    """Return the free memory in bytes, on Linux including caches; None where it is not reported."""
    total, free = memory(device)
    if device.type == "cuda":
        return None if free is None else free * GIB
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return int(text.partition("MemAvailable:")[2].split()[0]) * 1024.0
    except (OSError, ValueError, IndexError):  # not Linux
        return None if total is None else total * GIB
