"""Verdicts on a training: its curves, and the mean of its checkpoints beside its best weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from bitext.letters import has_text
from bitext.shell import command_line
from manyheads.checkpoint import RunDirectory
from manyheads.checks.curves import LEAST_VALIDATIONS, UNIGRAM, Curves, curve_findings
from manyheads.config.schema import Config
from manyheads.data.training_text import available_pairs
from manyheads.evaluation.advice import with_settings
from manyheads.results import Note
from manyheads.training.registry import task_of
from manyheads.views.metrics import records_of

_SCORED = 1_000  # validation examples on which two sets of weights are compared
_SAME_NATS = 0.005  # nats: half a percent of perplexity
_BLEU_RISE = 1.0  # rise of BLEU after the best loss from which it is mentioned
_FALLING = 0.05  # nats that the loss falls in the last quarter of a training that has not settled

# Finding of the doctor -> its meaning, and advice; causes before their consequences.
_CAUSES = {
    "diverged": "the training diverged: {seen}. A lower learning rate or a longer warm-up helps",
    "updates-skipped": "many updates were skipped: {seen}. A lower learning rate helps",
}
_CURVES = {
    "over-fitting": "overfitting: {seen}. The best weights are kept. More text or a smaller model helps",
    "under-fitting": "still improving at the end: {seen}. More steps would help",
}


def training_verdict(path: Path) -> list[str]:
    """Return the verdict on the curves of a run; empty where the run has no log of a training."""
    run = RunDirectory.existing(path)
    curves = read_curves(run)
    if not curves.validations:
        return []
    config = with_steps_done(run.config(), curves)
    classes = task_of(config).classes(run)
    doctor = command_line("manyheads", "doctor", path)
    verdicts = list(_judge_curves(curves, len(classes) or run.tokenizers(config).target.size, config, doctor))
    return verdicts + (list(_bleu_after_best_loss(curves)) if config.training.metric == "loss" else [])


def with_steps_done(config: Config, curves: Curves) -> Config:
    """Return a configuration with at least as many steps as a training has done, so that advice of more is more."""
    steps = max(config.training.steps, curves.last_step)
    return config.model_copy(update={"training": config.training.model_copy(update={"steps": steps})})


def read_curves(run: RunDirectory) -> Curves:
    """Return the curves in the log of the training; a line that an interruption has cut is left out."""
    return Curves.from_records(filter(None, records_of(run.log())))


def _judge_curves(curves: Curves, choices: int, config: Config, doctor: str) -> Iterator[str]:
    """Yield whether a training learned anything, overfits, or would improve further, by the rules of the doctor.

    Args:
        curves: curves with at least one validation.
        choices: number of tokens or labels that the model chooses from.
        config: configuration of the training.
        doctor: command that examines the run.
    """
    step, best = curves.best
    guess = math.log(choices)
    named = {finding.name: finding.evidence for finding in curve_findings(curves, None)}

    def judged(texts: Mapping[str, str]) -> list[str]:
        return [
            with_settings(text.format(seen=named[name]), name, config)
            for name, text in texts.items()
            if name in named
        ]

    if curves.last_step < curves.total_steps:
        yield f"the log ends at step {curves.last_step:,} of {curves.total_steps:,}: later steps may change this"
    causes = judged(_CAUSES)
    yield from causes
    if best >= UNIGRAM * guess:
        relation = "hardly below" if best < guess else "no better than"
        advice = (
            f"Train longer, or ask {doctor}" if best < guess and not causes else f"{doctor} looks for the reason"
        )
        yield (
            f"the best validation loss, {best:.3f}, is {relation} the {guess:.3f} of a blind guess among "
            f"{choices:,}: nothing was learnt yet. {advice}"
        )
        return
    shapes = judged(_CURVES)
    yield from shapes
    if causes or shapes:
        return
    count = len(curves.validations)
    if (before := _loss_before(curves)) - best > _FALLING:
        yield (
            f"still improving at the end: {before:.3f} in the first three quarters, {best:.3f} at best. "
            f"{with_settings('More steps would help', 'under-fitting', config)}"
        )
    elif count < LEAST_VALIDATIONS:
        yield (
            f"{count} validation{'s' * (count != 1)} cannot show whether more steps help: {LEAST_VALIDATIONS} "
            f"are needed ({_more_validations(curves, config)})"
        )
    else:
        yield Note(
            f"the validation loss has settled: {best:.3f} at step {step:,}, {curves.validations[-1][1]:.3f} at "
            "the end. More steps alone would change little"
        )


def _more_validations(curves: Curves, config: Config) -> str:
    """Return the setting for enough validations; a time limit that leaves validations out is the one to change."""
    training, apart = config.training, max(1, curves.last_step // (2 * LEAST_VALIDATIONS))
    left_out = len(curves.validations) < curves.last_step // training.save_every
    if training.max_minutes is not None and (left_out or apart >= training.save_every):
        return f"training.max_minutes = {2 * training.max_minutes:g}"
    if apart >= training.save_every:
        return f"training.steps = {2 * LEAST_VALIDATIONS * training.save_every}"
    return f"training.save_every = {apart}"


def _bleu_after_best_loss(curves: Curves) -> Iterator[str]:
    """Yield advice if BLEU still rose after the best validation loss, as in long trainings on little text."""
    best_step, _ = curves.best
    at_best = dict(curves.bleu).get(best_step)
    if at_best is not None and (last := curves.bleu[-1][1]) - at_best > _BLEU_RISE:
        yield (
            f"BLEU (greedy) still rose after the best validation loss: {at_best:.1f} at step {best_step:,}, "
            f"{last:.1f} at step {curves.bleu[-1][0]:,}. Later weights translate better: "
            'training.metric = "bleu" keeps them'
        )


def _loss_before(curves: Curves) -> float:
    """Return the best validation loss in the first three quarters of a training, or of all if there is none."""
    first = [loss for step, loss in curves.validations if step <= 0.75 * curves.last_step]
    return min(first, default=curves.best[1])


def judge_average(averaged: Path, run: Path) -> str:
    """Compare the mean of checkpoints with the best weights of a run by their validation loss."""
    mean, best = _validation_loss(averaged), _validation_loss(run)
    if mean is None or best is None:
        return "not compared with the best checkpoint: the validation text is not on this machine"
    figures = f"validation loss {mean:.3f} against {best:.3f} of the best checkpoint"
    if abs(mean - best) < _SAME_NATS:
        return f"{figures}: as good. Keep either"
    if mean < best:
        return f"{figures}: better by {best - mean:.3f} nats. Use {averaged}"
    return f"{figures}: worse by {mean - best:.3f} nats. Keep {run}, or average fewer checkpoints (--last)"


def _validation_loss(path: Path) -> float | None:
    """Return the loss of the first validation examples, in nats a token or a text; None without their text."""
    run = RunDirectory.existing(path)
    config = run.config()
    pairs = [pair for pair in available_pairs(config, "valid", _SCORED) if has_text(pair.target)]
    if not pairs:
        return None
    return task_of(config).validation_loss(path, pairs)
