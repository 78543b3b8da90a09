"""Examine any PyTorch model: make every check that applies to it, and name the defects.

An observation that cannot be made, because the model raises an error in it, never ends an examination: the report
lists the check as not made, with the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.behaviour import CAUSAL, OUTPUT_CHECKS, STANDALONE_SYMPTOMS, OutputCheck
from transformer_doctor.checks.calls import errors_of, run
from transformer_doctor.checks.default_batches import default_collate, fitting_collate
from transformer_doctor.checks.diagnosis import LENGTHS, Symptoms, diagnose
from transformer_doctor.checks.distances import DISTANCES, distance_report
from transformer_doctor.checks.internals import trace_internals
from transformer_doctor.checks.learning import TRAINING_CHECKS, check_training
from transformer_doctor.checks.lengths import (
    LengthLimit,
    affordable_length,
    examine_lengths,
    find_limit,
    tried_lengths,
)
from transformer_doctor.checks.memorization import TrainingFunctions
from transformer_doctor.checks.packing import PACKED, packing_report
from transformer_doctor.checks.positions import repeated_positions
from transformer_doctor.checks.stepping import STEPPING, Stepping, check_cache, check_stepper
from transformer_doctor.checks.training import Collate, arguments
from transformer_doctor.checks.trial import Trial, trace_half_precision
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import Kind, ModelAdapter, Samples, restore_modes
from transformer_doctor.module_state import in_precision
from transformer_doctor.places import placed
from transformer_doctor.preparation import (
    Preparation,
    double_tolerances,
    in_any_precision,
    prepare,
    prepare_training,
    without_zero_weights,
)
from transformer_doctor.progress import NO_LISTENER, Listener
from transformer_doctor.report import Finding, Report, attempt, failure_report, make_report, report_on
from transformer_doctor.tolerances import Tolerances
from transformer_doctor.wrapping import Masks, run_eagerly, wrap_model

_COMPARED_POSITIONS = 528  # covers tables of 512
_FOR_ANY_SCORES = ("constant-scores", "random", "not_finite", "scores-are-probabilities")


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
    listener: Listener = NO_LISTENER,
    quick: bool = False,
) -> Report:
    """Examine any PyTorch model.

    Args:
        model: an nn.Module or a function of (source_ids (B, S), target_ids (B, T)) that returns logits (B, T, V);
            an object with encode(source) and decode(target, memory...); a Hugging Face model. Modules (of a
            function, those that it names) are put into eval() and train(), and restored at the end.
        vocab_size: the number of token ids, or a pair (source, target). Not needed for Hugging Face models.
        pad: id of padding; without it no check about padding is made.
        bos: id of the mark that begins a target.
        eos: id of the mark that ends a target.
        kind: "encoder-decoder" (default), "encoder" or "decoder" (one argument each).
        masks: function of the ids that returns the further arguments of the model, in order.
        time_first: ids are (S, B) and (T, B), logits (T, B, V).
        left_padding: results must not depend on padding before the text either.
        train_step: function that makes one update and returns the loss; its arguments are the batch of `collate`.
            It is called some 55 times, with `greedy` up to `updates` times more, and for a model in half precision
            some times more. The weights are restored afterwards, the state of an optimizer is not: use a separate
            optimizer.
        collate: function of source rows and target rows of ids, without marks, that returns a batch. By default a
            batch is two tensors: sources with `eos`, targets between `bos` and `eos`, padded at the end.
        greedy: function of the first part of a batch that returns rows of target ids; needs train_step.
        score: function that evaluates the model's output on a batch, called like train_step; needs train_step.
        stepper: function of source ids (B, S) that returns an object whose step(tokens (B,)) returns the scores of
            the next token (B, V), and may have reorder(rows (B,)). A cache that the model itself takes and returns
            is found without it.
        updates: maximum number of updates to memorize four pairs, which `greedy` then decodes.
        longest: maximum length in tokens of the texts that are tried, unless the model states a lower limit.
        seed: seed of the ids that the model is examined with.
        listener: receives the progress of long steps.
        quick: leave out the checks that train.

    Raises:
        UsageError: it is not clear how to call the model, or `train_step` is missing where it is needed.
    """
    if train_step is None and (greedy or score):
        raise UsageError("greedy and score are compared with training: give train_step too.")
    given = {"masks": masks, "train_step": train_step, "collate": collate, "greedy": greedy, "score": score}
    masks, train_step, collate, greedy, score = map(_with_its_errors, given, given.values())
    wrap = partial(
        wrap_model,
        model, vocab_size=vocab_size, pad=pad, bos=bos, eos=eos, kind=kind, masks=masks, time_first=time_first,
        left_padding=left_padding,
    )  # fmt: skip
    with torch.random.fork_rng():
        adapter = in_any_precision(wrap, model)
    with restore_modes(adapter.module), run_eagerly():
        with prepare(adapter, seed) as prepared:
            report = placed(_check_outputs(prepared, stepper, left_padding=left_padding, longest=longest), model)
        if train_step is None or quick:
            reason = "quick leaves it out" if quick else "train_step was not given"
            report += make_report([], [], [(check, reason) for check in TRAINING_CHECKS])
        else:
            adapter = prepared.adapter
            plain = collate or default_collate(adapter, time_first=time_first)
            functions = TrainingFunctions(train_step, plain, greedy, score, updates)
            try:
                if collate is None:
                    functions = replace(functions, collate=fitting_collate(adapter, functions, seed))
                in_half = trace_half_precision(adapter, functions, seed)
                with prepare_training(adapter, partial(_train_once, functions, adapter, seed)), torch.enable_grad():
                    trained = check_training(adapter, functions, report, seed, listener, in_half)
                report += placed(trained, train_step)
            except Exception as error:  # any exception of the user's code
                if not hasattr(error, "finding"):
                    raise
                report += failure_report(TRAINING_CHECKS, error)
    return report


def _with_its_errors(name: str, function: Any) -> Any:
    return function and errors_of(name, function)(function)


def _check_outputs(
    prepared: Preparation, stepper: Callable[[Tensor], Stepping] | None, *, left_padding: bool, longest: int
) -> Report:
    adapter, samples = prepared.adapter, prepared.samples
    with without_zero_weights(adapter.module) as remarks:
        report, symptoms = _observe_outputs(prepared, left_padding=left_padding)
        report += make_report([], [], remarks=[*adapter.remarks, *prepared.remarks, *remarks])
        internals = trace_internals(adapter, samples)
        lengths, limit = _observe_lengths(adapter, samples, longest)
        findings = diagnose(symptoms, internals, limit)
        report += lengths + make_report(findings, internals.asked, internals.skipped)
        if adapter.tolerances.exact and not samples.fixed_length:
            report += attempt([DISTANCES], lambda: distance_report(adapter, samples))
        report += attempt([PACKED], lambda: packing_report(adapter, samples))
        if adapter.device.type == "cpu" and not samples.fixed_length:
            known = [symptom for symptom, evidence in symptoms.items() if evidence]
            report += examine_lengths(adapter, samples, longest, limit, known)
        report += make_report(_output_findings(adapter, samples, symptoms), [])
        if stepper is not None:
            report += attempt([STEPPING], lambda: placed(check_stepper(adapter, samples, stepper), stepper))
        if "target" in adapter.sides:
            report += attempt([STEPPING], lambda: _check_cache(adapter, samples, symptoms))
    return report


def _check_cache(adapter: ModelAdapter, samples: Samples, symptoms: Symptoms) -> Report:
    if any(symptoms[name] for name in ("random", "not_finite", "constant-scores", "future", "neighbours")):
        return report_on(STEPPING, reason="an error above changes the scores")
    call = None if adapter.cached is None else adapter.cached(adapter, samples)
    if call is None:
        return report_on(STEPPING, reason="stepper was not given")
    return check_cache(adapter, samples, call)


def _observe_outputs(prepared: Preparation, *, left_padding: bool) -> tuple[Report, Symptoms]:
    adapter, samples = prepared.adapter, prepared.samples
    symptoms = dict.fromkeys([check.symptom for check in OUTPUT_CHECKS], "")
    report, double = Report(), double_tolerances(adapter, samples)
    watched = replace(adapter, call=errors_of("the model", adapter.module, "warning")(adapter.call))
    lengths = {"source": samples.source, "target": samples.target}
    rows = f"{samples.batch} rows of {' and '.join(str(lengths[side]) for side in adapter.sides)} tokens"
    for check in OUTPUT_CHECKS:
        obstacle = check.obstacle(adapter, samples, left_padding=left_padding)
        if obstacle == "" and symptoms["constant-scores"] and check.symptom not in _FOR_ANY_SCORES:
            obstacle = "the scores do not depend on the tokens"
        if obstacle:
            report += report_on(check.sentence, reason=obstacle)
        elif obstacle is not None:

            def observe(check: OutputCheck = check) -> Report:
                # a model may refuse texts that are longer, or padded between tokens
                plain = samples.longer and check.symptom != "padded_query" and "lengths" not in check.needs
                evidence = _observed(check, watched if plain else adapter, samples, double)
                symptoms[check.symptom] = evidence or ""
                return report_on(check.sentence, tried=rows if check.symptom == "neighbours" else "")

            report += attempt([check.sentence], observe)
    symptoms["not_finite"] = symptoms["not_finite"] or prepared.not_finite
    return report, symptoms


def _observed(check: OutputCheck, adapter: ModelAdapter, samples: Samples, double: Tolerances | None) -> str | None:
    """Return the evidence of a check, in float64 if it compares outputs and the model has tolerances there."""
    if double is not None and "comparison" in check.needs:
        with suppress(Exception), in_precision(adapter.module, torch.float64):  # a part may name float32 itself
            return check.observe(replace(adapter, tolerances=double), samples)
    return check.observe(adapter, samples)


def _observe_lengths(adapter: ModelAdapter, samples: Samples, longest: int) -> tuple[Report, LengthLimit | None]:
    reason = "the model takes texts of one length alone" if samples.fixed_length else ""
    reason = reason if adapter.device.type == "cpu" else "lengths are tried on the CPU alone"
    if reason:
        return report_on(LENGTHS, reason=reason), None
    limits: list[LengthLimit | None] = [None]

    def find() -> Report:
        limits.append(find_limit(adapter, samples, longest))
        compared = affordable_length(replace(adapter, stated_limit=None), min(longest, _COMPARED_POSITIONS))
        evidence = repeated_positions(adapter, samples, compared)
        silent = evidence and limits[-1] is None
        most = limits[-1].length if limits[-1] is not None else affordable_length(adapter, longest)
        found = [model_finding("position-limit", evidence)] if silent else []
        return report_on(LENGTHS, found, tried=tried_lengths(adapter, most))

    return attempt([LENGTHS], find), limits[-1]


def _output_findings(adapter: ModelAdapter, samples: Samples, symptoms: Symptoms) -> Iterator[Finding]:
    for name in STANDALONE_SYMPTOMS:
        if symptoms[name] and not symptoms["random"]:
            # a model that has one row of scores for a whole text may be meant as a bag of words
            pooled = adapter.kind == "encoder" and run(adapter, samples.ids()).size(1) == 1
            meant = (name == "no-positions" and pooled) or symptoms[name] == CAUSAL
            yield model_finding(name, symptoms[name], "note" if meant else None)


def _train_once(functions: TrainingFunctions, adapter: ModelAdapter, seed: int) -> None:
    sources, targets = next(Trial.of(adapter, functions, seed).step_rows())
    functions.train_step(*arguments(functions.collate(sources, targets)))
