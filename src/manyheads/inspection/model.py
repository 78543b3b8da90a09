"""Inspect a model without a text: its tensors, positions and learning-rate schedule.

Shapes: P positions, D model width, E head width.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import manyheads
from manyheads.config.schema import Config
from manyheads.model.attention import MultiHeadAttention, attend, attention_weights
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import FeedForward, PostNorm, PreNorm
from manyheads.model.masks import causal_mask, padding_mask
from manyheads.model.positions import LearnedPositions, apply_rotary, sinusoids
from manyheads.model.transformer import Transformer
from manyheads.training.loss import cross_entropy_sums
from manyheads.training.schedule import Schedule
from manyheads.views.model import Block, LearningRate, ModelInspection, Positions, Symbol, TensorRow
from manyheads.views.parts import ModelFacts

_SHOWN_POSITIONS = 64
_POINTS = 200  # on the learning-rate curve
_RATES = {
    "noam": "lr D^-0.5 min(t^-0.5, t w^-1.5), w warm-up steps",
    "inverse-sqrt": "lr t / w up to step w, then lr sqrt(w / t)",
    "linear": "lr t / w up to step w, then down to 0 in a straight line",
    "cosine": "lr t / w up to step w, then down to 0 along a cosine",
    "plateau": "lr t / w up to step w, then times 0.9 whenever the validation loss no longer falls",
    "constant": "lr t / w up to step w, then lr",
}
_POSITION_SYMBOLS: dict[str, tuple[str, str, Callable[..., Any]]] = {  # equation, section, code
    "sinusoidal": ("PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D))", "3.5", sinusoids),
    "learned": ("PE(p) = row p of a trained table", "3.5", LearnedPositions),
    "rotary": ("q, k rotated by p / 10000^(2i/E) in each pair", "3.2.2 of Su et al. (2021)", apply_rotary),
}
_NORM_SYMBOLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "pre": ("x + Sublayer(LayerNorm(x))", PreNorm),
    "post": ("LayerNorm(x + Sublayer(x))", PostNorm),
}


def inspect_model(
    config: Config, model: Transformer, *, total_steps: int | None = None, run: str = ""
) -> ModelInspection:
    """Inspect a model without a text.

    Args:
        config: configuration of the run.
        model: the model with its weights.
        total_steps: planned updates of its training (default: those of the configuration).
        run: name of the run in the result.
    """
    tensors = tuple(_tensor_rows(model))
    sizes: dict[str, int] = {}
    for row in tensors:
        sizes[row.block] = sizes.get(row.block, 0) + (row.parameters if row.tied_to is None else 0)
    return ModelInspection(
        run=run,
        model=ModelFacts.of(config),
        parameters=sum(sizes.values()),
        blocks=tuple(Block(name, count) for name, count in sizes.items()),
        tensors=tensors,
        positions=_positions_of(model),
        learning_rate=_learning_rate(config, total_steps or config.training.steps),
        symbols=tuple(_symbols(config)),
    )


def _tensor_rows(model: Transformer) -> Iterator[TensorRow]:
    """Yield every tensor by name; the first of tied tensors has no `tied_to`."""
    first: dict[Tensor, str] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        parts = name.split(".")
        block = ".".join(parts[: 2 if parts[1:2] and parts[1].isdigit() else 1])
        deviation = float(tensor.detach().float().std()) if tensor.numel() > 1 else 0.0
        yield TensorRow(name, tuple(tensor.shape), tensor.numel(), block, first.get(tensor), deviation)
        first.setdefault(tensor, name)


def _positions_of(model: Transformer, count: int = _SHOWN_POSITIONS) -> Positions:
    config = model.config
    if config.positions == "rotary":
        width = config.d_model // config.num_heads
        angles = sinusoids(count, width).numpy()  # sine and cosine of the angles of the head's pairs
        signal = np.stack([angles[:, 1::2], angles[:, ::2]], -1).reshape(count, width)
        return Positions("rotary", signal, (angles @ angles.T) / (width / 2))
    if config.positions == "learned":
        tables = [module.table.weight for module in model.modules() if isinstance(module, LearnedPositions)]
        signal = tables[0].detach().float().cpu().numpy()[:count]
    else:
        signal = sinusoids(count, config.d_model).numpy()
    return Positions(config.positions, signal, signal @ signal.T)


def _learning_rate(config: Config, total_steps: int) -> LearningRate:
    """Return the planned schedule; the changes of a plateau schedule after validations are not in it."""
    schedule = Schedule(config.training, config.model.d_model)
    warmup = config.training.warmup_steps
    points = {1, min(max(1, warmup), total_steps), total_steps}
    points |= {int(point) for point in np.linspace(1, total_steps, min(_POINTS, total_steps))}
    steps = tuple(sorted(points))
    rates = tuple(schedule.rate(step, total_steps) for step in steps)
    return LearningRate(config.training.schedule, warmup, total_steps, steps, rates)


def _location(thing: Callable[..., Any]) -> str:
    """Return the file, relative to the package, and the line of a function or class."""
    path = Path(inspect.getsourcefile(thing) or "").relative_to(Path(manyheads.__file__).parent)
    return f"{path.as_posix()}:{inspect.getsourcelines(thing)[1]}"


def _symbols(config: Config) -> Iterator[Symbol]:
    model = config.model
    heads, width, head_width = model.num_heads, model.d_model, model.d_model // model.num_heads
    position_equation, position_section, position_code = _POSITION_SYMBOLS[model.positions]
    norm_equation, norm_code = _NORM_SYMBOLS[model.norm]
    attention_equation = "Attention(Q, K, V) = A V"
    embedding_equation = "x = E(w) sqrt(D)" if model.scale_embeddings else "x = E(w)"
    feed_forward = "FFN(x) = f(x W_1 + b_1) W_2 + b_2, f = " + model.activation
    rows: list[tuple[str, str, str, str, Callable[..., Any], str]] = [
        ("Q, K, V", "queries, keys, values of a head", "Q = x W_Q, K = m W_K, V = m W_V", "3.2.2",
         MultiHeadAttention, f"H = {heads}, E = {head_width}"),
        ("A", "attention weights", "A = softmax(Q K^T / sqrt(E))", "3.2.1", attention_weights, f"E = {head_width}"),
        ("Attention", "sum of the values, weighted by A", attention_equation, "3.2.1", attend, ""),
        ("padding mask", "keys at padding are masked", "A = 0 where the key is <pad>", "3.2.1", padding_mask, ""),
        ("causal mask", "keys of later positions are masked", "A(t, s) = 0 for s > t", "3.2.3", causal_mask, ""),
        ("FFN", "two maps at each position", feed_forward, "3.3", FeedForward, f"D = {width}, F = {model.d_ff}"),
        ("residual, norm", "around every sublayer", norm_equation, "3.1", norm_code, f"D = {width}"),
        ("E(w)", "a token as a vector", embedding_equation, "3.4", TokenEmbedding, f"D = {width}"),
        ("PE", "position embedding", position_equation, position_section, position_code, ""),
        ("lrate", "the learning rate", _RATES[config.training.schedule], "5.3", Schedule.rate, ""),
        ("loss", "cross-entropy with label smoothing", "-sum q(w) log p(w)", "5.4", cross_entropy_sums,
         f"epsilon = {config.training.label_smoothing:g}"),
    ]  # fmt: skip
    for symbol, meaning, equation, section, code, shape in rows:
        yield Symbol(symbol, meaning, equation, section, _location(code), shape)
