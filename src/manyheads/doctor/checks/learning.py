"""Check the functions of a project that train, decode and score."""

from __future__ import annotations

from dataclasses import replace

from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.checks.memorization import (
    TrainingFunctions,
    loss_below_chance,
    memorization_findings,
    scoring_findings,
)
from manyheads.doctor.checks.training import Vocabulary, label_findings, trace_training_step
from manyheads.doctor.model_adapter import ModelAdapter
from manyheads.doctor.report import Report, make_report
from manyheads.errors import UsageError

__all__ = ["LOSS_ABOVE_CHANCE", "check_training"]

LOSS_ABOVE_CHANCE = "on random targets the loss stays above chance"


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
