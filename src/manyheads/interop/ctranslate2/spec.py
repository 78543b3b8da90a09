"""A manyheads model as a CTranslate2 specification: the same weights under the names of that library.

CTranslate2 can represent every `EncoderDecoder` without token types: pre- and post-norm, sinusoidal, learned and
rotary positions, every activation, tied or untied embeddings, normed or not, with and without biases.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import RunError, require
from manyheads.interop.ctranslate2.names import OUTPUT_BIAS, entries
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.positions import sinusoids
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
    spec = specs.TransformerSpec(encoder, decoder)
    _fill_weights(spec, model)
    names = piece_names(tokenizers.source), piece_names(tokenizers.target)
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = (SPECIALS[i] for i in (UNK, BOS, EOS))
    config.decoder_start_token = SPECIALS[BOS]
    config.add_source_bos, config.add_source_eos = False, model.config.source_end_mark
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


def _fill_weights(spec: Any, model: EncoderDecoder) -> None:
    """Set all weights; padding and the begin mark get a bias that forbids them."""
    index, state = specs_of().model_spec.index_spec, model.state_dict()
    for entry in entries(model.config):
        tensor = state[entry.name]
        parts = tensor.split(entry.split_sizes(tensor.size(0)))
        for variable, part in zip(entry.variables, parts, strict=True):
            scope, _, key = variable.rpartition("/")
            setattr(index(spec, scope), key, _plain(part))
    bias = state.get(OUTPUT_BIAS)
    forbidding = torch.zeros(model.output.out_features) if bias is None else _plain(bias)
    forbidding[[PAD, BOS]] = _FORBIDDEN_BIAS
    spec.decoder.projection.bias = forbidding
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = model.config.scale_embeddings
        if model.config.positions == "sinusoidal":  # the library's own sinusoids differ
            rows = max(model.config.max_positions, _FEWEST_POSITIONS)
            side.position_encodings.encodings = sinusoids(rows, model.config.d_model)


def _plain(tensor: Tensor) -> Tensor:
    """Return a copy in float32 on the CPU, because the library quantises in place."""
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous()
