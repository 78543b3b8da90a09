"""torch.nn.Transformer gives the same logits with our weights, and ours with its own (Marian: tests/interop)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.model.samples import BOS, EOS, PAD, paper_signal, random_ids, scramble, scrambled_model
from tests.tolerances import assert_close
from torch import Tensor, nn

from manyheads.model.attention import MultiHeadAttention
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, EncoderLayer

D = 30
Pairs = Iterator[tuple[Tensor, Tensor]]


def padded_ids(model: EncoderDecoder) -> tuple[Tensor, Tensor]:
    """Return sources and targets, padded at their ends: (5, 11), (5, 7)."""
    source = random_ids(5, 11, model.source_embedding.tokens.num_embeddings)
    target = random_ids(5, 7, model.output.out_features, seed=3)
    target[:, 0] = BOS
    for row in range(5):
        source[row, 11 - row :] = PAD
        target[row, 7 - row :] = PAD
        source[row, 10 - row] = EOS
    return source, target


def weight_and_bias(one: nn.Linear | nn.LayerNorm, other: nn.Linear | nn.LayerNorm) -> Pairs:
    """Yield weight and bias of two modules of the same class."""
    yield one.weight, other.weight
    yield one.bias, other.bias


def torch_transformer(model: EncoderDecoder) -> nn.Transformer:
    """Return a torch Transformer of the same shape; it has final norms only where ours has them."""
    config = model.config
    shape: dict[str, Any] = {
        "d_model": config.d_model,
        "nhead": config.num_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "layer_norm_eps": config.norm_epsilon,
        "batch_first": True,
        "norm_first": config.norm == "pre",
    }
    final = [nn.LayerNorm(D, config.norm_epsilon) if config.norm == "pre" else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**shape), config.num_encoder_layers, final[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**shape), config.num_decoder_layers, final[1])
    peer = nn.Transformer(config.d_model, config.num_heads, custom_encoder=encoder, custom_decoder=decoder)
    peer.batch_first = True
    return peer.double().eval()


def torch_pairs(model: EncoderDecoder, peer: nn.Transformer) -> Pairs:
    """Yield each of our weights with that of torch."""
    for ours, theirs in zip(model.encoder_layers, peer.encoder.layers, strict=True):
        yield from torch_layer_pairs(ours, theirs)
        yield from weight_and_bias(ours.around_attention.norm, theirs.norm1)
        yield from weight_and_bias(ours.around_feed_forward.norm, theirs.norm2)
    for ours, theirs in zip(model.decoder_layers, peer.decoder.layers, strict=True):
        yield from torch_layer_pairs(ours, theirs)
        yield from torch_attention_pairs(ours.cross_attention, theirs.multihead_attn)
        yield from weight_and_bias(ours.around_self_attention.norm, theirs.norm1)
        yield from weight_and_bias(ours.around_cross_attention.norm, theirs.norm2)
        yield from weight_and_bias(ours.around_feed_forward.norm, theirs.norm3)
    if model.config.norm == "pre":
        yield from weight_and_bias(model.encoder_norm, peer.encoder.norm)
        yield from weight_and_bias(model.decoder_norm, peer.decoder.norm)


def torch_layer_pairs(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> Pairs:
    """Yield the weights of self-attention and feed-forward of a layer."""
    yield from torch_attention_pairs(ours.self_attention, theirs.self_attn)
    yield from weight_and_bias(ours.feed_forward.expand, theirs.linear1)
    yield from weight_and_bias(ours.feed_forward.contract, theirs.linear2)


def torch_attention_pairs(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Pairs:
    """Yield the weights of attention; both modules store query, key and value in one matrix, in this order."""
    yield ours.project_in.weight, theirs.in_proj_weight
    yield ours.project_in.bias, theirs.in_proj_bias
    yield from weight_and_bias(ours.project_out, theirs.out_proj)


def torch_logits(model: EncoderDecoder, peer: nn.Transformer, source: Tensor, target: Tensor) -> Tensor:
    """Compute logits by the peer between our embeddings, with the positions of the paper, and our output."""
    embedded = []
    for ids, embedding in ((source, model.source_embedding), (target, model.target_embedding)):
        signal = [[paper_signal(position, column, D) for column in range(D)] for position in range(ids.size(1))]
        embedded.append(embedding.tokens.weight[ids] * math.sqrt(D) + torch.tensor(signal, dtype=torch.float64))
    hidden = peer(
        *embedded,
        tgt_mask=torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1),
        src_key_padding_mask=source == PAD,
        memory_key_padding_mask=source == PAD,
    )
    return hidden @ model.output.weight.t() + model.output.bias


@pytest.mark.parametrize("direction", ["there", "back"])
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(("norm", "activation"), [("post", "relu"), ("pre", "relu"), ("pre", "gelu")])
def test_the_transformer_of_torch_gives_the_same_logits(norm, activation, gradients, direction) -> None:
    model = scrambled_model(norm=norm, activation=activation, norm_epsilon=0.03)
    peer = torch_transformer(model)
    scramble(peer)
    with torch.no_grad():
        for ours, theirs in torch_pairs(model, peer):
            theirs.copy_(ours) if direction == "there" else ours.copy_(theirs)
    source, target = padded_ids(model)
    real = target != PAD
    with torch.set_grad_enabled(gradients):
        right = torch_logits(model, peer, source, target)[real]
        assert_close(model(source, target)[real], right, dtype=torch.float32)


def test_every_weight_of_the_transformer_of_torch_is_paired_with_one_of_ours() -> None:
    model = scrambled_model(norm="pre")
    peer = torch_transformer(model)
    assert {id(theirs) for _, theirs in torch_pairs(model, peer)} == {id(weight) for weight in peer.parameters()}
