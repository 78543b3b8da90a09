"""Read the settings of a CTranslate2 model: the configuration of the same manyheads model, or why there is none."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.errors import RunError
from manyheads.interop.ctranslate2.binary import StoredModel
from manyheads.interop.ctranslate2.names import entries
from manyheads.interop.marian.names import our_width
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.positions import sinusoids

VOCABULARY_MATRICES = ("encoder/embeddings_0/weight", "decoder/embeddings/weight")
OLD_SOURCE_EMBEDDING = "encoder/embeddings/weight"
_SIDES = ("encoder", "decoder")
_KINDS = {"TransformerSpec": 8, "TransformerBase": 8, "TransformerBig": 16}  # heads of models that do not say
_REVISIONS = range(2, 8)  # the first one had the names of OpenNMT-tf
_ACTIVATIONS = ("relu", "gelu-tanh", "swish", "gelu", "sigmoid-gelu", "tanh", "sigmoid")
_OUR_ACTIVATIONS = ("relu", "gelu-tanh", "swish", "gelu")
_COMPUTED_POSITIONS = 500  # rows of a table of positions that CTranslate2 computes itself
_TABLE_TOLERANCE = 0.01  # of sinusoids, which float16 and bfloat16 round
_MOST_REASONS = 20
_MOST_LAYERS = 1_000
_FLOATS = ("float32", "float16", "bfloat16")
_MATRIX_TYPES = (*_FLOATS, "int8", "int16")
_OTHER_ROTARY = "rotary positions of another kind"
# Parts of names of variables -> what manyheads does not have.
_REFUSED = {
    r"relative_(position|asymmetric)": "relative positions",
    r"relative_attention_bias|relative_attention_max": "a relative attention bias (T5)",
    r"rotary_|max_position_embeddings": _OTHER_ROTARY,
    r"num_heads_kv|multi_query": "attention heads that share keys and values",
    r"head_dim": "attention heads of another width",
    r"^(en|de)coder/layer_norm/": "a norm after the last layer of a post-norm model",
    r"/[qkv]_norm/": "norms of queries and keys",
    r"encoder/embeddings_[1-9]": "source factors",
    r"linear_0_noact": "gated feed-forward layers other than swiglu",
    r"project_(in|out)/": "embeddings of another width than the layers",
    r"alibi": "attention with linear biases (ALiBi)",
    r"sliding_window": "a sliding window of attention",
    r"weight_zero": "AWQ weights of 4 bits",
    r"memory_kv|merged_encoder_attention": "self-attention merged with the attention to the source",
    r"scale_outputs|softcapping|queries_scale|layer_scalar": "scaled outputs, queries or layers",
    r"(input|post_attention|feedforward|shared|encoder_attention)_layer_norm": "norms in other places",
    r"layer_norm_use_residual": "RMS norms",
    r"conv": "convolutions",
}  # fmt: skip
# Numbers of each side; a number of something in `_REFUSED` may be 0.
_ATTRIBUTES = {
    "num_heads", "pre_norm", "activation", "scale_embeddings", "embeddings_merge", "alignment_layer",
    "alignment_heads", "start_from_zero_embedding", "embeddings/multiply_by_sqrt_depth",
    "embeddings_0/multiply_by_sqrt_depth", "position_encodings/encodings", "alibi_use_positive_positions",
    "scale_alibi",
}  # fmt: skip
_TOP_ATTRIBUTES = {  # of files before version 6
    "with_source_bos", "with_source_eos", "with_target_bos", "user_decoder_start_tokens", "unk_token", "bos_token",
    "eos_token", "num_heads", "pre_norm", "activation", "embeddings_merge", "alignment_layer", "alignment_heads",
}  # fmt: skip


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a stored model in manyheads.

    Attributes:
        values: values of the section ``model`` of a configuration.
        tables: tables of positions of encoder and decoder, in the order of manyheads; empty for rotary positions.
        halves: whether the width is in another order: all sines of the positions before all cosines.
    """

    values: dict[str, Any]
    tables: list[Tensor]
    halves: bool


def read_settings(stored: StoredModel, others: list[str]) -> ModelSettings:
    """Return the settings of a stored encoder-decoder; `others` are further reasons to refuse it.

    Raises:
        RunError: the model is of another kind, damaged, or manyheads has no such variant; all reasons are named.
    """
    if stored.kind not in _KINDS:
        raise RunError(f"{stored.path} is a {stored.kind}; only encoder-decoders (TransformerSpec) are imported.")
    if stored.revision not in _REVISIONS:
        raise RunError(
            f"{stored.path} has the revision {stored.revision:,} of {stored.kind}; {_REVISIONS[0]} to "
            f"{_REVISIONS[-1]} are read. Convert the model again, with CTranslate2 4."
        )
    width, heads = _matrix(stored, "decoder/embeddings/weight")[1], _both(stored, "num_heads", _KINDS[stored.kind])
    pre, activation = _both(stored, "pre_norm", 1), _both(stored, "activation", 0)
    glu = stored.find("encoder/layer_0/ffn/linear_0_noact/weight") is not None
    name = _ACTIVATIONS[int(activation[0])] if activation[0] in range(len(_ACTIVATIONS)) else str(activation[0])
    scales = [_embedding_scale(stored, side, width) for side in _SIDES]
    rotary = stored.find("encoder/layer_0/self_attention/rotary_dim") is not None
    norms = [stored.find(f"{side}/layernorm_embedding/gamma") is not None for side in _SIDES]
    undivided = heads[0] < 1 or heads[0] % 1 > 0 or width % heads[0] > 0
    values: dict[str, Any] = {
        "d_model": width,
        "d_ff": _matrix(stored, "encoder/layer_0/ffn/linear_0/weight")[0],
        "num_heads": int(heads[0]),
        "num_encoder_layers": _layers(stored, "encoder"),
        "num_decoder_layers": _layers(stored, "decoder"),
        "norm": "pre" if pre[0] else "post",
        "activation": "swiglu" if glu and name == "swish" else name,
        "scale_embeddings": scales[0] != 1,
        "embedding_norm": norms[0],
        "bias": any(name.endswith("/bias") for name in stored.names()),
        "tied_embeddings": _tied(stored),
    }
    reasons = [
        *others,
        *(f"{what} of encoder and decoder differ" for what, pair in (("numbers of heads", heads),
          ("places of norms", pre), ("activations", activation), ("norms of embeddings", norms),
          ("scales of embeddings", scales)) if pair[0] != pair[1]),
        *([f"embeddings times {scales[0]:.4g}"] if scales[0] not in (1, math.sqrt(width)) else []),
        *([f"the activation {name}"] if name not in _OUR_ACTIVATIONS else []),
        *([f"{heads[0]:g} heads, which do not divide its width {width}"] if undivided else []),
        *([_OTHER_ROTARY] if rotary and not _our_rotary(stored, width // max(1, int(heads[0]))) else []),
    ]  # fmt: skip
    reasons += ["RMS norms"] if _lacks_beta(stored) else []
    reasons += _unknown(stored, values, rotary=rotary)
    if reasons:
        raise RunError(f"{stored.path} cannot be a model of ours. It has {'; '.join(dict.fromkeys(reasons))}.")
    check_variables(stored, ModelConfig().model_copy(update=values))
    if rotary:
        return ModelSettings({**values, "positions": "rotary"}, [], halves=False)
    tables = position_tables(stored, width)
    values["max_positions"] = max(2, len(tables[0]))
    drowned = not values["scale_embeddings"] and values["tied_embeddings"] != "none"  # `ModelConfig` refuses these
    for halves in () if drowned or width % 2 else (False, True):
        if all(_are_sinusoids(table, halves=halves) for table in tables):
            tables = [our_width(table, 1) for table in tables] if halves else tables
            return ModelSettings({**values, "positions": "sinusoidal"}, tables, halves=halves)
    return ModelSettings({**values, "positions": "learned"}, tables, halves=False)


def _both(stored: StoredModel, name: str, default: float) -> list[float]:
    """Return a setting of encoder and decoder; old models have one for both."""
    shared = stored.number(name, default)
    return [stored.number(f"{side}/{name}", shared) for side in _SIDES]


def _layers(stored: StoredModel, side: str) -> int:
    """Return the number of layers; raises `RunError` if they are not numbered from 0 on."""
    pattern = re.compile(rf"{side}/layer_(\d{{1,6}})/")
    numbers = {int(match[1]) for name in stored.names() if (match := pattern.match(name))}
    if not 0 < len(numbers) <= _MOST_LAYERS or numbers != {*range(len(numbers))}:
        raise stored.damaged(f"the layers of its {side} are not numbered from 0 on")
    return len(numbers)


def _matrix(stored: StoredModel, name: str) -> tuple[int, int]:
    """Return the shape of a matrix; raises `RunError` if it is none."""
    variable = stored.find(name)
    if variable is None or variable.values.ndim != 2:
        raise stored.damaged(f"{name} is missing, or no matrix")
    rows, width = variable.values.shape
    return rows, width


def _embedding_scale(stored: StoredModel, side: str, width: int) -> float:
    """Return the factor of the embeddings: stored as a flag, or as the number itself."""
    places = ("scale_embeddings", "embeddings/multiply_by_sqrt_depth", "embeddings_0/multiply_by_sqrt_depth")
    name = next((f"{side}/{place}" for place in places if stored.find(f"{side}/{place}")), "")
    value, variable = stored.number(name, 1.0), stored.find(name)
    if variable is None or variable.dtype == "int8":
        return math.sqrt(width) if value else 1.0
    return math.sqrt(width) if math.isclose(value, math.sqrt(width), rel_tol=1e-3) else value  # float16


def _tied(stored: StoredModel) -> str:
    """Return which of source embedding, target embedding and output layer are one matrix."""
    if not stored.equal("decoder/embeddings/weight", "decoder/projection/weight"):
        return "none"
    return "all" if stored.equal("decoder/embeddings/weight", "encoder/embeddings_0/weight") else "decoder"


def _our_rotary(stored: StoredModel, head_width: int) -> bool:
    """Return whether the rotary positions of all layers are those of manyheads."""
    expected = {"rotary_dim": (0, head_width), "rotary_interleave": (1,), "rotary_base": (10_000,)}
    return all(
        stored.number(f"{side}/layer_{number}/self_attention/{name}", -1) in values
        for side in _SIDES
        for number in range(_layers(stored, side))
        for name, values in expected.items()
    )


def position_tables(stored: StoredModel, width: int) -> list[Tensor]:
    """Return the tables of positions of both sides, cut to the same number of rows."""
    tables = []
    for side in _SIDES:
        name = f"{side}/position_encodings/encodings"
        variable = stored.find(name)
        if variable is not None and variable.values.shape[1:] != (width,):
            raise stored.damaged(f"{name} does not have the width {width} of the embeddings")
        tables.append(_computed_positions(width) if variable is None else torch.from_numpy(stored.floats(name)))
    rows = min(map(len, tables))
    return [table[:rows] for table in tables]


def _computed_positions(width: int) -> Tensor:
    """Return the table that CTranslate2 computes for a model without one: sinusoids from 1 on, in halves."""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10_000) / max(1, half - 1)))
    angles = torch.arange(1, _COMPUTED_POSITIONS + 1, dtype=torch.float64)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos(), torch.zeros(len(angles), width % 2)], dim=1).float()


def _are_sinusoids(table: Tensor, *, halves: bool) -> bool:
    """Return whether a table is that of manyheads, as it is or in halves."""
    ours = sinusoids(*table.shape)
    return torch.allclose(our_width(table, 1) if halves else table, ours, rtol=0, atol=_TABLE_TOLERANCE)


def _lacks_beta(stored: StoredModel) -> bool:
    """Return whether norms only scale."""
    names = stored.names()
    return any(f"{name.removesuffix('gamma')}beta" not in names for name in names if name.endswith("/gamma"))


def check_variables(stored: StoredModel, config: ModelConfig) -> None:
    """Refuse a file on which the library or a conversion would fail; a bias may be missing.

    Raises:
        RunError: a weight is missing, a shape or type is not that of the settings, or alignments do not exist.
    """
    with torch.device("meta"):
        model = EncoderDecoder(config, *(_matrix(stored, name)[0] for name in VOCABULARY_MATRICES))
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    for entry in entries(config):
        rows, *others = shapes[entry.name]
        for variable, size in zip(entry.variables, entry.split_sizes(rows), strict=True):
            _check_variable(stored, variable, (size, *others))
    layer, heads = (stored.number(f"decoder/alignment_{name}", 0) for name in ("layer", "heads"))
    layers = config.num_decoder_layers
    if layer not in range(-layers, layers) or heads not in range(config.num_heads + 1):
        raise stored.damaged(f"alignments of layer {layer:g}, {heads:g} heads, do not exist")


def _check_variable(stored: StoredModel, name: str, shape: tuple[int, ...]) -> None:
    found = stored.find(name)
    if found is None:
        if name.endswith("/bias"):
            return
        raise stored.damaged(f"{name} is missing")
    if found.values.shape != shape:
        raise stored.damaged(f"{name} has the shape {found.values.shape}, not {shape}")
    if found.dtype not in (_MATRIX_TYPES if name.endswith("/weight") else _FLOATS):
        raise stored.damaged(f"{name} is {found.dtype}")
    stored.factors(name)


def _unknown(stored: StoredModel, values: dict[str, Any], *, rotary: bool) -> list[str]:
    """Return the meaning of variables that the model in manyheads does not have."""
    known = {f"{side}/{name}" for side in _SIDES for name in _ATTRIBUTES} | _TOP_ATTRIBUTES
    widest = ModelConfig().model_copy(update={**values, "positions": "learned", "bias": True})
    weights = {variable for entry in entries(widest) for variable in entry.variables}
    weights.add(OLD_SOURCE_EMBEDDING)
    known |= weights | {f"{name}_scale" for name in weights if name.endswith("weight")}
    reasons = []
    for name in sorted(stored.names() - known):
        if rotary and name.rpartition("/")[2] in ("rotary_dim", "rotary_interleave", "rotary_base"):
            continue
        variable = stored.find(name)
        off = variable is not None and variable.values.size == 1 and not stored.number(name, 0)
        reason = next((text for part, text in _REFUSED.items() if re.search(part, name)), None)
        if not (off and reason):
            reasons.append(reason or f"the unknown variable {name}")
    return reasons[:_MOST_REASONS]
