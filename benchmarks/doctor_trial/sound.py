"""The sound part of the doctor's trial: findings in sound models, in three precisions and two kinds of weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from transformer_doctor import examine, small_models

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
STRONG = 2.0  # factor of the weights of the second kind
Row = dict[str, Any]


VARIANTS = tuple(f"{precision} {weights}" for precision in PRECISIONS for weights in ("own", "other"))


def names(variants: Sequence[str] = VARIANTS) -> list[str]:
    """Return the names of the cases: group, model, and the precisions and kinds of weights."""
    from benchmarks.doctor_trial.other_libraries import PEERS  # of the doctor's tests, which need pytest

    models = [*(f"library {name}" for name in small_models.library_names()), *(f"peer {name}" for name in PEERS)]
    return [f"{model} / {', '.join(variants)}" for model in models]


def sound_case(name: str) -> list[Row]:
    subject, variants = name.split(" / ")
    group, model_name = subject.split(" ", 1)
    make = library_model if group == "library" else peer_model
    rows = [{"model": model_name, **variant_row(make(model_name), variant)} for variant in variants.split(", ")]
    return rows[:1] if "left out" in rows[0] else rows


def variant_row(made: Made | Row, variant: str) -> Row:
    if isinstance(made, dict):
        return made
    torch.manual_seed(1)
    model, call, run_examine = made
    precision, weights = variant.split(" ")
    if weights == "other":
        weights, change = other_weights(model)
        change(model)
    model.eval().to(PRECISIONS[precision])
    row: Row = {"weights": weights, "precision": precision}
    try:
        call(model)
    except Exception as error:  # any exception of the model
        return {**row, "not called": f"{type(error).__name__}: {error}".partition("\n")[0][:200]}
    start = time.perf_counter()
    return {**row, **examination_row(lambda: run_examine(model)), "seconds": time.perf_counter() - start}


Made = tuple[nn.Module, Callable[[Any], Any], Callable[[Any], Any]]


def library_model(name: str) -> Made | Row:
    """Return a model of transformers, the smallest that can be called, or why there is none."""
    import transformers

    transformers.logging.set_verbosity_error()
    try:
        model = small_models.small_model(name)
    except small_models.NotBuilt as error:
        return {"left out": str(error)}
    return model, small_models.call_model, partial(examine, kind=small_models.kind_of(name))


def peer_model(name: str) -> Made | Row:
    """Return a model of another library or of a tutorial, or why there is none."""
    from benchmarks.doctor_trial.other_libraries import PEERS

    try:
        model, options = PEERS[name]()
    except ImportError as error:
        return {"left out": f"not installed: {error.name}"}
    return model, options.pop("call"), lambda model: examine(model, **options)


def examination_row(run_examine: Callable[[], Any]) -> Row:
    """Return the findings of an examination, or the exception that it ended with."""
    try:
        report = run_examine()
    except Exception as error:  # a crash of the doctor is a result of the trial
        return {"crash": f"{type(error).__name__}: {error}"[:600]}
    found = [[finding.name, finding.severity, finding.evidence] for finding in report.findings]
    return {
        "found": found,
        "asked": len(report.asked),
        "skipped": [list(pair) for pair in report.skipped],
        "remarks": list(report.remarks),
    }


def judged(row: Row, wanted: set[str]) -> Row:
    """Return whether a finding names the defect, whether any was made, and those that do not name it."""
    every = {name for name, _, _ in row.get("found", [])}
    strong = {name for name, severity, _ in row.get("found", []) if severity != "note"}
    named = bool(wanted & every)
    return {
        "defect": bool(wanted),
        "named": named,
        "noticed": named or bool(strong),
        "beside": sorted(strong - wanted),
    }


def other_weights(model: Any) -> tuple[str, Callable[[nn.Module], None]]:
    """Return another kind of weights: an output layer of zeros, or larger weights where it is tied or unknown."""
    get = getattr(model, "get_output_embeddings", None)
    head = get() if get is not None else None
    weights = [parameter for _, parameter in model.named_parameters(remove_duplicate=False)]
    if isinstance(head, nn.Linear) and sum(weight is head.weight for weight in weights) == 1:
        return "head of zeros", lambda subject: zero(subject.get_output_embeddings())
    return f"times {STRONG:g}", strengthen


@torch.no_grad()
def zero(head: nn.Linear) -> None:
    for parameter in head.parameters():
        parameter.zero_()


@torch.no_grad()
def strengthen(model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(STRONG)
