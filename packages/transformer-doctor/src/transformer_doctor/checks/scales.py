"""Find wrong factors of attention scores, and of logits whose matrix is also the embedding matrix.

Shapes: B batch, T queries, S keys, H heads, E head width, D model width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch

from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.masks import covered_scores
from transformer_doctor.report import Finding, Severity
from transformer_doctor.tolerances import SAME_FACTOR
from transformer_doctor.trace import Attention

_LINEAR = 1e-2  # share of the largest score up to which scores are a multiple of their products
_UNIFORM = 2.2  # a kurtosis below it: drawn from a uniform distribution, whose kurtosis is 1.8; a normal one has 3
_COMPENSATED = 0.25  # relative difference up to which queries are drawn weaker than keys by 1 / sqrt(E)
_FEWEST_WEIGHTS = 32
_SMALL_ROWS = 0.5  # rows of an embedding with a smaller norm are not normalised ones


def _measured_factor(attention: Attention, other: Attention | None) -> float | None:
    """Return the factor of the scores before the softmax, None where it is not known.

    It is measured from how products and scores differ between two passes, so that an equal addition to both (a
    mask, a bias by distance) has no influence.
    """
    if attention.projection is None or attention.fixed_scale or not math.isfinite(attention.factor):
        return None
    if other is None or attention.logits is None or other.logits is None or attention.raw.shape != other.raw.shape:
        return attention.factor
    visible = ~covered_scores(attention) & ~covered_scores(other)
    change, result = ((first - second).masked_fill(~visible, 0) for first, second in (
        (attention.raw, other.raw), (attention.logits, other.logits)))  # fmt: skip
    counts = visible.sum(-1, keepdim=True).clamp_min(1)
    # the softmax does not change when a number is added to all scores of a query
    change, result = (((tensor - tensor.sum(-1, keepdim=True) / counts) * visible) for tensor in (change, result))
    strength = float((change * change).sum())
    if not math.isfinite(strength) or strength == 0:
        return attention.factor
    slope = float((change * result).sum()) / strength
    rest = float((result - slope * change).abs().max())
    if not rest <= max(_LINEAR, 8 * _rounding(attention)) * float(result.abs().max()):
        return None
    return attention.input_factor * slope


def _rounding(attention: Attention) -> float:
    return torch.finfo(attention.query.dtype).eps


def scale_findings(attentions: Sequence[Attention], others: Sequence[Attention]) -> Iterator[Finding]:
    """Yield findings about the factor before the softmax where it is not 1 / sqrt(E)."""
    paired = len(attentions) == len(others)
    biased = any(_adds_a_bias(first, second) for first, second in zip(attentions, others, strict=False))
    for number, attention in enumerate(attentions):
        width, factor = attention.width, _measured_factor(attention, others[number] if paired else None)
        if width < 2 or factor is None:
            continue
        tolerance = max(SAME_FACTOR, 2 * _rounding(attention))
        if math.isclose(factor, width**-0.5, rel_tol=tolerance):
            continue
        wide = _model_width(attention, attentions, factor, tolerance)
        if wide is not None:
            evidence = f"{wide // width} heads of width {width}: scores are multiplied by {factor:.4g}"
            evidence += f" = 1 / sqrt({wide}) instead of {width**-0.5:.4g} = 1 / sqrt({width})"
            yield model_finding("scaled-by-model-width", evidence).at(attention.place)
        else:
            for finding in _unusual_scale(attention, factor, tolerance, biased=biased):
                yield finding.at(attention.place)


def _model_width(
    attention: Attention, attentions: Sequence[Attention], factor: float, tolerance: float
) -> int | None:
    """Return the width of the model where scores are divided by its root, None where they are not."""
    layer = attention.projection
    assert layer is not None
    modules = sum(
        candidate.projection is not None and candidate.projection.source is layer.source for candidate in attentions
    )
    widths = {attention.heads * attention.width, modules * attention.heads * attention.width, layer.width_in}
    fitting = [width for width in widths if math.isclose(factor, width**-0.5, rel_tol=tolerance)]
    return min((width for width in fitting if width > attention.width), default=None)


def _unusual_scale(attention: Attention, factor: float, tolerance: float, *, biased: bool) -> Iterator[Finding]:
    """Yield a finding about a factor that is neither that of the paper nor that of the model width."""
    width = attention.width
    evidence = f"heads of width {width}: scores are multiplied by {factor:.4g}"

    def close(left: float, right: float) -> bool:
        return math.isclose(left, right, rel_tol=tolerance)

    roots = sum(close(part, width**-0.5) for part in attention.factors)
    if close(factor, 1.0):
        if biased or _is_compensated(attention):  # as in T5, whose weights are drawn weaker instead
            return
        fresh = _drawn_uniformly(attention)
        evidence = f"heads of width {width}: scores are multiplied by nothing before the softmax"
        evidence += ", and the weights of the queries are drawn as for scaled scores" if fresh else ""
        yield in_case(model_finding("unusual-scale", evidence, "warning" if fresh else "note"), "scale-missing")
    elif close(factor, 1 / width) and roots >= 2:
        evidence += f" = 1 / {width}: by 1 / sqrt({width}) twice"
        yield in_case(model_finding("unusual-scale", evidence), "scale-doubled")
    else:
        severity: Severity = "note"
        if close(factor, 1 / width):
            evidence += f" = 1 / {width}, as in muP, instead of 1 / sqrt({width})"
        elif factor > 1 + tolerance or factor <= 0:
            learned = not close(factor, attention.factor)  # by a tensor, such as a temperature
            severity, evidence = "note" if learned else "warning", f"{evidence}: larger, not smaller"
        elif any(close(factor, length**-0.5) for length in (attention.keys, attention.queries)):
            severity, evidence = "warning", f"{evidence} = 1 / sqrt(length of the text)"
        yield model_finding("unusual-scale", evidence, severity)


def _adds_a_bias(attention: Attention, other: Attention) -> bool:
    """Return whether scores get a bias by position: numbers that differ by key, the same for other tokens."""
    if attention.logits is None or other.logits is None or attention.raw.shape != other.raw.shape:
        return False
    biases = []
    for record in (attention, other):
        assert record.logits is not None
        factor = record.factor / record.input_factor if record.input_factor else 1.0
        biases.append((record.logits - factor * record.raw).masked_fill(covered_scores(record), 0))
    first, second = biases
    largest = float(first.abs().max())
    low = max(_LINEAR, 8 * _rounding(attention)) * float(attention.raw.abs().max())
    return math.isfinite(largest) and low < largest < 1e3 and float((first - second).abs().max()) < low


def _drawn_uniformly(attention: Attention) -> bool:
    """Return whether the weights of the queries are those of an initialiser for linear layers, not yet trained."""
    layer = attention.projection
    if layer is None or layer.weight.numel() < _FEWEST_WEIGHTS:
        return False
    weight = layer.weight.detach().float()
    centred = weight - weight.mean()
    variance = float(centred.square().mean())
    return variance > 0 and float(centred.pow(4).mean()) / variance**2 < _UNIFORM


def _is_compensated(attention: Attention) -> bool:
    """Return whether the weights of the queries are weaker than those of the keys by 1 / sqrt(E)."""
    queries, keys = attention.projection, attention.key_projection
    if queries is None or keys is None or queries.weight is keys.weight or queries.weight.numel() < _FEWEST_WEIGHTS:
        return False
    ratio = float(queries.weight.detach().float().std() / keys.weight.detach().float().std().clamp_min(1e-12))
    return math.isclose(ratio, attention.width**-0.5, rel_tol=_COMPENSATED)


def tied_logits_findings(width: int, factor: float, spread: float, norm: float) -> Iterator[Finding]:
    """Yield a finding where tied logits are multiplied by sqrt(D), or by its inverse, without a reason.

    A factor has a reason if it brings their size near 1; sqrt(D) only if the rows of the matrix are not small.

    Args:
        width: D.
        factor: number that the logits are multiplied with.
        spread: standard deviation of the logits of a position.
        norm: mean norm of the rows of the matrix.
    """
    if not 0 < factor * spread < math.inf:
        return
    root = math.sqrt(width)
    names: Mapping[str, float] = {f"sqrt({width})": root, f"1 / sqrt({width})": 1 / root}
    name = next((name for name, value in names.items() if math.isclose(factor, value, rel_tol=1e-2)), None)
    unscaled = spread / factor
    needless = abs(math.log(spread)) > abs(math.log(unscaled)) or (factor > 1 and norm < _SMALL_ROWS)
    if name is not None and needless:
        evidence = f"logits of the tied matrix are multiplied by {factor:.4g} = {name}:"
        evidence += f" their standard deviation is {spread:.3g}, and would be {unscaled:.3g}"
        yield model_finding("tied-logits-scaled", evidence)
