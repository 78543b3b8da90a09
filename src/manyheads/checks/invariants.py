"""Check the invariants of a model of this package, with its own tokenizers, masks, training step and decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import EncoderOnly
from manyheads.model.transformer import Transformer
from manyheads.tensors.pairs import make_batch
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.batches import MicroBatch
from manyheads.training.objective import Objective
from transformer_doctor.examination import examine
from transformer_doctor.report import Report

_LEARNING_RATE = 1e-3  # learning rate of the updates in an examination
_MAX_TOKENS = 300  # tokens of the longest text that a model is examined with


def examine_own_model(model: Transformer, tokenizers: TokenizerPair, objective: Objective | None = None) -> Report:
    """Examine a model of this package; with its objective, a translator's training step too.

    Checks that do not apply to such a model are not listed as skipped.
    """
    return replace(_examine_whole(model, tokenizers, objective), skipped=())


def _examine_whole(model: Transformer, tokenizers: TokenizerPair, objective: Objective | None) -> Report:
    """Examine a model; checks that do not apply are listed as skipped."""
    size = tokenizers.source.size
    if isinstance(model, DecoderOnly):
        return examine(model, vocab_size=size, pad=PAD, eos=EOS, kind="decoder", longest=_MAX_TOKENS)
    examine_marked = partial(examine, pad=PAD, bos=BOS, eos=EOS, longest=_MAX_TOKENS)
    if isinstance(model, EncoderOnly):
        return examine_marked(_HiddenStates(model), vocab_size=size, kind="encoder")
    assert isinstance(model, EncoderDecoder)
    return examine_marked(
        model,
        vocab_size=(size, tokenizers.target.size),
        left_padding=True,
        train_step=None if objective is None else _training_step(model, objective),
        collate=lambda sources, targets: (make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS),),
        stepper=lambda source: EncoderDecoderStepper(model, source),
    )


class _HiddenStates(nn.Module):
    """Encoder of a model without its head: ids (B, S) -> hidden states (B, S, D)."""

    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.model.encode(ids)[0]


def _training_step(model: nn.Module, objective: Objective) -> Callable[[MicroBatch], float]:
    """Return a function that makes an update with its own optimizer and returns the mean loss without smoothing."""
    optimizer = torch.optim.Adam(model.parameters(), lr=_LEARNING_RATE)

    def step(batch: MicroBatch) -> float:
        optimizer.zero_grad(set_to_none=True)
        loss, nll = objective(batch)
        (loss / batch.target_tokens).backward()
        optimizer.step()
        return float(nll) / batch.target_tokens

    return step
