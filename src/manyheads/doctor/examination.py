"""Examine any PyTorch model: check every invariant that applies to it, and name the defects.

A symptom of the outputs (they depend on padding) and the attentions inside (one without a mask) together name the
defect. A symptom without such an explanation is reported as it was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.checks.behaviour import (
    OUTPUT_CHECKS,
    STEPPING,
    LengthLimit,
    Stepping,
    check_stepper,
    find_limit,
)
from manyheads.doctor.checks.internals import Internals, fill_findings, structure_findings, trace_internals
from manyheads.doctor.checks.memorization import (
    TrainingFunctions,
    loss_below_chance,
    memorization_findings,
    scoring_findings,
)
from manyheads.doctor.checks.training import (
    Collate,
    Vocabulary,
    default_collate,
    label_findings,
    trace_training_step,
)
from manyheads.doctor.model_adapter import Kind, ModelAdapter, Samples, restore_modes, restore_weights
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.doctor.wrapping import Masks, check_call, wrap_model
from manyheads.errors import UsageError

__all__ = ["examine"]

LOSS_ABOVE_CHANCE = "on random targets the loss stays above chance"
Symptoms = Mapping[str, str]  # evidence by the symptom of an output check, empty where all is well


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
            report += check_stepper(adapter, samples, stepper)
        elif "target" in adapter.sides:
            report += make_report([], [], [(STEPPING, "stepper was not given")])
        if train_step is None:
            report += make_report([], [], [(LOSS_ABOVE_CHANCE, "train_step was not given")])
        else:
            collate = collate or default_collate(adapter, time_first=time_first)
            functions = TrainingFunctions(train_step, collate, greedy, score, updates)
            with restore_weights(adapter.module), torch.enable_grad():
                report += check_training(adapter, functions, report, seed)
    return report


def check_training(adapter: ModelAdapter, functions: TrainingFunctions, report: Report, seed: int) -> Report:
    """Check training steps, decoding after training, and scoring.

    Raises:
        UsageError: the model is an encoder, or a function that names no module.
    """
    if adapter.module is None or "target" not in adapter.sides:
        raise UsageError(
            "train_step can be examined with a model that writes a target and whose nn.Module is available: give "
            "the module, or a function that names it."
        )
    vocabulary = Vocabulary(adapter, seed)
    adapter.module.train()
    trained_batch = trace_training_step(adapter, functions.train_step, functions.collate, vocabulary)
    findings = [] if trained_batch is None else list(label_findings(adapter, trained_batch))
    asked = [] if trained_batch is None else ["labels are the next tokens, from the first to the end mark"]
    floor = loss_below_chance(functions.train_step, functions.collate, vocabulary)
    explained = {"target-not-shifted", "sees-the-future", "mask-fill", "padding-in-loss", "rows-mixed"}
    if floor and not explained & {*report.names, *(finding.name for finding in findings)}:
        findings.append(model_finding("below-the-floor", floor))
    findings = [
        replace(finding, evidence=f"{finding.evidence}; {floor}")
        if floor and finding.name in explained
        else finding
        for finding in findings
    ]
    asked.append(LOSS_ABOVE_CHANCE)
    if functions.score is not None and trained_batch is not None:
        findings += scoring_findings(functions.score, functions.collate, trained_batch, vocabulary)
        asked.append("scored outputs are decoded without the reference")
    if functions.greedy is not None:
        known = {finding.name for finding in (*report.findings, *findings) if finding.severity == "error"}
        adapter.module.train()
        for finding in memorization_findings(functions, adapter, trained_batch, vocabulary):
            consequence = finding.name in ("not-learned", "decodes-otherwise")
            findings += [] if consequence and known else [finding]
            known |= {finding.name} if finding.severity == "error" else set()
        asked.append("memorised pairs are decoded exactly")
    return make_report(findings, asked)


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


def diagnose(
    adapter: ModelAdapter, symptoms: Symptoms, internals: Internals, limit: LengthLimit | None
) -> Iterator[Finding]:
    """Yield the defects that symptoms and internals show."""
    for symptom, name in (("random", "random-in-evaluation"), ("not_finite", "not-a-number")):
        if symptoms[symptom]:
            yield model_finding(name, symptoms[symptom])
    if symptoms["random"] or symptoms["not_finite"]:  # scores that differ then show no dependence
        symptoms = {**dict.fromkeys(symptoms, ""), "unread": symptoms["unread"]}
    fills = list(fill_findings(internals))
    yield from fills
    yield from structure_findings(adapter, internals)
    useless_fill = any(finding.severity == "error" for finding in fills)
    yield from look_ahead(symptoms, internals, useless_fill=useless_fill)
    yield from source_padding(symptoms, internals, useless_fill=useless_fill)
    if symptoms["left_padding"]:
        yield model_finding("depends-on-left-padding", symptoms["left_padding"])
    if symptoms["neighbours"]:
        name = "rows-mixed" if internals.across_rows else "depends-on-the-batch"
        yield model_finding(name, symptoms["neighbours"])
    if symptoms["unread"] and not internals.without_meaning:
        yield model_finding("source-not-read", symptoms["unread"])
    if limit is not None:
        raised = f"{type(limit.error).__name__}: {str(limit.error).partition(chr(10))[0]}"
        evidence = f"{limit.side}s of {limit.length} tokens go through, of {limit.length + 1} raise {raised}"
        yield model_finding("position-limit", evidence)


def look_ahead(symptoms: Symptoms, internals: Internals, *, useless_fill: bool) -> Iterator[Finding]:
    """Yield findings about later target tokens that real or padded positions see."""
    unmasked = internals.without_look_ahead_mask
    if symptoms["future"] and not symptoms["neighbours"] and (unmasked or not useless_fill):
        evidence = symptoms["future"] + count_clause(unmasked, internals.decoder_self)
        yield model_finding("sees-the-future", evidence)
    without_keys = [attention for attention in internals.decoder_self if internals.hides_every_key(attention)]
    if symptoms["padded_query"] and not symptoms["future"]:
        yield model_finding("padding-mask-on-queries", symptoms["padded_query"])
    elif without_keys:
        evidence = f"in {len(without_keys)} self-attentions of the decoder, padded queries have no key left"
        yield model_finding("padding-mask-on-queries", evidence)


def source_padding(symptoms: Symptoms, internals: Internals, *, useless_fill: bool) -> Iterator[Finding]:
    """Yield findings about source padding that results depend on."""
    visible = internals.with_visible_padding
    evidence = symptoms["padding"]
    if not evidence and symptoms["unread"] and visible:
        evidence = "the source is not read, which hides it from the scores, but inside it is seen"
    if not evidence or (useless_fill and not visible):
        return
    without_keys = [attention for attention in visible if internals.hides_every_key(attention)]
    if visible and len(without_keys) == len(visible):
        yield model_finding("padding-mask-on-queries", evidence + count_clause(without_keys, internals.on_source))
    elif visible or not internals.on_source:
        yield model_finding("no-source-padding-mask", evidence + count_clause(visible, internals.on_source))
    elif not internals.without_meaning:
        yield model_finding("depends-on-the-batch", evidence)


def count_clause(unmasked: Sequence[object], attentions: Sequence[object]) -> str:
    """Return a clause for the evidence that counts attentions without the mask, empty where there are none."""
    return f"; {len(unmasked)} of {len(attentions)} attentions there lack the mask" if unmasked else ""
