"""`manyheads doctor RUN`: curves, weights, reading, decoding and outputs, after training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.doctor.after.curves import curve_findings
from manyheads.doctor.after.inside import weight_findings
from manyheads.doctor.diagnosis import Diagnosis
from manyheads.doctor.report import make_report
from manyheads.runs.examination.at_hand import TextAtHand, broken_tensors, curves_of
from manyheads.runs.examination.classifier import examine_classifier
from manyheads.runs.examination.language_model import examine_language_model, examine_masked
from manyheads.runs.examination.translator import examine_translator
from manyheads.training.log import Listener, SilentListener

__all__ = ["examine_run"]

NO_LISTENER = SilentListener()


def examine_run(path: Path, *, overrides: Sequence[str] = (), listener: Listener = NO_LISTENER) -> Diagnosis:
    """Examine a trained run; nothing is changed.

    Args:
        path: the run directory.
        overrides: settings such as `data.root=DIR`.
        listener: who is told of the way.

    Raises:
        RunError: it is no run, or it is damaged.
    """
    run = RunDirectory.existing(path)
    config = with_overrides(run.config(), overrides)
    tokenizers = run.tokenizers(config)
    weights = run.weights()
    facts = {"model": f"{sum(tensor.numel() for tensor in weights.values()):,} parameters"}
    broken = weight_findings(broken_tensors(weights))
    report = make_report(list(broken), ["all weights are numbers"])
    curves = curves_of(run)
    if curves.validations:
        step, loss = curves.best
        facts["training"] = f"{curves.last_step:,} updates; best validation loss {loss:.3f} at step {step:,}"
    chance = None
    if report.ok:
        listener.message("reading the text")
        text = TextAtHand.of(config)
        facts["text"] = text.fact
        listener.message("examining the model")
        examine_task = {
            "translation": examine_translator,
            "classification": examine_classifier,
            "language-modeling": examine_language_model,
            "masked-lm": examine_masked,
        }[config.task]
        found, told, chance = examine_task(run, config, tokenizers, text)
        report, facts = report + found, facts | told
    report += make_report(list(curve_findings(curves, chance)), ["the curves come down, and to rest"])
    return Diagnosis(str(path), facts, report)
