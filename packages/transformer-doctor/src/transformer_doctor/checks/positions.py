"""Find weak token embeddings and wrong sinusoids in the input of a model's first layer.

Shapes: B batch, L length, D model width, N columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import first_stream
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.report import Finding

# Ratio of tokens' deviation to that of positions below which tokens are lost. S0 has 1 / 121; a Marian model at its
# start without scale_embedding, which trains, has 1 / 35.
_WEAKEST = 1 / 40
_FITS = 2e-3  # share of a column's variance that a sinusoid leaves over, half precision included
_FLAT = 1e-2  # share of the largest deviation up to which a column counts as constant
_SLOWEST = 0.06  # radians per position: too little of slower sinusoids is seen
_SAME_FREQUENCY, _SAME_RATIO = 1e-2, 3e-2
_QUADRATURE = 0.1  # radians
_BASES = (300.0, 3e6)  # of the geometric progression: 10,000 in the paper
_REFINEMENTS = 4
_FEWEST_POSITIONS = 24
_TOKENS_FOR_SIGNAL, _POSITIONS_FOR_SIGNAL = 64, 31
_POSITIONS_FOR_SINUSOIDS = 64
_BORDERS = 8  # positions at the ends of a text that a convolution alone makes different
_BEYOND_LIMIT = 16  # tokens beyond a stated limit with which positions are looked at
_SHORT_POSITIONS, _SHORTER = 31, (15, 7)  # lengths that are tried where the model refuses longer ones


def signal(adapter: ModelAdapter, samples: Samples) -> dict[str, float]:
    """Return, by side, how much the first layer's input varies over tokens, as a ratio to that over positions."""
    # no mark at the first position: every position has all kinds of tokens
    rows = _TOKENS_FOR_SIGNAL
    streams = _first_streams(
        adapter, samples, _POSITIONS_FOR_SIGNAL, lambda side, length: samples.content(side, rows, length)
    )
    ratios = {side: _token_signal(stream, _TOKENS_FOR_SIGNAL) for side, (stream, _) in streams.items()}
    return {side: ratio for side, ratio in ratios.items() if ratio is not None}


def _first_streams(
    adapter: ModelAdapter, samples: Samples, longest: int, make: Callable[[str, int], Tensor]
) -> dict[str, tuple[Tensor, int]]:
    """Return, by side, the first layer's input and its length, for the longest ids that the model takes.

    `make` is a function of a side and a length that returns ids (B, length); the other side has its usual length.
    """
    longest = min(longest, adapter.stated_limit or longest)
    tried = [longest, *(length for length in (_SHORT_POSITIONS, *_SHORTER) if length < longest)]
    usual = {"source": samples.source, "target": samples.target}
    found = {}
    for side in adapter.sides:
        for length in [*([] if samples.fixed_length else tried), usual[side]]:
            ids = {other: make(other, length if other == side else usual[other]) for other in adapter.sides}
            try:
                stream = first_stream(adapter, ids, side)
            except Exception:  # any exception of the user's model
                if length == usual[side]:
                    raise
                continue
            if stream is not None:
                found[side] = stream, length
            break
    return found


def position_tables(
    adapter: ModelAdapter, samples: Samples, longest: int = _POSITIONS_FOR_SINUSOIDS
) -> dict[str, Tensor]:
    """Return, by side, the first layer's input for one token at every position: (L, D), L at most `longest`."""
    rows = max(2, samples.batch)
    streams = _first_streams(
        adapter, samples, longest,
        lambda side, length: torch.full((rows, length), adapter.content(side)[1]),
    )  # fmt: skip
    tables = {}
    for side, (stream, length) in streams.items():
        x = stream.flatten(2) if stream.dim() > 3 else stream
        if x.dim() == 2 and len(x) == rows * length:  # flattened, batch first or time first
            x = x.unflatten(0, (rows, length)) if torch.equal(x[:length], x[-length:]) else x[::rows][None]
        x = x[None] if x.dim() == 2 else x
        if x.size(1) != length and len(x) == length:
            x = x.transpose(0, 1)
        if x.size(1) == length:
            tables[side] = x[0]
    return tables


def repeated_positions(adapter: ModelAdapter, samples: Samples, longest: int) -> str:
    """Return the evidence that positions of long texts have the embeddings of earlier ones, empty if none do."""
    beyond = min(longest, (adapter.stated_limit or longest) + _BEYOND_LIMIT)
    for side, table in position_tables(replace(adapter, stated_limit=None), samples, beyond).items():
        new = len(torch.unique(table, dim=0))
        if _BORDERS < new < len(table) - 1:
            return f"{len(table)} {side} positions have {new} different embeddings"
    return ""


def _token_signal(stream: Tensor, batch: int) -> float | None:
    """Return how much a stream, (B, L, D), (L, B, D) or (B * L, D), varies over tokens, as a ratio to positions."""
    x = stream.float()
    if x.dim() == 2:  # (B * L, D)
        x = x.unflatten(0, (batch, -1)) if len(x) % batch == 0 else x[None]
    elif x.size(1) == batch:  # time first
        x = x.transpose(0, 1)
    if len(x) != batch or x.size(1) < 2:  # pooled texts have no positions
        return None
    over_tokens = x.var(0).mean()
    over_positions = (x.mean(0).var(0).mean() - over_tokens / len(x)).clamp_min(0)
    return float((over_tokens / over_positions).sqrt()) if over_positions > 1e-12 else math.inf


def embedding_findings(adapter: ModelAdapter, signal: Mapping[str, float]) -> Iterator[Finding]:
    """Yield findings about weak token embeddings and the embedding of padding."""
    weak = {side: ratio for side, ratio in signal.items() if ratio < _WEAKEST}
    if weak:
        sides = " and ".join(f"{1 / max(ratio, 1e-9):.0f} times on the {side} side" for side, ratio in weak.items())
        evidence = f"tokens vary less than positions where the first layer reads them: {sides}"
        yield model_finding("weak-embeddings", evidence)
    if adapter.module is None:
        return
    named = list(adapter.module.named_parameters(remove_duplicate=False))
    for part in adapter.module.modules():
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            tied = sum(weight is part.weight for _, weight in named) > 1
            strength = float(part.weight[part.padding_idx].detach().abs().max())
            if strength > 0 and not tied:
                evidence = f"the row {part.padding_idx} of an embedding of {len(part.weight)} rows"
                yield model_finding("pad-row-overwritten", f"{evidence} is up to {strength:.2g}")


def sinusoid_findings(tables: Mapping[str, Tensor]) -> Iterator[Finding]:
    """Yield a finding if tables of positions, (L, D) by side, are sinusoids, but not those of the paper."""
    for side, table in tables.items():
        if len(table) < _FEWEST_POSITIONS or not bool(table.isfinite().all()):
            continue
        fault = _sinusoid_fault(table)
        if fault:
            yield model_finding("wrong-sinusoids", f"positions of the {side} side are sinusoids; {fault}")


def _fit_sinusoids(table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a sinusoid and a constant to each column of a table (L, D) that is neither flat nor slow.

    Of a sinusoid x of w radians a position, x[t - 1] + x[t + 1] is 2 cos(w) x[t], up to a constant.

    Returns:
        The radians per position, the phase, and the share of the variance that the fit leaves over: (N,) each.
    """
    table = table.detach().cpu().double()
    x = table - table.mean(0)
    deviation = x.square().mean(0).sqrt()
    x = x[:, deviation > _FLAT * deviation.max().clamp_min(1e-12)]  # (L, N)
    inner = x[1:-1] - x[1:-1].mean(0)
    cosine = ((x[:-2] + x[2:]) * inner).sum(0) / (2 * inner.square().sum(0)).clamp_min(1e-30)
    frequency = cosine.clamp(-1, 1).acos()
    clear = frequency > _SLOWEST / 2
    frequency, x = frequency[clear], x[:, clear].t()  # (N,), (N, L)
    time = torch.arange(x.size(1), dtype=torch.float64) - (x.size(1) - 1) / 2
    for _ in range(_REFINEMENTS):  # of a table in half precision, by the method of Gauss and Newton
        sine, cosine = (frequency[:, None] * time).sin(), (frequency[:, None] * time).cos()
        basis = torch.stack([torch.ones_like(sine), sine, cosine], -1)  # (N, L, 3)
        fitted = torch.stack([x, time * cosine, time * sine], -1)
        weights = torch.linalg.lstsq(basis, fitted).solution  # (N, 3, 3)
        rest, by_sine, by_cosine = (fitted - basis @ weights).unbind(-1)
        slope = weights[:, 1, :1] * by_sine - weights[:, 2, :1] * by_cosine  # of the fit over the frequency
        frequency = frequency + (rest * slope).sum(1) / slope.square().sum(1).clamp_min(1e-30)
    left_over = rest.square().sum(1) / x.square().sum(1).clamp_min(1e-30)
    return frequency, torch.atan2(weights[:, 2, 0], weights[:, 1, 0]), left_over


def fastest_sinusoid(table: Tensor, columns: int) -> float:
    """Return the largest frequency of the first columns of a table (L, N) that are sinusoids, 0 without any."""
    frequency, _, left_over = _fit_sinusoids(table[:, :columns])
    return max(frequency[left_over < _FITS].tolist(), default=0.0)


def _sinusoid_fault(table: Tensor) -> str:
    """Return the fault of the sinusoids of a table (L, D), empty where it holds those of the paper, or others.

    Frequencies have to be a geometric progression, each with a sine and a cosine, in any order of the columns.
    """
    frequencies, phases, left_over = _fit_sinusoids(table)
    clear = frequencies >= _SLOWEST
    if int(clear.sum()) < 2 or not bool((left_over[clear] < _FITS).all()):
        return ""
    order = frequencies[clear].argsort(descending=True)
    frequency, phase, width = frequencies[clear][order].tolist(), phases[clear][order].tolist(), table.size(1)
    groups: list[list[int]] = []
    for number, radians in enumerate(frequency):
        if groups and math.isclose(radians, frequency[groups[-1][0]], rel_tol=_SAME_FREQUENCY):
            groups[-1].append(number)
        else:
            groups.append([number])
    if len(groups) > 1 and frequency[groups[-1][0]] < _SLOWEST * (1 + _SAME_RATIO):  # its pair may lie below
        groups.pop()
    for group in groups:
        sines = [abs(math.sin(phase[number] - phase[group[0]])) for number in group]
        if 2 * sum(sine > math.cos(_QUADRATURE) for sine in sines) != len(group):
            alone = "a sine without a cosine" if len(group) == 1 else "not a sine and a cosine each"
            return f"of the frequency {frequency[group[0]]:.4g} there is {alone}"
    values = [frequency[group[0]] for group in groups]
    ratios = [second / first for first, second in pairwise(values)]
    if not ratios:
        fastest = _BASES[1] ** (-1 / max(width / 2 - 1, 1))  # the least that the second frequency can be
        return f"only the frequency {values[0]:.4g} is not close to 0" if fastest > 2 * _SLOWEST else ""
    if any(not math.isclose(ratio, ratios[0], rel_tol=_SAME_RATIO) for ratio in ratios):
        shown = ", ".join(f"{value:.4g}" for value in values[:4])
        return f"the frequencies {shown} are no geometric progression"
    bases = [ratios[0] ** -number for number in (width / 2, width / 2 - 1)]
    if not any(_BASES[0] < base < _BASES[1] for base in bases):
        return f"their frequencies fall with base {bases[0]:.3g}, not 10000, over the width {width}"
    return ""
