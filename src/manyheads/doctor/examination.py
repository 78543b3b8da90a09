"""Examine any PyTorch model: make every check that applies to it, and name the defects.

An observation that cannot be made, because the model raises an error in it, never ends an examination: the report
lists the check as not made, with the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.doctor.checks.behaviour import OUTPUT_CHECKS, STEPPING, Stepping, check_stepper, find_limit
from manyheads.doctor.checks.diagnosis import Symptoms, diagnose
from manyheads.doctor.checks.internals import trace_internals
from manyheads.doctor.checks.learning import LOSS_ABOVE_CHANCE, check_training
from manyheads.doctor.checks.memorization import TrainingFunctions
from manyheads.doctor.checks.training import Collate, default_collate
from manyheads.doctor.evidence import place_of
from manyheads.doctor.model_adapter import Kind, ModelAdapter, Samples, restore_modes, restore_weights
from manyheads.doctor.report import Place, Report, attempt, make_report
from manyheads.doctor.wrapping import Masks, check_call, wrap_model
from manyheads.errors import UsageError

__all__ = ["examine"]


def examine(
    model: Any,
    *,
    vocab_size: int | tuple[int, int] | None = None,
    pad: int | None = None,
    bos: int | None = None,
    eos: int | None = None,
    kind: Kind | None = None,
    masks: Masks | None = None,
    time_first: bool = False,
    left_padding: bool = False,
    train_step: Callable[..., Any] | None = None,
    collate: Collate | None = None,
    greedy: Callable[[Any], Any] | None = None,
    score: Callable[..., Any] | None = None,
    stepper: Callable[[Tensor], Stepping] | None = None,
    updates: int = 300,
    longest: int = 1024,
    seed: int = 0,
) -> Report:
    """Examine any PyTorch model.

    Args:
        model: an nn.Module or a function of (source_ids (B, S), target_ids (B, T)) that returns logits (B, T, V);
            an object with encode(source) and decode(target, memory...); a Hugging Face model. Modules, of a
            function those it names, are put into eval() and train() meanwhile, and left as they were.
        vocab_size: the number of token ids, or a pair (source, target). Not needed for Hugging Face models.
        pad: id of padding; without it no check about padding is made.
        bos: id of the mark that begins a target.
        eos: id of the mark that ends a target.
        kind: "encoder-decoder" (default), "encoder" or "decoder" (one argument each).
        masks: function of the ids that returns the further arguments of the model, in order.
        time_first: ids are (S, B) and (T, B), logits (T, B, V).
        left_padding: results must not depend on padding before the text either.
        train_step: function that makes one update and returns the loss; its arguments are the batch of `collate`.
            It is called at most `updates` times and the weights are put back afterwards, but not the state of an
            optimizer: use an optimizer of its own.
        collate: function of source rows and target rows of ids, without marks, that returns a batch. By default a
            batch is two tensors: sources with `eos`, targets between `bos` and `eos`, padded at the end.
        greedy: function of the first part of a batch that returns rows of target ids; needs train_step.
        score: function that evaluates the model's output on a batch, called like train_step; needs train_step.
        stepper: function of source ids (B, S) that returns an object whose step(tokens (B,)) returns the scores of
            the next token (B, V).
        updates: maximum number of updates to memorize four pairs.
        longest: maximum length in tokens of the texts that are tried, unless the model states a lower limit.
        seed: seed of the ids that the model is examined with.

    Raises:
        UsageError: it is not clear how to call the model, or `train_step` is missing where it is needed.
    """
    if train_step is None and (greedy or score):
        raise UsageError("greedy and score are compared with training: give train_step too.")
    adapter = wrap_model(
        model, vocab_size=vocab_size, pad=pad, bos=bos, eos=eos, kind=kind, masks=masks, time_first=time_first
    )
    samples = Samples(adapter, seed)
    with restore_modes(adapter.module):
        if adapter.module is not None:
            adapter.module.eval()
        check_call(adapter, samples.with_the_highest())
        report, symptoms = observe_outputs(adapter, samples, left_padding=left_padding)
        internals = trace_internals(adapter, samples)
        limit = find_limit(adapter, samples, longest) if adapter.device.type == "cpu" else None
        report += make_report(diagnose(adapter, symptoms, internals, limit), structure_checks(adapter))
        if stepper is not None:
            report += attempt([STEPPING], lambda: check_stepper(adapter, samples, stepper))
        elif "target" in adapter.sides:
            report += make_report([], [], [(STEPPING, "stepper was not given")])
        if train_step is None:
            report += make_report([], [], [(LOSS_ABOVE_CHANCE, "train_step was not given")])
        else:
            collate = collate or default_collate(adapter, time_first=time_first)
            functions = TrainingFunctions(train_step, collate, greedy, score, updates)
            with restore_weights(adapter.module), torch.enable_grad():
                report += check_training(adapter, functions, report, seed)
    return with_places(report, place_of(model))


def with_places(report: Report, place: Place | None) -> Report:
    """Return a report in which each finding without a place has that of the model."""
    findings = [replace(finding, place=finding.place or place) for finding in report.findings]
    return replace(report, findings=findings)


def observe_outputs(adapter: ModelAdapter, samples: Samples, *, left_padding: bool) -> tuple[Report, Symptoms]:
    """Make every check of the outputs that can be made; return a report without findings, and the symptoms."""
    made = [check for check in OUTPUT_CHECKS if check.possible(adapter, left_padding=left_padding)]
    symptoms = dict.fromkeys((check.symptom for check in OUTPUT_CHECKS), "")
    symptoms |= {check.symptom: check.observe(adapter, samples) or "" for check in made}
    reasons = [(check.sentence, check.reason(adapter)) for check in OUTPUT_CHECKS if check not in made]
    skipped = [(sentence, reason) for sentence, reason in reasons if reason]
    return make_report([], [check.sentence for check in made], skipped), symptoms


def structure_checks(adapter: ModelAdapter) -> list[str]:
    """Return the checks of the inside of a model that can be made, a sentence each."""
    checks = {
        "attention is scaled, masked and projected as in the paper": True,
        "dropout does not fall on the residual connection": adapter.module is not None,
        "token embeddings are not much weaker than positions": True,
        "long texts raise a clear error or none": adapter.device.type == "cpu",
    }
    return [check for check, possible in checks.items() if possible]
