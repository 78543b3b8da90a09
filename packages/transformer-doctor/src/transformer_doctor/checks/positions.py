"""Find weak token embeddings and wrong sinusoids in the input of a model's first layer.

Shapes: B batch, L length, D model width, F frequencies that are tried, N columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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
_FLAT = 1e-3  # share of the largest deviation up to which a column counts as constant
_SLOWEST = 0.06  # radians per position: too little of slower sinusoids is seen
_SAME_FREQUENCY, _SAME_RATIO = 1e-2, 3e-2
_QUADRATURE = 0.1  # radians
_BASES = (300.0, 3e6)  # of the geometric progression: 10,000 in the paper
_FREQUENCIES, _ZOOMS, _POINTS, _CHUNK = 1500, 4, 21, 128
_FEWEST_POSITIONS = 24
_TOKENS_FOR_SIGNAL, _POSITIONS_FOR_SIGNAL = 64, 31
_POSITIONS_FOR_SINUSOIDS = 64
_BORDERS = 8  # positions at the ends of a text that a convolution alone makes different
_BEYOND_LIMIT = 16  # tokens beyond a stated limit with which positions are looked at
_SHORT_POSITIONS, _SHORTER = 31, (15, 7)  # lengths that are tried where the model refuses longer ones


def signal(adapter: ModelAdapter, samples: Samples) -> dict[str, float]:
    """Return, by side, how much the first layer's input varies over tokens, as a ratio to that over positions."""
    # no mark at the first position: every position has all kinds of tokens
    streams = _first_streams(
        adapter,
        samples,
        _POSITIONS_FOR_SIGNAL,
        lambda side, length: samples.content(side, _TOKENS_FOR_SIGNAL, length),
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


@dataclass(frozen=True)
class _Sinusoids:
    """Sinusoids that fit the columns of a table.

    Attributes:
        frequency: radians per position, (N,).
        phase: radians, (N,).
        left_over: share of the variance of each column that its sinusoid leaves over, (N,).
        width: number of columns of the table, flat ones included.
    """

    frequency: Tensor
    phase: Tensor
    left_over: Tensor
    width: int


def sinusoid_findings(tables: Mapping[str, Tensor]) -> Iterator[Finding]:
    """Yield a finding if tables of positions, (L, D) by side, are sinusoids, but not those of the paper."""
    for side, table in tables.items():
        if len(table) < _FEWEST_POSITIONS or not bool(table.isfinite().all()):
            continue
        fault = _sinusoid_fault(_fit_sinusoids(table))
        if fault:
            yield model_finding("wrong-sinusoids", f"positions of the {side} side are sinusoids; {fault}")


def _fit_sinusoids(table: Tensor) -> _Sinusoids:
    """Fit a sinusoid and a constant to each column of a table (L, D) that is not flat."""
    table = table.detach().cpu().double()
    x = table - table.mean(0)
    deviation = x.square().mean(0).sqrt()
    x = x[:, deviation > _FLAT * deviation.max().clamp_min(1e-12)].t()  # (N, L)
    fits = [_fit_columns(chunk) for chunk in x.split(_CHUNK)]
    if not fits:
        empty = torch.zeros(0, dtype=torch.float64)
        return _Sinusoids(empty, empty, empty, table.size(1))
    frequency, phase, left_over = (torch.cat(parts) for parts in zip(*fits, strict=True))
    return _Sinusoids(frequency, phase, left_over, table.size(1))


def fastest_sinusoid(table: Tensor, columns: int) -> float:
    """Return the largest frequency of the first columns of a table (L, N) that are sinusoids, 0 without any."""
    fit = _fit_sinusoids(table[:, :columns])
    return max(fit.frequency[fit.left_over < _FITS].tolist(), default=0.0)


def _fit_columns(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return frequency, phase and left-over share of the variance of columns (N, L): (N,) each."""
    step = math.pi / _FREQUENCIES
    grid = torch.arange(1, _FREQUENCIES, dtype=torch.float64) * step
    left_over = _remainders(x, grid.expand(len(x), -1))
    best = grid[left_over.argmin(1)]
    for _ in range(_ZOOMS):
        around = best[:, None] + step * torch.linspace(-1, 1, _POINTS, dtype=torch.float64)
        around = around.clamp(1e-6, math.pi)
        left_over = _remainders(x, around)
        best = around.gather(1, left_over.argmin(1, keepdim=True))[:, 0]
        step *= 2 / (_POINTS - 1)
    time = torch.arange(x.size(1), dtype=torch.float64)
    angles = best[:, None] * time
    basis = torch.stack([torch.ones_like(angles), angles.sin(), angles.cos()], -1)  # (N, L, 3)
    weights = torch.linalg.lstsq(basis, x[..., None]).solution[..., 0]
    return best, torch.atan2(weights[:, 2], weights[:, 1]), left_over.min(1).values


def _remainders(x: Tensor, frequencies: Tensor) -> Tensor:
    """Return the share of the variance of columns (N, L) that sinusoids (N, F) leave over: (N, F)."""
    time = torch.arange(x.size(1), dtype=torch.float64)
    total = x.square().sum(1, keepdim=True).clamp_min(1e-30)
    shared = frequencies.stride(0) == 0
    angles = (frequencies[:1] if shared else frequencies)[..., None] * time  # (N or 1, F, L)
    basis = [wave - wave.mean(-1, keepdim=True) for wave in (angles.sin(), angles.cos())]
    first = basis[0] / basis[0].norm(dim=-1, keepdim=True).clamp_min(1e-9)
    second = basis[1] - (basis[1] * first).sum(-1, keepdim=True) * first
    second = second / second.norm(dim=-1, keepdim=True).clamp_min(1e-9)
    fitted = sum(torch.einsum("nfl,nl->nf", wave.expand(len(x), -1, -1), x).square() for wave in (first, second))
    return 1 - fitted / total


def _sinusoid_fault(fit: _Sinusoids) -> str:
    """Return the fault of sinusoids, empty where they are those of the paper or no sinusoids.

    Frequencies have to be a geometric progression, each with a sine and a cosine, in any order of the columns.
    """
    clear = fit.frequency >= _SLOWEST
    if int(clear.sum()) < 2 or not bool((fit.left_over[clear] < _FITS).all()):
        return ""
    order = fit.frequency[clear].argsort(descending=True)
    frequency, phase = fit.frequency[clear][order].tolist(), fit.phase[clear][order].tolist()
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
        fastest = _BASES[1] ** (-1 / max(fit.width / 2 - 1, 1))  # the least that the second frequency can be
        return f"only the frequency {values[0]:.4g} is not close to 0" if fastest > 2 * _SLOWEST else ""
    if any(not math.isclose(ratio, ratios[0], rel_tol=_SAME_RATIO) for ratio in ratios):
        shown = ", ".join(f"{value:.4g}" for value in values[:4])
        return f"the frequencies {shown} are no geometric progression"
    bases = [ratios[0] ** -number for number in (fit.width / 2, fit.width / 2 - 1)]
    if not any(_BASES[0] < base < _BASES[1] for base in bases):
        return f"their frequencies fall with base {bases[0]:.3g}, not 10000, over the width {fit.width}"
    return ""
