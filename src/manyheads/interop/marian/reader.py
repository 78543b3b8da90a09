"""Read a MarianMT folder of transformers (the opus-mt family) as a manyheads model, and compare both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.checkpoint import read_bytes, read_json
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.config.load import parse_config
from manyheads.config.schema import Config, ModelConfig
from manyheads.errors import ConfigError, RunError, require
from manyheads.inference.parity import Parity, Reference, compare, no_progress_bars
from manyheads.interop.marian.names import entries, our_width
from manyheads.interop.reference import decoder_input, token_scores
from manyheads.interop.weights import read_weights
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tensors.pairs import pad_rows
from manyheads.tensors.weights import load_weights
from manyheads.text.marian import MarianTokenizer
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, TokenizerPair

_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
START_BIAS = -100.0  # bias of a begin mark that MarianMT lacks: probability 0, and finite
_NUMBERS = ("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "encoder_ffn_dim")
_VOCABULARY = {
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
    "final_logits_bias",
}
_POSITIONS = {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}  # computed, not trained
# Settings of other variants of the model, which manyheads does not have.
_MUST_BE_OFF = ("normalize_before", "normalize_embedding", "add_final_layer_norm")


@dataclass(frozen=True)
class _Vocabulary:
    """The vocabulary of a side.

    Attributes:
        symbols: symbols in the order of manyheads ids.
        rows: row of each in the matrices of MarianMT, its id there; the begin mark has the first decoder token.
    """

    symbols: list[str]
    rows: list[int]


def read_marian(
    folder: Path, *, source: str | None = None, target: str | None = None, trust_pickle: bool = False
) -> LoadedModel:
    """Read a folder with config.json, weights (`read_weights`), vocab.json, source.spm and target.spm.

    A target with a vocabulary of its own has it in target_vocab.json. The languages are those of the folder unless
    given.

    Raises:
        RunError: a file is missing or damaged, or manyheads has no such variant.
    """
    settings, tokenizer = _settings(folder)
    unsupported = [name for name in _MUST_BE_OFF if settings.get(name) or tokenizer.get(name)]
    if unsupported:
        raise RunError(f"{folder} cannot be a model of ours: {', '.join(unsupported)} is on.")
    vocabularies = _vocabularies(folder)
    config = _our_config(
        folder,
        settings,
        vocabularies,
        source or tokenizer.get("source_lang"),
        target or tokenizer.get("target_lang"),
    )
    pair = _tokenizer_pair(folder, *vocabularies)
    tensors = _our_tensors(config.model, read_weights(folder, trust_pickle=trust_pickle), *vocabularies, folder)
    model = EncoderDecoder(config.model, pair.source.size, pair.target.size)
    load_weights(model, tensors, str(folder))
    return LoadedModel(config, pair, model.eval())


def their_numbers(folder: Path) -> tuple[list[int], list[int]]:
    """Return the MarianMT id of each id of the source and of the target, see `check_marian`. Raises `RunError`."""
    source, target = _vocabularies(folder)
    return source.rows, target.rows


def _settings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the model and of its tokenizer."""
    tokenizer = folder / "tokenizer_config.json"
    return read_json(folder / "config.json"), read_json(tokenizer) if tokenizer.is_file() else {}


def _tokenizer_pair(folder: Path, source: _Vocabulary, target: _Vocabulary) -> TokenizerPair:
    """Return the tokenizers of both sides, one for both if their SentencePiece models and pieces are the same."""
    ours, theirs = (
        MarianTokenizer(vocabulary.symbols[len(SPECIALS) :], read_bytes(folder / f"{side}.spm"))
        for side, vocabulary in (("source", source), ("target", target))
    )
    joint = source is target and ours.model == theirs.model
    return TokenizerPair(ours, ours if joint else theirs, joint=joint)


def _vocabularies(folder: Path) -> tuple[_Vocabulary, _Vocabulary]:
    """Return the vocabularies of source and target: one for both unless the target has its own."""
    settings, tokenizer = _settings(folder)
    size, target_size = settings.get("vocab_size"), settings.get("decoder_vocab_size")
    pad, start = settings.get("pad_token_id"), settings.get("decoder_start_token_id")
    if not (settings.get("separate_vocabs") or tokenizer.get("separate_vocabs")):
        both = _vocabulary(folder / "vocab.json", size, pad, start, settings.get("eos_token_id"))
        if target_size not in (None, size):
            raise RunError(
                f"{folder} cannot be a model of ours: source and target have vocabularies of their own by its "
                "config.json, and one by its tokenizer_config.json (separate_vocabs)."
            )
        return both, both
    if settings.get("share_encoder_decoder_embeddings", True):
        raise RunError(
            f"{folder} cannot be a model of ours: separate_vocabs is on, and share_encoder_decoder_embeddings too."
        )
    return (
        _vocabulary(folder / "vocab.json", size, pad, pad, None),
        _vocabulary(folder / "target_vocab.json", target_size or size, pad, start, settings.get("eos_token_id")),
    )


def _vocabulary(path: Path, size: Any, pad: Any, start: Any, eos: Any) -> _Vocabulary:
    """Return the vocabulary of a file.

    Args:
        path: JSON file with the id of each piece.
        size: number of pieces by config.json.
        pad: id of the padding by config.json.
        start: id of the first decoder token, or of another symbol for a side that has none.
        eos: id of the end symbol by config.json, None where it names that of the other side.
    """
    ids = read_json(path)
    if sorted(ids.values(), key=str) != sorted(range(len(ids)), key=str) or len(ids) != size:
        raise RunError(f"{path} does not number {size} pieces from 0 on, as config.json says.")
    names = {i: name for name, i in ids.items()}
    unk, end = ids.get("<unk>"), ids.get("</s>")
    numbers = type(pad) is int and type(start) is int and pad in names and start in names
    if unk is None or end is None or not numbers or eos not in (None, end):
        raise RunError(f"{path} and config.json do not agree on <unk>, <pad>, </s> and the token to start from.")
    special = [unk, pad, start, end]  # in the order of the ids in manyheads
    rest = [i for i in sorted(names) if i not in special]
    return _Vocabulary([*SPECIALS, *(names[i] for i in rest)], [*special, *rest])


def _our_config(
    folder: Path,
    settings: Mapping[str, Any],
    vocabularies: tuple[_Vocabulary, _Vocabulary],
    source: str | None,
    target: str | None,
) -> Config:
    """Return the manyheads configuration of a MarianMT model."""
    if not source or not target:
        raise RunError(f"{folder} does not name its languages. Give --source and --target.")
    values = {name: settings.get(name) for name in _NUMBERS}
    problems = [f"{name} is {value!r}" for name, value in values.items() if type(value) is not int]
    problems += [f"encoder and decoder have another {n}" for n in ("attention_heads", "ffn_dim")
              if settings.get(f"encoder_{n}") != settings.get(f"decoder_{n}")]  # fmt: skip
    activation = settings.get("activation_function")
    if str(activation) not in _ACTIVATIONS:
        problems.append(f"activation_function is {activation!r}")
    if problems:
        raise RunError(f"{folder} cannot be a model of ours: {'; '.join(problems)}.")
    shared, tied = settings.get("share_encoder_decoder_embeddings", True), settings.get("tie_word_embeddings", True)
    size, joint = max(len(side.rows) for side in vocabularies), vocabularies[0] is vocabularies[1]
    generation = folder / "generation_config.json"
    search = read_json(generation) if generation.is_file() else settings
    try:
        return parse_config(
            {
                "data": {"source": source, "target": target},
                "tokenizer": {"kind": "marian", "vocab_size": size, "joint": joint},
                "model": {
                    "d_model": values["d_model"],
                    "d_ff": values["encoder_ffn_dim"],
                    "num_heads": values["encoder_attention_heads"],
                    "num_encoder_layers": values["encoder_layers"],
                    "num_decoder_layers": values["decoder_layers"],
                    "dropout": settings.get("dropout", 0.1),
                    "attention_dropout": settings.get("attention_dropout", 0.0),
                    "norm": "post",
                    "positions": "sinusoidal",
                    "max_positions": settings.get("max_position_embeddings", 512),
                    "activation": _ACTIVATIONS[str(activation)],
                    "tied_embeddings": "all" if shared else "decoder" if tied else "none",
                    "scale_embeddings": bool(settings.get("scale_embedding", False)),
                },
                "search": {"beam_size": search.get("num_beams") or 5},
            },
            origin=str(folder / "config.json"),
        )
    except ConfigError as error:
        raise RunError(str(error)) from error


def _our_tensors(
    config: ModelConfig, weights: Mapping[str, Tensor], source: _Vocabulary, target: _Vocabulary, folder: Path
) -> dict[str, Tensor]:
    """Return the weights of MarianMT under the names and in the order of manyheads."""
    try:
        tensors = {
            entry.name: our_width(torch.cat([weights[name] for name in entry.marian_names]), entry.axis)
            for entry in entries(config)
        }
        matrix = _first(weights, "model.decoder.embed_tokens.weight", "model.shared.weight", "lm_head.weight")
        sources = _first(weights, "model.encoder.embed_tokens.weight", "model.shared.weight", "lm_head.weight")
        bias = weights.get("final_logits_bias", torch.zeros(1, len(matrix)))[0][target.rows].clone()
        tensors["source_embedding.tokens.weight"] = our_width(sources[source.rows], 1)
        if config.tied_embeddings != "all":
            tensors["target_embedding.tokens.weight"] = our_width(matrix[target.rows], 1)
        if config.tied_embeddings == "none":
            tensors["output.weight"] = our_width(weights["lm_head.weight"][target.rows], 1)
        _refuse_unused(weights, {name for entry in entries(config) for name in entry.marian_names}, folder)
    except (KeyError, IndexError, RuntimeError) as error:
        raise RunError(f"{folder} lacks weights, or they do not fit its config.json: {error}.") from error
    if target.rows[BOS] in (target.rows[i] for i in range(len(SPECIALS)) if i != BOS):
        bias[BOS] = START_BIAS
    tensors["output.bias"] = bias
    return {name: tensor.float().contiguous() for name, tensor in tensors.items()}


def _refuse_unused(weights: Mapping[str, Tensor], used: set[str], folder: Path) -> None:
    """Raise `RunError` if there are weights that the configuration does not use."""
    unused = sorted(set(weights) - used - _VOCABULARY - _POSITIONS)
    if unused:
        raise RunError(f"{folder} has weights, but its config.json does not use them: {', '.join(unused[:5])}.")


def _first(tensors: Mapping[str, Tensor], *names: str) -> Tensor:
    """Return the first tensor that exists: a shared matrix is stored under one of its names."""
    return tensors[next((name for name in names if name in tensors), names[0])]


@torch.inference_mode()
def check_marian(
    folder: Path, source: Sequence[int], target: Sequence[int], expected: Reference, *, trust_pickle: bool = False
) -> Parity:
    """Compare the log-probabilities of the outputs of manyheads, and the greedy outputs of both, on samples.

    Args:
        folder: folder of the MarianMT model.
        source: MarianMT id of each manyheads id of the source.
        target: the same for the target; the begin mark has the first decoder token.
        expected: outputs of the manyheads model.
        trust_pickle: whether to read weights that are a pickle.
    """
    library = require("transformers", extra="hf", purpose="the comparison with transformers")
    with no_progress_bars(library):
        model = library.MarianMTModel.from_pretrained(
            None,
            config=library.MarianConfig.from_pretrained(folder),
            state_dict=read_weights(folder, trust_pickle=trust_pickle),
        )
    model, numbers = model.eval().float(), torch.tensor(target)
    rows = pad_rows(expected.samples.rows, PAD, last=EOS)
    inputs = {"input_ids": torch.tensor(source)[rows], "attention_mask": (rows != PAD).long()}
    logits = model(**inputs, decoder_input_ids=numbers[decoder_input(expected.outputs)]).logits
    greedy = model.generate(
        **inputs,
        num_beams=1,
        do_sample=False,
        max_length=max(expected.limits) + 2,
        bad_words_ids=[[i] for i in sorted({int(numbers[PAD]), int(numbers[BOS])} - {int(numbers[EOS])})],
        forced_eos_token_id=None,
        forced_bos_token_id=int(numbers[expected.prefix[0]]) if expected.prefix else None,
    )
    ids = {their_id: i for i, their_id in enumerate(target) if i != BOS}
    outputs = [[ids[i] for i in row] for row in greedy[:, 1:].tolist()]
    outputs = [row[: row.index(EOS)] if EOS in row else row for row in outputs]
    scores = token_scores(logits[..., numbers], expected.outputs)
    return compare(expected, scores, outputs, "float32", "the MarianMT model")
