"""Call a model and return its scores, their gradients with respect to its embeddings, or its trace.

Shapes: B batch, T target length, V vocabulary, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor

from transformer_doctor.attention_tracer import AttentionTracer, StreamsKnown
from transformer_doctor.catalogue import model_finding
from transformer_doctor.errors import headline, is_for_users, is_from_user
from transformer_doctor.model_adapter import ModelAdapter
from transformer_doctor.places import place_of, raising_place
from transformer_doctor.report import Report, Severity, report_on

P = ParamSpec("P")


@contextmanager
def errors_of(name: str, code: Any, severity: Severity | None = None) -> Iterator[None]:
    """Give exceptions of code of the user a finding, which `report.attempt` reports; also a decorator.

    An exception that a check expects and catches is no finding.
    """
    try:
        yield
    except Exception as error:
        place = raising_place(error)
        in_tracer = place is not None and not is_from_user(error)
        if not (is_for_users(error) or in_tracer or hasattr(error, "finding")):
            finding = model_finding("raises-an-error", f"{name} raised {headline(error)}", severity)
            vars(error)["finding"] = finding.at(place or place_of(code))
        raise


def report_errors(examination: Callable[P, Report]) -> Callable[P, Report]:
    """Make an exception of what the user gave to an examination its finding; a decorator."""

    @wraps(examination)
    def examine(*args: P.args, **options: P.kwargs) -> Report:
        try:
            with errors_of("the code", next(iter((*args, *options.values())), None)):
                return examination(*args, **options)
        except Exception as error:  # any exception of the user's code
            if not hasattr(error, "finding") or not is_from_user(error):
                raise
            return report_on(error.finding.check, [error.finding])

    return examine


@torch.no_grad()
def run(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> Tensor:
    """Return the scores on the CPU, without gradients."""
    return adapter(ids).cpu()


def gradients(
    adapter: ModelAdapter, ids: Mapping[str, Tensor], side: str, positions: Iterable[int | slice]
) -> Iterator[tuple[int, Tensor]]:
    """Yield, for positions of the scores, the gradient of the embeddings of a side: (position, (B, length, D)).

    Yields nothing where the model looks up no embeddings of these ids, or computes without gradients.
    """
    watched = {name: rows.to(adapter.device) for name, rows in ids.items()}
    with torch.enable_grad(), AttentionTracer(watched, leaves=True) as tracer:
        scores = adapter(watched)
    leaf = tracer.leaf(side)
    if leaf is None or not scores.requires_grad:
        return
    weights = torch.randn(scores.shape, generator=torch.Generator().manual_seed(2)).to(scores)
    for position in positions:
        weighted_sum = (scores[:, position] * weights[:, position]).nan_to_num().sum()
        (gradient,) = torch.autograd.grad(
            weighted_sum, leaf, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        time_first = gradient.shape[:2] != ids[side].shape
        yield (
            position if isinstance(position, int) else 0,
            (gradient.transpose(0, 1) if time_first else gradient).cpu(),
        )


@torch.no_grad()
def first_stream(adapter: ModelAdapter, ids: Mapping[str, Tensor], side: str) -> Tensor | None:
    """Return the input of the first layer of a side, None if it is not seen; the model runs until it is known."""
    watched = {name: rows.to(adapter.device) for name, rows in ids.items()}
    with AttentionTracer({side: watched[side]}, streams_only=True) as tracer, suppress(StreamsKnown):
        adapter(watched)
    return tracer.streams.get(side)


@torch.no_grad()
def trace_pass(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> tuple[AttentionTracer, Tensor]:
    """Run one forward pass and return its trace, and the scores."""
    watched = {side: rows.to(adapter.device) for side, rows in ids.items()}
    with AttentionTracer(watched) as tracer:
        scores = adapter(watched)
    for attention in tracer.attentions:
        attention.to_cpu()
    return tracer, scores
