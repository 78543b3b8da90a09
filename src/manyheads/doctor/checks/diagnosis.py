"""Name the defects that the outputs of a model and the attentions inside it show together.

A symptom of the outputs (they depend on padding) and the attentions inside (one without a mask) together name the
defect. A symptom without such an explanation is reported as it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.checks.behaviour import LengthLimit
from manyheads.doctor.checks.internals import Internals, fill_findings, structure_findings
from manyheads.doctor.model_adapter import ModelAdapter
from manyheads.doctor.report import Finding

__all__ = ["Symptoms", "diagnose"]

Symptoms = Mapping[str, str]  # evidence by the symptom of an output check, empty where all is well


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
