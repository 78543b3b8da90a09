"""Examine anyone's model: ask what can be asked, and name what is wrong.

A symptom (the outputs depend on padding) and what is seen inside (an attention without a mask) together name the
defect. A symptom that nothing seen inside explains is told as it was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.doctor.admission import Masks, admit, tried
from manyheads.doctor.anatomy import Anatomy, dissect, fill_findings, structure_findings
from manyheads.doctor.behaviour import LengthLimit, Symptoms, find_limit, observe
from manyheads.doctor.defects import found
from manyheads.doctor.learning import Lessons, falls_below_the_floor, learned_by_heart, scoring_findings
from manyheads.doctor.lessons import Collate, Vocabulary, default_collate, lesson_findings, read_lesson
from manyheads.doctor.patient import Kind, Patient, modes_kept, weights_kept
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.doctor.samples import Samples
from manyheads.doctor.stepping import Stepping, check_stepper
from manyheads.errors import UsageError

__all__ = ["diagnose", "examine"]


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
    """Examine a model of anyone's.

    Args:
        model: an nn.Module or a function of (source_ids (B, S), target_ids (B, T)) that returns logits (B, T, V);
            an object with encode(source) and decode(target, memory...); a Hugging Face model. Modules, of a
            function those it names, are put into eval() and train() meanwhile, and left as they were.
        vocab_size: the number of token ids, or a pair (source, target). Not needed for Hugging Face models.
        pad: the id of padding; without it nothing is asked about padding.
        bos: the mark that begins a target.
        eos: the mark that ends a target.
        kind: "encoder-decoder", "encoder" or "decoder" (one argument each), if it is not the first.
        masks: a function of the ids that gives the further arguments of the model, in order.
        time_first: ids are (S, B) and (T, B), logits (T, B, V).
        left_padding: results must not depend on padding before the text either.
        train_step: one update on a batch, what `collate` returned being its arguments; returns the loss. It is
            called `updates` times at most and the weights are put back afterwards, but not the state of an
            optimizer: give it one of its own.
        collate: rows of ids without marks, of the source and of the target, to a batch. Without it a batch is two
            tensors: sources with `eos`, targets between `bos` and `eos`, padded at the end.
        greedy: the first of what `collate` returned to rows of target ids; needs train_step.
        score: evaluates the model's output on a batch, given like that of train_step; needs train_step.
        stepper: source ids (B, S) to an object whose step(tokens (B,)) returns the scores of the next token (B, V).
        updates: how many updates may be made to learn four pairs by heart.
        longest: tokens; up to this length texts are tried, unless the model states a lower limit.
        seed: of the ids the model is examined with.

    Raises:
        UsageError: it cannot be told how to call the model, or `train_step` is missing where it is needed.
    """
    if train_step is None and (greedy or score):
        raise UsageError("greedy and score are held against training: give train_step too.")
    patient = admit(
        model, vocab_size=vocab_size, pad=pad, bos=bos, eos=eos, kind=kind, masks=masks, time_first=time_first
    )
    samples = Samples(patient, seed)
    with modes_kept(patient.module):
        if patient.module is not None:
            patient.module.eval()
        tried(patient, samples.with_the_highest())
        symptoms = observe(patient, samples, left_padding=left_padding)
        anatomy = dissect(patient, samples)
        limit = find_limit(patient, samples, longest) if patient.device.type == "cpu" else None
        report = make_report(
            list(diagnose(patient, symptoms, anatomy, limit)), asked(patient, left_padding=left_padding)
        )
        if stepper is not None:
            report += check_stepper(patient, samples, stepper)
        if train_step is not None:
            collate = collate or default_collate(patient, time_first=time_first)
            lessons = Lessons(train_step, collate, greedy, score, updates)
            with weights_kept(patient.module), torch.enable_grad():
                report += check_lessons(patient, lessons, report, seed)
    return report


def check_lessons(patient: Patient, lessons: Lessons, report: Report, seed: int) -> Report:
    """What training teaches, what decoding makes of it, and how it is scored.

    Raises:
        UsageError: the model is an encoder, or a function that names no module.
    """
    if patient.module is None or "target" not in patient.sides:
        raise UsageError(
            "train_step can be examined with a model that writes a target and whose nn.Module is at hand: give the "
            "module, or a function that names it."
        )
    vocabulary = Vocabulary(patient, seed)
    patient.module.train()
    lesson = read_lesson(patient, lessons.train_step, lessons.collate, vocabulary)
    findings = [] if lesson is None else list(lesson_findings(patient, lesson))
    asked = [] if lesson is None else ["labels are the next tokens, from the first to the end mark"]
    floor = falls_below_the_floor(lessons.train_step, lessons.collate, vocabulary)
    explained = {"target-not-shifted", "sees-the-future", "mask-fill", "padding-in-loss", "rows-mixed"}
    if floor and not explained & {*report.names, *(finding.name for finding in findings)}:
        findings.append(found("below-the-floor", floor))
    findings = [
        replace(finding, evidence=f"{finding.evidence}; {floor}")
        if floor and finding.name in explained
        else finding
        for finding in findings
    ]
    asked.append("on random targets the loss stays above chance")
    if lessons.score is not None and lesson is not None:
        findings += scoring_findings(lessons.score, lessons.collate, lesson, vocabulary)
        asked.append("what is scored is decoded without the reference")
    if lessons.greedy is not None:
        known = {finding.name for finding in (*report.findings, *findings) if finding.severity == "error"}
        patient.module.train()
        for finding in learned_by_heart(lessons, patient, lesson, vocabulary):
            consequence = finding.name in ("not-learned", "decodes-otherwise")
            findings += [] if consequence and known else [finding]
            known |= {finding.name} if finding.severity == "error" else set()
        asked.append("what is learned by heart is decoded exactly")
    return make_report(findings, asked)


def asked(patient: Patient, *, left_padding: bool) -> list[str]:
    """The checks that could be made."""
    writes, padded = "target" in patient.sides, patient.pad is not None
    checks = {
        "eval() makes the model deterministic": True,
        "scores are numbers": True,
        "no position depends on later target tokens": writes,
        "padded target positions do not see the future": writes and padded,
        "results do not depend on source padding": patient.source_size > 0 and padded,
        "results do not depend on padding before the text": left_padding and padded,
        "results do not depend on the rest of the batch": True,
        "scores depend on the source": patient.kind == "encoder-decoder",
        "attention is scaled, masked and projected as in the paper": True,
        "dropout leaves the residual stream alone": patient.module is not None,
        "tokens are not drowned by positions": True,
        "long texts fail with words or not at all": patient.device.type == "cpu",
    }
    return [check for check, possible in checks.items() if possible]


def diagnose(
    patient: Patient, symptoms: Symptoms, anatomy: Anatomy, limit: LengthLimit | None
) -> Iterator[Finding]:
    """Symptoms and what is seen inside -> named defects."""
    if symptoms.random:
        yield found("random-in-evaluation", symptoms.random)
    if symptoms.not_finite:
        yield found("not-a-number", symptoms.not_finite)
    fills = list(fill_findings(anatomy))
    yield from fills
    yield from structure_findings(patient, anatomy)
    useless_fill = any(finding.severity == "error" for finding in fills)
    quiet = not symptoms.random and not symptoms.not_finite
    yield from look_ahead(symptoms, anatomy, useless_fill=useless_fill, quiet=quiet)
    yield from source_padding(symptoms, anatomy, useless_fill=useless_fill, quiet=quiet)
    if symptoms.left_padding and quiet:
        yield found("depends-on-left-padding", symptoms.left_padding)
    if symptoms.neighbours and quiet:
        name = "rows-mixed" if anatomy.across_rows else "depends-on-the-batch"
        yield found(name, symptoms.neighbours)
    if symptoms.unread and not anatomy.without_meaning:
        yield found("source-not-read", symptoms.unread)
    if limit is not None:
        raised = f"{type(limit.error).__name__}: {str(limit.error).partition(chr(10))[0]}"
        evidence = f"{limit.side}s of {limit.length} tokens go through, of {limit.length + 1} raise {raised}"
        yield found("position-limit", evidence)


def look_ahead(symptoms: Symptoms, anatomy: Anatomy, *, useless_fill: bool, quiet: bool) -> Iterator[Finding]:
    """The future of the target, seen from real and from padded positions."""
    open_eyes = anatomy.without_look_ahead_mask
    if symptoms.future and quiet and not symptoms.neighbours and (open_eyes or not useless_fill):
        yield found("sees-the-future", symptoms.future + counted(open_eyes, anatomy.decoder_self))
    blind = [one for one in anatomy.decoder_self if anatomy.blind(one)]
    if symptoms.padded_query and not symptoms.future and quiet:
        yield found("padding-mask-on-queries", symptoms.padded_query)
    elif blind:
        evidence = f"in {len(blind)} self-attentions of the decoder, padded queries have no key left"
        yield found("padding-mask-on-queries", evidence)


def source_padding(symptoms: Symptoms, anatomy: Anatomy, *, useless_fill: bool, quiet: bool) -> Iterator[Finding]:
    """Padding of the source, before and after the text."""
    visible = anatomy.with_visible_padding
    evidence = symptoms.padding if quiet else None
    if evidence is None and symptoms.unread and visible:
        evidence = "the source is not read, which hides it from the scores, but inside it is seen"
    if evidence is None or (useless_fill and not visible):
        return
    blind = [one for one in visible if anatomy.blind(one)]
    if visible and len(blind) == len(visible):
        yield found("padding-mask-on-queries", evidence + counted(blind, anatomy.on_source))
    elif visible or not anatomy.on_source:
        yield found("no-source-padding-mask", evidence + counted(visible, anatomy.on_source))
    elif not anatomy.without_meaning:
        yield found("depends-on-the-batch", evidence)


def counted(those: Sequence[object], all_of_them: Sequence[object]) -> str:
    """A half sentence for the evidence, if anything was seen inside."""
    return f"; {len(those)} of {len(all_of_them)} attentions there lack the mask" if those else ""
