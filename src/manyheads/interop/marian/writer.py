"""Write a manyheads model as a MarianMT folder, which transformers opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.checkpoint import as_json, write_atomically, write_tensors
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.interop.marian.names import entries, their_width
from manyheads.interop.marian.reader import START_BIAS
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.marian import MarianTokenizer
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer, TokenizerPair

TRAINED_START = (
    "the first token of an output has a trained vector here. CTranslate2's own converter starts MarianMT models "
    "from zeros, and would give other text without an error: for CTranslate2, use manyheads export --to ctranslate2"
)
_EPSILON = 1e-5  # fixed in MarianMT's layer norm
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish"}


def _refuse_other_variants(config: Config, tokenizers: TokenizerPair) -> None:
    """Raise `RunError` with every reason why MarianMT has no such model."""
    model, pair = config.model, tokenizers
    subwords = isinstance(pair.source, SubwordTokenizer | MarianTokenizer)
    reasons = [
        reason
        for wrong, reason in (
            (model.norm != "post", f'model.norm = "{model.norm}" (it has "post")'),
            (model.positions != "sinusoidal", f'model.positions = "{model.positions}" (it has "sinusoidal")'),
            (
                model.activation not in _ACTIVATIONS,
                f'model.activation = "{model.activation}" (relu, gelu, swish)',
            ),
            (model.embedding_norm, "model.embedding_norm = true"),
            (not model.source_end_mark, "model.source_end_mark = false"),
            (bool(model.token_types), f"model.token_types = {model.token_types}"),
            (model.norm_epsilon != _EPSILON, f"model.norm_epsilon = {model.norm_epsilon} (it has {_EPSILON})"),
            (not subwords, f'tokenizer.kind = "{config.tokenizer.kind}" (it has "bpe" or "unigram")'),
            (config.tokenizer.lowercase, "tokenizer.lowercase = true (it keeps capitals)"),
            (
                subwords and not _shared(pair),
                "tokenizer.joint = false (this export writes one vocabulary for both sides)",
            ),
        )
        if wrong
    ]
    if reasons:
        raise RunError(
            f"a MarianMT model cannot be this one: {'; '.join(reasons)}. Export to ctranslate2, or train with the "
            "recipe of a post-norm model."
        )


def _shared(pair: TokenizerPair) -> bool:
    """Return whether both sides have the same pieces in the same order."""
    return pair.joint or _names_of(pair.source) == _names_of(pair.target)


def _names_of(tokenizer: Tokenizer) -> list[str]:
    """Return the pieces after the special symbols."""
    return tokenizer.pieces(range(len(SPECIALS), tokenizer.size))


def _marian_rows(model: EncoderDecoder) -> tuple[list[int], int]:
    """Return the manyheads ids in the order of MarianMT ids, and the MarianMT id of the first decoder token.

    Padding is last. A begin mark whose vector is zero, as in every opus-mt model, becomes padding; any other begin
    mark becomes the token before padding.
    """
    size = model.output.out_features
    rows = [EOS, UNK, *range(len(SPECIALS), size)]
    if not starts_from_zero(model):
        rows.append(BOS)
    return [*rows, PAD], len(rows) - 1 if BOS in rows else len(rows)


def starts_from_zero(model: EncoderDecoder) -> bool:
    """Return whether the vector of the begin mark is zero.

    CTranslate2's converter of MarianMT folders takes that for granted, and does not read the first decoder token.
    Another vector could be moved into positions and other vectors, but transformers does not save positions.
    """
    return not bool(model.target_embedding.tokens.weight[BOS].any())


def marian_numbers(model: EncoderDecoder) -> list[int]:
    """Return the MarianMT id of each manyheads id; the begin mark has the first decoder token."""
    rows, start = _marian_rows(model)
    numbers = {row: number for number, row in enumerate(rows)} | {BOS: start}
    return [numbers[i] for i in range(model.output.out_features)]


@torch.no_grad()
def _their_tensors(model: EncoderDecoder) -> dict[str, Tensor]:
    """Return the weights under the names and in the order of MarianMT; the vector of padding is zero."""
    config, parameters = model.config, dict(model.named_parameters())
    rows, _ = _marian_rows(model)
    tensors: dict[str, Tensor] = {}
    for entry in entries(config.model_copy(update={"bias": True})):
        if entry.name in parameters:
            weight = parameters[entry.name].detach()
        else:  # a linear layer without bias
            weight = torch.zeros(parameters[entry.name.replace(".bias", ".weight")].size(0))
        parts = their_width(weight.float(), entry.axis).chunk(len(entry.marian_names))
        tensors |= dict(zip(entry.marian_names, parts, strict=True))
    for name, matrix in _matrices(model):
        tensors[name] = their_width(matrix.float()[rows], 1)
        tensors[name][-1] = 0.0
    bias = torch.zeros(len(rows)) if model.output.bias is None else model.output.bias.float()[rows].clone()
    if BOS in rows:
        bias[-2:] = START_BIAS
    tensors["final_logits_bias"] = bias[None]
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _matrices(model: EncoderDecoder) -> Iterator[tuple[str, Tensor]]:
    """Yield the matrices of the vocabulary with their names in MarianMT, tied matrices once."""
    tied = model.config.tied_embeddings
    if tied == "all":
        yield "model.shared.weight", model.source_embedding.tokens.weight
        return
    yield "model.encoder.embed_tokens.weight", model.source_embedding.tokens.weight
    yield "model.decoder.embed_tokens.weight", model.target_embedding.tokens.weight
    if tied == "none":
        yield "lm_head.weight", model.output.weight


def write_marian(folder: Path, config: Config, tokenizers: TokenizerPair, model: EncoderDecoder) -> None:
    """Write config.json, generation_config.json, model.safetensors, vocab.json and the SentencePiece models."""
    _refuse_other_variants(config, tokenizers)
    write_tensors(folder / "model.safetensors", _their_tensors(model))
    for name, content in (
        ("config.json", _model_settings(config, model)),
        ("generation_config.json", _generation_settings(config, model)),
        ("tokenizer_config.json", _tokenizer_settings(config)),
        ("vocab.json", _vocabulary(tokenizers.target, model)),
    ):
        write_atomically(folder / name, as_json(content))
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        assert isinstance(tokenizer, SubwordTokenizer | MarianTokenizer)
        write_atomically(folder / f"{side}.spm", tokenizer.model)


def _vocabulary(tokenizer: Tokenizer, model: EncoderDecoder) -> dict[str, int]:
    """Return the MarianMT id of every piece."""
    rows, _ = _marian_rows(model)
    pieces = [*SPECIALS, *_names_of(tokenizer)]
    numbered: dict[str, int] = {}
    for number, row in enumerate(rows):
        name = pieces[row]
        while name in numbered:
            name += "_"
        numbered[name] = number
    return numbered


def _special_ids(model: EncoderDecoder) -> dict[str, int]:
    """Return the MarianMT ids of padding, the end mark and the first decoder token."""
    rows, start = _marian_rows(model)
    return {"pad_token_id": len(rows) - 1, "eos_token_id": 0, "decoder_start_token_id": start}


def _model_settings(config: Config, model: EncoderDecoder) -> dict[str, Any]:
    shape, size = config.model, _special_ids(model)["pad_token_id"] + 1
    layer_settings: dict[str, Any] = {}
    for side, layers in (("encoder", shape.num_encoder_layers), ("decoder", shape.num_decoder_layers)):
        layer_settings |= {
            f"{side}_layers": layers,
            f"{side}_attention_heads": shape.num_heads,
            f"{side}_ffn_dim": shape.d_ff,
        }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": size,
        "decoder_vocab_size": size,
        "d_model": shape.d_model,
        **layer_settings,
        "activation_function": _ACTIVATIONS[shape.activation],
        "max_position_embeddings": shape.max_positions,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "scale_embedding": shape.scale_embeddings,
        "share_encoder_decoder_embeddings": shape.tied_embeddings == "all",
        "tie_word_embeddings": shape.tied_embeddings != "none",
        "dropout": shape.dropout,
        "attention_dropout": shape.attention_dropout,
        "activation_dropout": 0.0,
        **_special_ids(model),
        "forced_eos_token_id": 0,
        "dtype": "float32",
    }


def _generation_settings(config: Config, model: EncoderDecoder) -> dict[str, Any]:
    special = _special_ids(model)
    return {
        **special,
        "bad_words_ids": [[special["pad_token_id"]]],
        "forced_eos_token_id": 0,
        "max_length": min(512, config.model.max_positions),
        "num_beams": config.search.beam_size,
        "length_penalty": config.search.length_penalty,
        "no_repeat_ngram_size": config.search.no_repeat_ngram,
    }


def _tokenizer_settings(config: Config) -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        **dict(zip(("source_lang", "target_lang"), config.languages, strict=True)),
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "separate_vocabs": False,
        "sp_model_kwargs": {},
        "model_max_length": min(512, config.model.max_positions),
    }
