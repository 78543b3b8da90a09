"""Examine anyone's model: ask what can be asked, and name what is wrong.

A symptom (the outputs depend on padding) and what is seen inside (an attention without a mask) together name the
defect. A symptom that nothing seen inside explains is told as it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from manyheads.doctor.anatomy import Anatomy, dissect, fill_findings, structure_findings
from manyheads.doctor.behaviour import LengthLimit, Symptoms, find_limit, observe
from manyheads.doctor.defects import found
from manyheads.doctor.patient import Kind, Masks, Patient, admit, modes_kept
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.doctor.samples import Samples

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
    longest: int = 1024,
    seed: int = 0,
) -> Report:
    """Examine a model of anyone's.

    Args:
        model: an nn.Module or a function of (source_ids (B, S), target_ids (B, T)) that returns logits (B, T, V);
            an object with encode(source) and decode(target, memory...); a Hugging Face model. Modules are put
            into eval() and train() meanwhile, and left as they were.
        vocab_size: the number of token ids, or a pair (source, target). Not needed for Hugging Face models.
        pad: the id of padding; without it nothing is asked about padding.
        bos: the mark that begins a target.
        eos: the mark that ends a target.
        kind: "encoder-decoder", "encoder" or "decoder" (one argument each), if it is not the first.
        masks: a function of the ids that gives the further arguments of the model, in order.
        time_first: ids are (S, B) and (T, B), logits (T, B, V).
        left_padding: results must not depend on padding before the text either.
        longest: tokens; up to this length texts are tried, unless the model states a lower limit.
        seed: of the ids the model is examined with.

    Raises:
        UsageError: it cannot be told how to call the model.
    """
    patient = admit(
        model, vocab_size=vocab_size, pad=pad, bos=bos, eos=eos, kind=kind, masks=masks, time_first=time_first
    )
    samples = Samples(patient, seed)
    with modes_kept(patient.module):
        if patient.module is not None:
            patient.module.eval()
        symptoms = observe(patient, samples, left_padding=left_padding)
        anatomy = dissect(patient, samples)
        limit = find_limit(patient, samples, longest) if patient.device.type == "cpu" else None
    return make_report(list(diagnose(patient, symptoms, anatomy, limit)), asked(patient, left_padding=left_padding))


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
    if symptoms.neighbours and quiet:
        name = (
            "rows-mixed"
            if symptoms.future or symptoms.padding or not anatomy.attentions
            else "depends-on-the-batch"
        )
        yield found(name, symptoms.neighbours)
    values = [finding for finding in structure_findings(patient, anatomy) if finding.name == "mask-as-value"]
    if symptoms.unread and not values:
        yield found("source-not-read", symptoms.unread)
    if limit is not None:
        raised = f"{type(limit.error).__name__}: {str(limit.error).splitlines()[0] if str(limit.error) else ''}"
        evidence = f"{limit.side}s of {limit.length} tokens go through, of {limit.length + 1} raise {raised}"
        yield found("position-limit", evidence)


def look_ahead(symptoms: Symptoms, anatomy: Anatomy, *, useless_fill: bool, quiet: bool) -> Iterator[Finding]:
    """The future of the target, seen from real and from padded positions."""
    open_eyes = anatomy.without_look_ahead_mask
    if symptoms.future and quiet and not symptoms.neighbours and (open_eyes or not useless_fill):
        yield found("sees-the-future", symptoms.future + counted(open_eyes, anatomy.decoder_self))
    blind = anatomy.with_blind_queries(anatomy.decoder_self, anatomy.target_padded)
    if symptoms.padded_query and not symptoms.future and quiet:
        yield found("padding-mask-on-queries", symptoms.padded_query)
    elif blind and patient_has_padding(anatomy):
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
    blind = anatomy.with_blind_queries(visible, anatomy.source_padded) if visible else []
    if visible and len(blind) == len(visible):
        yield found("padding-mask-on-queries", evidence + counted(blind, anatomy.on_source))
    elif visible or not anatomy.on_source:
        yield found("no-source-padding-mask", evidence + counted(visible, anatomy.on_source))
    else:
        yield found("depends-on-the-batch", evidence)


def patient_has_padding(anatomy: Anatomy) -> bool:
    """Whether the passes that were listened to had padded targets."""
    return bool(anatomy.target_padded.any())


def counted(those: Sequence[object], all_of_them: Sequence[object]) -> str:
    """A half sentence for the evidence, if anything was seen inside."""
    return f"; {len(those)} of {len(all_of_them)} attentions there lack the mask" if those else ""
