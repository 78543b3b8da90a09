"""Name the defects that the outputs of a model and the attentions inside it show together.

A symptom of the outputs (they depend on padding) and the attentions inside (one without a mask) together name the
defect. A symptom without such an explanation is reported as it was seen. Masks that leave the future visible are
reported without a symptom where zero weights hide it from the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.behaviour import LAST_CALL, LONGER_ROWS
from transformer_doctor.checks.internals import Internals, fill_findings, structure_findings
from transformer_doctor.checks.lengths import LengthLimit
from transformer_doctor.checks.masks import AttentionPart, MaskFault
from transformer_doctor.errors import headline
from transformer_doctor.places import raising_place
from transformer_doctor.report import Finding

# symptoms of which a difference between rows of unequal lengths is a consequence
_MORE_THAN_ROWS = ("padding", "future", "unread", "depends-on-the-length")

# symptoms that a wrong axis of the softmax, and hidden tokens, explain
_EXPLAINED = {
    "softmax-axis": ("future", "padded_query", "padding", "neighbours", "longer_rows", "depends-on-the-length"),
    "attention-differs": ("longer_rows", "depends-on-the-length"),
}

LENGTHS = "long texts raise a clear error or none"
Symptoms = Mapping[str, str]  # evidence by the symptom of an output check, empty where all is well


def diagnose(symptoms: Symptoms, internals: Internals, limit: LengthLimit | None) -> Iterator[Finding]:
    """Yield findings from the outputs of a model and the attentions inside it together."""
    structure = list(structure_findings(internals))
    fills = list(fill_findings(internals))
    yield from (*fills, *structure)
    not_finite = symptoms["not_finite"]
    if symptoms["random"] and not not_finite:
        yield model_finding("random-in-evaluation", symptoms["random"])
    elif symptoms["last_call"] and not not_finite:
        finding = in_case(model_finding("random-in-evaluation", symptoms["last_call"]), "state-kept")
        yield replace(finding, check=LAST_CALL)
    if symptoms["random"] or not_finite:  # a difference of scores is then no evidence of a dependence
        symptoms = {**dict.fromkeys(symptoms, ""), "unread": symptoms["unread"]}
    for finding in structure:
        symptoms = {**symptoms, **dict.fromkeys(_EXPLAINED.get(finding.name, ()), "")}
    useless_fill = any(finding.severity == "error" for finding in fills)
    masks = [
        *_look_ahead(symptoms, internals, not_finite, useless_fill=useless_fill),
        *_source_padding(symptoms, internals, not_finite, useless_fill=useless_fill),
    ]
    yield from masks
    if not_finite and not masks and not any(finding.name == "softmax-axis" for finding in structure):
        yield model_finding("not-a-number", not_finite)
    if symptoms["left_padding"]:
        yield model_finding("depends-on-left-padding", symptoms["left_padding"])
    if symptoms["neighbours"]:
        across_rows = any(
            attention.queries == attention.keys == internals.sizes[0] for attention in internals.attentions
        )
        yield model_finding("rows-mixed" if across_rows else "depends-on-the-batch", symptoms["neighbours"])
    elif symptoms["longer_rows"] and not any(symptoms[name] for name in _MORE_THAN_ROWS):
        finding = in_case(model_finding("depends-on-the-batch", symptoms["longer_rows"]), "longer-rows")
        yield replace(finding, check=LONGER_ROWS)
    if symptoms["depends-on-the-length"] and not any(symptoms[name] for name in ("future", "neighbours")):
        yield model_finding("depends-on-the-length", symptoms["depends-on-the-length"])
    if symptoms["unread"] and not internals.without_meaning:
        yield model_finding("source-not-read", symptoms["unread"])
    if limit is not None:
        yield from _limit_findings(limit)


def _limit_findings(limit: LengthLimit) -> Iterator[Finding]:
    """Yield a finding about the longest text: a note if the code's own error states the limit."""
    message = headline(limit.error)
    evidence = f"{limit.side}s of {limit.length} tokens go through, of {limit.length + 1} raise {message}"
    clear = isinstance(limit.error, AssertionError) and str(limit.length) in message
    yield model_finding("position-limit", evidence, "note" if clear else None).at(raising_place(limit.error))


def _look_ahead(
    symptoms: Symptoms, internals: Internals, not_finite: str, *, useless_fill: bool
) -> Iterator[Finding]:
    """Yield findings about later target tokens that real or padded positions see."""
    part = internals.decoder_self
    faults = [fault for fault in part.faults if fault not in (None, "fill")]
    evidence = symptoms["future"]
    if not evidence and faults and not_finite:
        evidence = not_finite
    elif not evidence and faults and not internals.reads_past:
        evidence = "scores do not depend on any other token yet, as after a start from zero weights"
    if evidence and not symptoms["neighbours"] and (faults or not useless_fill):
        finding = _masked_finding("sees-the-future", evidence, [part])
        yield finding if any(part.faults) else in_case(finding, "future-in-layer")
    without_keys = internals.without_keys
    padded = symptoms["padded_query"]
    if padded and not symptoms["future"] and ("NaN" in padded or not internals.hides_padded_target_keys):
        yield model_finding("padding-mask-on-queries", padded)
    elif without_keys:
        evidence = f"in {len(without_keys)} self-attentions of the decoder, padded queries have no key left"
        yield model_finding("padding-mask-on-queries", evidence).at(without_keys[0].place)


def _source_padding(
    symptoms: Symptoms, internals: Internals, not_finite: str, *, useless_fill: bool
) -> Iterator[Finding]:
    """Yield findings about source padding that results depend on."""
    parts = internals.on_source
    faults = [fault for part in parts for fault in part.faults if fault not in (None, "fill")]
    evidence = symptoms["padding"]
    if not evidence and not_finite and "inverted" in faults:
        evidence = not_finite
    if not evidence and symptoms["unread"] and faults:
        evidence = "the source is not read, which hides it from the scores, but inside it is seen"
    if not evidence or (useless_fill and not faults):
        return
    if faults and all(part.hides_in_reverse for part in parts):
        yield model_finding("depends-on-left-padding", f"{evidence}; the source is read in reverse, padding first")
    elif faults and all(fault == "queries" for fault in faults):
        yield _masked_finding("padding-mask-on-queries", evidence, parts)
    elif faults or not (parts or internals.without_meaning):
        yield _masked_finding("no-source-padding-mask", evidence, parts)
    elif not internals.without_meaning:
        yield model_finding("depends-on-the-batch", evidence)


def _masked_finding(name: str, evidence: str, parts: Sequence[AttentionPart]) -> Finding:
    """Return a finding about masks whose evidence counts the attentions, and whose cure fits the usual fault."""
    clauses = [clause for part in parts for clause in [part.clause(skip=["fill"])] if clause]
    if clauses:
        complete = [part for part in parts if not any(part.faults)]
        clauses += [f"{part.name} 0 of {len(part.layers)}" for part in complete]
        evidence = "; ".join([evidence, *clauses])
    finding = model_finding(name, evidence)
    faults: list[MaskFault] = [fault for part in parts for fault in part.faults if fault not in (None, "fill")]
    common = max(faults, key=faults.count, default="absent")
    wrong = [layer for part in parts for layer, fault in zip(part.layers, part.faults, strict=True) if fault]
    finding = finding.at(wrong[0][0].place) if wrong else finding
    return finding if common in ("absent", "queries") else in_case(finding, f"mask-{common}")
