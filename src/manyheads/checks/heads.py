"""Weights of a trained model, and the tokens that its attention heads attend to.

Shapes: L layers, H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.checks.catalogue import run_finding
from manyheads.checks.evidence import Share, list_first
from manyheads.checks.subjects import TrainedClassifier, TrainedLanguageModel, TrainedTranslator
from manyheads.model.transformer import Transformer
from manyheads.tensors.capture import capture
from manyheads.tensors.examples import make_texts
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD
from transformer_doctor.model_adapter import device_of
from transformer_doctor.report import Finding

_EVEN = 0.98  # of the greatest entropy that a head's weights can have
_ONE_TOKEN = 0.98  # mean weight on the first or the last token
_MOSTLY_IDLE = 0.5  # of the heads
_Inputs = tuple[Tensor | None, ...]
_Array = NDArray[np.floating]
_TEXTS, _STREAM_TEXTS = 12, 8  # texts whose attention is measured; of a language model


@dataclass(frozen=True)
class _Head:
    """Weights of one attention head, averaged over texts.

    Attributes:
        name: such as "encoder 1.2" for the second head of the first layer.
        evenness: mean entropy of its weights, divided by the logarithm of the number of visible tokens, 0 to 1.
        first, last: mean weight on the first and on the last token, 0 to 1.
    """

    name: str
    evenness: float
    first: float
    last: float

    @property
    def idle(self) -> bool:
        """Return whether the weights of the head do not depend on the text."""
        return self.evenness > _EVEN or max(self.first, self.last) > _ONE_TOKEN


def check_translator_heads(trained: TrainedTranslator) -> Iterator[Finding]:
    """Measure the heads of a translator by teacher forcing of some validation pairs, evenly spread."""
    sources, targets = trained.read_rows

    def inputs(index: int) -> _Inputs:
        return pad_rows([sources[index]], PAD, last=EOS), pad_rows([[BOS, *targets[index]]], PAD)

    indices = range(0, len(sources), max(1, len(sources) // _TEXTS))
    return _head_findings(_measure_heads(trained.model, inputs, indices))


def check_classifier_heads(trained: TrainedClassifier) -> Iterator[Finding]:
    """Measure the heads of a classifier on some validation texts."""

    def inputs(index: int) -> _Inputs:
        row, types = trained.rows[index][: trained.longest], trained.config.model.token_types > 1
        return make_texts([row], pad=PAD, bos=BOS, eos=EOS, with_types=types)

    return _head_findings(_measure_heads(trained.model, inputs, range(min(_TEXTS, len(trained.rows)))))


def check_language_model_heads(trained: TrainedLanguageModel) -> Iterator[Finding]:
    """Measure the heads of a language model on some stretches of the validation text."""
    tokens, width = trained.tokens, trained.config.data.max_length
    starts = range(0, max(1, len(tokens) - width), max(1, (len(tokens) - width) // _STREAM_TEXTS))[:_STREAM_TEXTS]

    def inputs(start: int) -> _Inputs:
        return (torch.from_numpy(tokens[start : start + width].astype(np.int64))[None],)

    return _head_findings(_measure_heads(trained.model, inputs, starts))


def _measure_heads(model: Transformer, inputs: Callable[[int], _Inputs], texts: Sequence[int]) -> list[_Head]:
    """Return the figures of each head, averaged over texts; `inputs` returns the model's arguments for a text."""
    device = device_of(model)
    figures: dict[str, list[_Array]] = {}
    for text in texts:
        reading = capture(model, *(tensor if tensor is None else tensor.to(device) for tensor in inputs(text)))
        for attention in reading.attention:
            causal = attention.kind == "decoder"
            figures.setdefault(attention.kind, []).append(_head_figures(attention.weights, causal=causal))
    return [
        _Head(f"{kind if len(figures) > 1 else 'layer'} {layer}.{head}", *means.tolist())
        for kind, of_texts in figures.items()
        for layer, heads in enumerate(np.mean(of_texts, axis=0), start=1)
        for head, means in enumerate(heads, start=1)
    ]


def _head_figures(weights: _Array, *, causal: bool) -> _Array:
    """Return evenness, weight on the first and on the last token of each head: (L, H, T, S) -> (L, H, 3)."""
    weights = weights.astype(np.float64)
    visible = np.full(weights.shape[2], weights.shape[3])
    if causal:  # the first query sees one key alone, and the last visible key is always that of the query
        weights = weights[:, :, 1:]
        visible = np.arange(2, weights.shape[2] + 2)
    if not len(visible) or visible[-1] < 2:
        return np.zeros((*weights.shape[:2], 3))
    entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum(-1)
    even = (entropy / np.log(np.maximum(visible, 2))).mean(-1)
    last = np.zeros_like(even) if causal else weights[..., -1].mean(-1)
    return np.stack([even, weights[..., 0].mean(-1), last], axis=-1)


def _head_findings(heads: Sequence[_Head]) -> Iterator[Finding]:
    idle = [head.name for head in heads if head.idle]
    if idle:
        severity = "warning" if len(idle) > _MOSTLY_IDLE * len(heads) else None
        yield run_finding("idle-heads", f"{Share(len(idle), len(heads))} heads: {list_first(idle, 6)}", severity)


def weight_findings(weights: Mapping[str, Tensor]) -> Iterator[Finding]:
    """Yield a finding about tensors with NaN or infinite values, by name."""
    broken = [name for name, tensor in weights.items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        yield run_finding("weights-not-finite", f"{len(broken)} tensors: {list_first(broken, 5)}")
