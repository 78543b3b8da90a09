"""A manyheads model as a CTranslate2 specification: the same weights under the names of that library.

CTranslate2 can represent every `EncoderDecoder` without token types: pre- and post-norm, sinusoidal, learned and
rotary positions, every activation, tied or untied embeddings, normed or not, with and without biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.errors import RunError, require
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, EncoderLayer, FeedForward
from manyheads.model.positions import LearnedPositions, sinusoids
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer, TokenizerPair

_FORBIDDEN_BIAS = -1e4  # of tokens that no decoder may choose: probability 0 in every number format
_FEWEST_POSITIONS = 1024  # rows of a table of sinusoids, which is defined for any length


def specs_of() -> ModuleType:
    """Import the module `ctranslate2.specs`; raises `MissingExtraError`."""
    require("ctranslate2", extra="ct2", purpose="CTranslate2")
    return require("ctranslate2.specs", extra="ct2", purpose="CTranslate2")


def piece_names(tokenizer: Tokenizer) -> list[str]:
    """Return a unique name for each id: its piece, with its id appended if the name is taken."""
    names = [*SPECIALS, *tokenizer.pieces(range(len(SPECIALS), tokenizer.size))]
    taken = set(SPECIALS)
    for i in range(len(SPECIALS), len(names)):
        while names[i] in taken:
            names[i] += f"#{i}"
        taken.add(names[i])
    return names


def build_spec(model: EncoderDecoder, tokenizers: TokenizerPair) -> Any:
    """Build the specification of a model, without quantisation.

    Padding and the begin mark, which the search of manyheads never chooses, get a bias that forbids them in every
    decoder.

    Raises:
        RunError: CTranslate2 cannot represent the model.
        MissingExtraError: ctranslate2 is not installed.
    """
    if model.config.token_types:
        raise RunError(f"a CTranslate2 model cannot be this one: model.token_types = {model.config.token_types}.")
    specs = specs_of()
    options, heads = _shared_options(specs, model), model.config.num_heads
    encoder = specs.transformer_spec.TransformerEncoderSpec(len(model.encoder_layers), **options)
    if model.rotary is not None:
        delattr(encoder, "position_encodings")
    # The alignment is the mean of all heads of the last layer.
    decoder = specs.transformer_spec.TransformerDecoderSpec(
        len(model.decoder_layers), alignment_heads=heads, **options
    )
    _fill_encoder(encoder, model)
    _fill_decoder(decoder, model)
    spec = specs.TransformerSpec(encoder, decoder)
    names = piece_names(tokenizers.source), piece_names(tokenizers.target)
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = (SPECIALS[i] for i in (UNK, BOS, EOS))
    config.decoder_start_token = SPECIALS[BOS]
    config.add_source_bos, config.add_source_eos = False, True
    config.layer_norm_epsilon = model.config.norm_epsilon
    return spec


def _shared_options(specs: ModuleType, model: EncoderDecoder) -> dict[str, Any]:
    config, kinds = model.config, specs.common_spec.Activation
    activations = {
        "relu": kinds.RELU,
        "gelu": kinds.GELU,
        "gelu-tanh": kinds.GELUTanh,
        "swish": kinds.SWISH,
        "swiglu": kinds.SWISH,
    }
    rotary = config.positions == "rotary"
    return {
        "num_heads": config.num_heads,
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "layernorm_embedding": config.embedding_norm,
        "rotary_dim": config.d_model // config.num_heads if rotary else None,
        "rotary_interleave": True,  # manyheads rotates the pairs (2i, 2i + 1)
    }


def _fill_encoder(spec: Any, model: EncoderDecoder) -> None:
    _fill_embedding(spec, spec.embeddings[0], model.source_embedding, model)
    for layer_spec, layer in zip(spec.layer, model.encoder_layers, strict=True):
        _fill_encoder_layer(layer_spec, layer)
    if isinstance(model.encoder_norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, model.encoder_norm)


def _fill_decoder(spec: Any, model: EncoderDecoder) -> None:
    """Set the weights of the decoder and the output layer."""
    _fill_embedding(spec, spec.embeddings, model.target_embedding, model)
    for layer_spec, layer in zip(spec.layer, model.decoder_layers, strict=True):
        _fill_decoder_layer(layer_spec, layer)
    if isinstance(model.decoder_norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, model.decoder_norm)
    weight, bias = model.output.weight, model.output.bias
    spec.projection.weight = _plain(weight)
    forbidding = torch.zeros(weight.size(0)) if bias is None else _plain(bias)
    forbidding[[PAD, BOS]] = _FORBIDDEN_BIAS
    spec.projection.bias = forbidding


def _fill_embedding(spec: Any, table: Any, embedding: TokenEmbedding, model: EncoderDecoder) -> None:
    """Set the token embeddings, their scale, and the table of positions."""
    table.weight = _plain(embedding.tokens.weight)
    spec.scale_embeddings = model.config.scale_embeddings
    if isinstance(embedding.norm, nn.LayerNorm):
        _fill_norm(spec.layernorm_embedding, embedding.norm)
    if isinstance(embedding.positions, LearnedPositions):
        spec.position_encodings.encodings = _plain(embedding.positions.table.weight)
    elif model.rotary is None:  # the library's own sinusoids differ
        rows = max(model.config.max_positions, _FEWEST_POSITIONS)
        spec.position_encodings.encodings = sinusoids(rows, model.config.d_model)


def _fill_encoder_layer(spec: Any, layer: EncoderLayer) -> None:
    _fill_attention(spec.self_attention, layer.self_attention)
    _fill_norm(spec.self_attention.layer_norm, layer.around_attention.norm)
    _fill_feed_forward(spec.ffn, layer.feed_forward)
    _fill_norm(spec.ffn.layer_norm, layer.around_feed_forward.norm)


def _fill_decoder_layer(spec: Any, layer: DecoderLayer) -> None:
    _fill_attention(spec.self_attention, layer.self_attention)
    _fill_norm(spec.self_attention.layer_norm, layer.around_self_attention.norm)
    _fill_attention(spec.attention, layer.cross_attention)
    _fill_norm(spec.attention.layer_norm, layer.around_cross_attention.norm)
    _fill_feed_forward(spec.ffn, layer.feed_forward)
    _fill_norm(spec.ffn.layer_norm, layer.around_feed_forward.norm)


def _fill_attention(spec: Any, attention: MultiHeadAttention) -> None:
    """Set an attention: one matrix for queries, keys and values, but two in the cross-attention of CTranslate2."""
    *first, last = spec.linear
    width = attention.project_out.in_features
    _fill_parts(first, attention.project_in, [3 * width] if len(first) == 1 else [width, 2 * width])
    _fill_linear(last, attention.project_out)


def _fill_feed_forward(spec: Any, layer: FeedForward) -> None:
    """Set two matrices, or three if one half gates the other (swiglu)."""
    if layer.activation == "swiglu":
        inner = layer.contract.in_features
        _fill_parts([spec.linear_0, spec.linear_0_noact], layer.expand, [inner, inner])
    else:
        _fill_linear(spec.linear_0, layer.expand)
    _fill_linear(spec.linear_1, layer.contract)


def _fill_linear(spec: Any, layer: nn.Linear) -> None:
    """Set the weight, and the bias if there is one."""
    _fill_parts([spec], layer, [layer.out_features])


def _fill_parts(specs: Sequence[Any], layer: nn.Linear, sizes: list[int]) -> None:
    """Set linear layers with `sizes` outputs that are one layer in manyheads."""
    for spec, weight in zip(specs, layer.weight.split(sizes), strict=True):
        spec.weight = _plain(weight)
    if layer.bias is not None:
        for spec, bias in zip(specs, layer.bias.split(sizes), strict=True):
            spec.bias = _plain(bias)


def _fill_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _plain(norm.weight), _plain(norm.bias)


def _plain(tensor: Tensor) -> Tensor:
    """Return a copy in float32 on the CPU, because the library quantises in place."""
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous()
