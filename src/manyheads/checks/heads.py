"""Weights of a trained model, and the tokens that its attention heads attend to.

Shapes: H heads, T queries, S keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manyheads.checks.catalogue import run_finding
from manyheads.checks.evidence import Share
from manyheads.checks.subjects import TrainedClassifier, TrainedLanguageModel, TrainedTranslator
from manyheads.data.batch import pad_rows
from manyheads.data.examples import make_texts
from manyheads.inspection.capture import recording
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.transformer import Transformer
from manyheads.text.tokenizer import BOS, EOS, PAD
from transformer_doctor.model_adapter import device_of
from transformer_doctor.report import Finding

_EVEN = 0.98  # of the greatest entropy that a head's weights can have
_ONE_TOKEN = 0.98  # mean weight on the first or the last token
_MOSTLY_IDLE = 0.5  # of the heads
_Inputs = tuple[Tensor | None, ...]
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
    attentions = list(_named_attentions(model))
    sums = [torch.zeros(3, attention.num_heads, dtype=torch.float64) for _, attention, _ in attentions]
    for text in texts:
        with torch.inference_mode(), recording([attention for _, attention, _ in attentions]) as weights:
            model(*(tensor if tensor is None else tensor.to(device) for tensor in inputs(text)))
        for index, (_, _, causal) in enumerate(attentions):
            sums[index] += _head_figures(weights[index][0].double().cpu(), causal=causal)
    return [
        _Head(f"{name}.{head + 1}", *(total[:, head] / len(texts)).tolist())
        for (name, attention, _), total in zip(attentions, sums, strict=True)
        for head in range(attention.num_heads)
    ]


def _named_attentions(model: Transformer) -> Iterator[tuple[str, MultiHeadAttention, bool]]:
    """Yield name, attention and whether it is causal, in the order in which the attentions are computed."""
    if isinstance(model, EncoderDecoder):
        for number, encoder in enumerate(model.encoder_layers, start=1):
            yield f"encoder {number}", encoder.self_attention, False
        for number, decoder in enumerate(model.decoder_layers, start=1):
            yield f"decoder {number}", decoder.self_attention, True
            yield f"cross {number}", decoder.cross_attention, False
        return
    for number, layer in enumerate(model.layers(), start=1):
        yield f"layer {number}", layer.self_attention, isinstance(model, DecoderOnly)


def _head_figures(weights: Tensor, *, causal: bool) -> Tensor:
    """Return evenness, weight on the first and on the last token: (H, T, S) -> (3, H)."""
    if causal:  # the first query sees one key alone, and the last visible key is always that of the query
        weights = weights[:, 1:]
        visible = torch.arange(2, weights.size(1) + 2)
    else:
        visible = torch.full((weights.size(1),), weights.size(2))
    if weights.size(1) == 0 or int(visible[-1]) < 2:
        return torch.zeros(3, weights.size(0), dtype=torch.float64)
    entropy = -(weights * weights.clamp_min(1e-12).log()).sum(-1)
    even = (entropy / visible.double().clamp_min(math.e**1e-3).log()).mean(1)
    last = torch.zeros_like(even) if causal else weights[..., -1].mean(1)
    return torch.stack([even, weights[..., 0].mean(1), last])


def _head_findings(heads: Sequence[_Head]) -> Iterator[Finding]:
    idle = [head.name for head in heads if head.idle]
    if idle:
        named = ", ".join(idle[:6]) + (", ..." if idle[6:] else "")
        severity = "warning" if len(idle) > _MOSTLY_IDLE * len(heads) else None
        yield run_finding("idle-heads", f"{Share(len(idle), len(heads))} heads: {named}", severity)


def weight_findings(weights: Mapping[str, Tensor]) -> Iterator[Finding]:
    """Yield a finding about tensors with NaN or infinite values, by name."""
    broken = [name for name, tensor in weights.items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        more = ", ..." if broken[5:] else ""
        yield run_finding("weights-not-finite", f"{len(broken)} tensors: {', '.join(broken[:5])}{more}")
