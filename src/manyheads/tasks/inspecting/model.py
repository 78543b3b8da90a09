"""Looks at a model as a whole: its tensors, its positions, its schedule.

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
from manyheads.inspection.documents import ModelInspection
from manyheads.inspection.model_parts import Block, LearningRate, Positions, Symbol, TensorRow
from manyheads.model.attention import MultiHeadAttention, attend, attention_weights
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import FeedForward, PostNorm, PreNorm
from manyheads.model.masks import causal_mask, padding_mask
from manyheads.model.positions import LearnedPositions, apply_rotary, sinusoids
from manyheads.model.transformer import Transformer
from manyheads.tasks.inspecting.common import facts
from manyheads.training.loss import cross_entropy_sums
from manyheads.training.schedule import Schedule

__all__ = ["inspect_model", "learning_rate", "positions_of"]

SHOWN_POSITIONS = 64
POINTS = 200  # of the learning-rate curve
RATES = {
    "noam": "lr D^-0.5 min(t^-0.5, t w^-1.5), w warm-up steps",
    "inverse-sqrt": "lr t / w up to step w, then lr sqrt(w / t)",
    "linear": "lr t / w up to step w, then down to 0 in a straight line",
    "cosine": "lr t / w up to step w, then down to 0 along a cosine",
    "plateau": "lr t / w up to step w, then times plateau_factor where validation stands still",
    "constant": "lr t / w up to step w, then lr",
}


def inspect_model(
    config: Config, model: Transformer, *, total_steps: int | None = None, run: str = ""
) -> ModelInspection:
    """What there is to see without a text.

    Args:
        config: of the run.
        model: with its weights.
        total_steps: updates of its training; those of the configuration unless given.
        run: a name for the result.
    """
    tensors = tuple(tensor_rows(model))
    sizes: dict[str, int] = {}
    for row in tensors:
        sizes[row.block] = sizes.get(row.block, 0) + (row.parameters if row.tied_to is None else 0)
    return ModelInspection(
        run=run,
        model=facts(config),
        parameters=sum(sizes.values()),
        blocks=tuple(Block(name, count) for name, count in sizes.items()),
        tensors=tensors,
        positions=positions_of(model),
        learning_rate=learning_rate(config, total_steps or config.training.steps),
        symbols=tuple(symbols(config)),
    )


def tensor_rows(model: Transformer) -> Iterator[TensorRow]:
    """Every tensor by name; of tied ones the first is the one that counts."""
    first: dict[Tensor, str] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        parts = name.split(".")
        block = ".".join(parts[: 2 if parts[1:2] and parts[1].isdigit() else 1])
        deviation = float(tensor.detach().float().std()) if tensor.numel() > 1 else 0.0
        yield TensorRow(name, tuple(tensor.shape), tensor.numel(), block, first.get(tensor), deviation)
        first.setdefault(tensor, name)


def positions_of(model: Transformer, count: int = SHOWN_POSITIONS) -> Positions:
    """How the model tells its first positions apart."""
    config = model.config
    if config.positions == "rotary":
        width = config.d_model // config.num_heads
        turns = sinusoids(count, width).numpy()  # sine and cosine of the angles of the head's pairs
        signal = np.stack([turns[:, 1::2], turns[:, ::2]], -1).reshape(count, width)
        return Positions("rotary", signal, (turns @ turns.T) / (width / 2))
    if config.positions == "learned":
        (table,) = [one.table.weight for one in model.modules() if isinstance(one, LearnedPositions)][:1]
        signal = table.detach().float().cpu().numpy()[:count]
    else:
        signal = sinusoids(count, config.d_model).numpy()
    return Positions(config.positions, signal, signal @ signal.T)


def learning_rate(config: Config, total_steps: int) -> LearningRate:
    """The schedule as it is planned; what validation makes of a plateau schedule is not in it."""
    schedule = Schedule(config.training, config.model.d_model)
    warmup = config.training.warmup_steps
    points = {1, min(max(1, warmup), total_steps), total_steps}
    points |= {int(point) for point in np.linspace(1, total_steps, min(POINTS, total_steps))}
    steps = tuple(sorted(points))
    rates = tuple(schedule.rate(step, total_steps) for step in steps)
    return LearningRate(config.training.schedule, warmup, total_steps, steps, rates)


def where(thing: Callable[..., Any]) -> str:
    """File below the package, and line, of a function or class."""
    path = Path(inspect.getsourcefile(thing) or "").relative_to(Path(manyheads.__file__).parent)
    return f"{path.as_posix()}:{inspect.getsourcelines(thing)[1]}"


def symbols(config: Config) -> Iterator[Symbol]:
    """The letters of the paper, in the order of its sections."""
    model = config.model
    head = model.d_model // model.num_heads
    heads, width = model.num_heads, model.d_model
    norm = (
        ("x + Sublayer(LayerNorm(x))", PreNorm) if model.norm == "pre" else ("LayerNorm(x + Sublayer(x))", PostNorm)
    )
    kinds: dict[str, tuple[str, str, Callable[..., Any]]] = {
        "sinusoidal": ("PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D))", "3.5", sinusoids),
        "learned": ("PE(p) = row p of a trained table", "3.5", LearnedPositions),
        "rotary": ("q, k turned by p / 10000^(2i/E) in each pair", "3.2.2 of Su et al. (2021)", apply_rotary),
    }
    position = kinds[model.positions]
    yield Symbol("Q, K, V", "queries, keys, values of a head", "Q = x W_Q, K = m W_K, V = m W_V", "3.2.2",
                 where(MultiHeadAttention), f"{heads} heads of width {head}")  # fmt: skip
    yield Symbol("A", "attention weights", "A = softmax(Q K^T / sqrt(E))", "3.2.1", where(attention_weights),
                 f"E = {head}")  # fmt: skip
    yield Symbol("Attention", "what the heads take home", "Attention(Q, K, V) = A V", "3.2.1", where(attend), "")
    yield Symbol("padding mask", "nobody looks at padding", "A = 0 where the key is <pad>", "3.2.1",
                 where(padding_mask), "")  # fmt: skip
    yield Symbol("causal mask", "nobody looks ahead", "A(t, s) = 0 for s > t", "3.2.3", where(causal_mask), "")
    yield Symbol("FFN", "two maps at each position", "FFN(x) = f(x W_1 + b_1) W_2 + b_2, f = " + model.activation,
                 "3.3", where(FeedForward), f"D = {width}, F = {model.d_ff}")  # fmt: skip
    yield Symbol("residual, norm", "around every sublayer", norm[0], "3.1", where(norm[1]), f"D = {width}")
    yield Symbol("E(w)", "a token as a vector", "x = E(w) sqrt(D)" if model.scale_embeddings else "x = E(w)", "3.4",
                 where(TokenEmbedding), f"D = {width}")  # fmt: skip
    yield Symbol("PE", "where a token stands", position[0], position[1], where(position[2]), "")
    yield Symbol("lrate", "the learning rate", RATES[config.training.schedule], "5.3", where(Schedule.rate), "")
    yield Symbol("loss", "cross-entropy with label smoothing", "-sum q(w) log p(w)", "5.4",
                 where(cross_entropy_sums), f"epsilon = {config.training.label_smoothing:g}")  # fmt: skip
