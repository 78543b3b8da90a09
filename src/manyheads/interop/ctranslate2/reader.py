"""Read a CTranslate2 folder of an encoder-decoder as a manyheads model, and compare both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.checkpoint import read_bytes, read_json, read_json_text
from manyheads.checkpoint.bundle import LoadedModel, is_export, read_metadata
from manyheads.config.load import parse_config
from manyheads.config.schema import Config, ModelConfig
from manyheads.errors import ConfigError, RunError
from manyheads.inference.parity import Parity, Reference
from manyheads.interop.ctranslate2.binary import StoredModel, read_model
from manyheads.interop.ctranslate2.convert import FORBIDDEN_BIASES, compare_engine
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.names import OUTPUT_BIAS, Entry, entries
from manyheads.interop.ctranslate2.settings import (
    OLD_SOURCE_EMBEDDING,
    VOCABULARY_MATRICES,
    ModelSettings,
    check_variables,
    position_tables,
    read_settings,
)
from manyheads.interop.ctranslate2.spec import piece_names
from manyheads.interop.marian.names import our_width
from manyheads.interop.marian.reader import START_BIAS
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.positions import SinusoidalPositions
from manyheads.tensors.weights import load_weights
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer, TokenizerPair

_MODEL = "model.bin"
_PIECES = "sentencepiece.model"
_MERGES = "bpe.model"  # of BPE with @@
_POSITIONS = ("source_embedding.positions.table.weight", "target_embedding.positions.table.weight")
_EPSILON = 1e-5  # of norms of a model that does not say
_FIRST_WITH_CONFIG = 6  # first version of the file format with a config.json beside it


@dataclass(frozen=True)
class _Marks:
    """The special symbols of a model, and whether it reads and adds the end mark of a source."""

    unk: str
    eos: str
    start: str | None  # None: the decoder starts from zeros
    reads_eos: bool
    adds_eos: bool


@dataclass(frozen=True)
class ImportedModel:
    """A model with what the comparison needs.

    Attributes:
        loaded: the model in manyheads.
        names: symbol in CTranslate2 of each source id and of each target id.
        adds_end_mark: whether CTranslate2 adds the end mark to a source.
    """

    loaded: LoadedModel
    names: tuple[list[str], list[str]]
    adds_end_mark: bool


def read_ctranslate2(folder: Path, *, source: str | None = None, target: str | None = None) -> ImportedModel:
    """Read a folder with model.bin, vocabularies and SentencePiece models or merges; or an export of manyheads.

    Args:
        folder: folder of the model.
        source: source language; an export names its own.
        target: target language.

    Raises:
        RunError: a file is missing or damaged, or manyheads has no such variant.
    """
    if is_export(folder):
        return _read_own(folder)
    stored = read_model(folder / _MODEL)
    if stored.find(VOCABULARY_MATRICES[0]) is None and OLD_SOURCE_EMBEDDING in stored.variables:
        stored = replace(stored, aliases={**stored.aliases, VOCABULARY_MATRICES[0]: OLD_SOURCE_EMBEDDING})
    config = read_json(folder / "config.json") if stored.version >= _FIRST_WITH_CONFIG else _old_config(stored)
    settings = read_settings(stored, _unusual_marks(config))
    marks = _marks_of(stored, config)
    if not source or not target:
        raise RunError(f"{folder} does not name its languages. Give --source and --target.")
    vocabularies = _vocabularies(folder, stored)
    pair, rows = _tokenizers(folder, vocabularies, marks, (source, target))
    values = {
        **settings.values,
        "norm_epsilon": config.get("layer_norm_epsilon") or _EPSILON,
        "source_end_mark": marks.reads_eos,
    }
    ours = _our_config(folder, (source, target), values, pair, shared=vocabularies[0] == vocabularies[1])
    tensors = _our_tensors(ours.model, stored, settings, rows)
    model = EncoderDecoder(ours.model, pair.source.size, pair.target.size)
    load_weights(model, tensors, str(folder))
    _use_stored_sinusoids(model, settings.tables)
    special = [marks.unk, "", "", marks.eos]
    names = [
        [*special, *tokenizer.pieces(range(len(special), tokenizer.size))]
        for tokenizer in (pair.source, pair.target)
    ]
    return ImportedModel(LoadedModel(ours, pair, model.eval()), (names[0], names[1]), marks.adds_eos)


def _our_config(
    folder: Path, languages: tuple[str, str], values: dict[str, Any], pair: TokenizerPair, *, shared: bool
) -> Config:
    """Return the configuration of a run with these settings of the model."""
    if values["tied_embeddings"] == "all" and not shared:
        values = {**values, "tied_embeddings": "decoder"}
    size = max(pair.source.size, pair.target.size)
    try:
        return parse_config(
            {
                "data": {"source": languages[0], "target": languages[1]},
                "tokenizer": {"kind": pair.source.kind, "vocab_size": size, "joint": shared},
                "model": values,
            },
            origin=str(folder),
        )
    except ConfigError as error:
        raise RunError(str(error)) from error


def _read_own(folder: Path) -> ImportedModel:
    """Read an export of manyheads, whose tokenizers and settings are beside it."""
    metadata, stored = read_metadata(folder), read_model(folder / _MODEL)
    config, pair = metadata.config.model, metadata.tokenizers
    check_variables(stored, config)
    tensors = {entry.name: tensor for entry, tensor in _tensors_of(config, stored)}
    match metadata.details.get(FORBIDDEN_BIASES):
        case [float() as pad, float() as bos] if OUTPUT_BIAS in tensors:
            tensors[OUTPUT_BIAS][[PAD, BOS]] = torch.tensor([pad, bos])
    model = EncoderDecoder(config, pair.source.size, pair.target.size)
    load_weights(model, tensors, str(folder))
    if config.positions == "sinusoidal":
        _use_stored_sinusoids(model, position_tables(stored, config.d_model))
    names = piece_names(pair.source), piece_names(pair.target)
    return ImportedModel(LoadedModel(metadata.config, pair, model.eval()), names, config.source_end_mark)


def _use_stored_sinusoids(model: EncoderDecoder, tables: list[Tensor]) -> None:
    """Compute with the sinusoids of the file, which may be rounded; a run does not store them."""
    for embedding, table in zip((model.source_embedding, model.target_embedding), tables, strict=False):
        if isinstance(embedding.positions, SinusoidalPositions):
            embedding.positions.table = table


def _tied_names(config: ModelConfig) -> set[str]:
    """Return the names under which a tied matrix is no parameter of its own."""
    return {
        "none": set(),
        "decoder": {"output.weight"},
        "all": {"output.weight", "target_embedding.tokens.weight"},
    }[config.tied_embeddings]


def _tensors_of(config: ModelConfig, stored: StoredModel) -> Iterator[tuple[Entry, Tensor]]:
    """Yield each parameter; a missing bias is zero, a missing table of positions empty."""
    tied = _tied_names(config)
    for entry in entries(config):
        if entry.name in tied:
            continue
        parts = [
            torch.zeros(_rows_beside(stored, name))
            if name.endswith(("/bias", "/encodings")) and stored.find(name) is None
            else torch.from_numpy(stored.floats(name))
            for name in entry.variables
        ]
        yield entry, torch.cat(parts) if len(parts) > 1 else parts[0]


def _rows_beside(stored: StoredModel, bias: str) -> int:
    """Return the number of outputs of the layer of a bias."""
    weight = stored.find(f"{bias.removesuffix('bias')}weight")
    return 0 if weight is None else len(weight.values)


def _our_tensors(
    config: ModelConfig, stored: StoredModel, settings: ModelSettings, rows: tuple[list[int], list[int]]
) -> dict[str, Tensor]:
    """Return the weights in the order of manyheads; `rows` are the rows of its ids, -1 for zeros."""
    tensors, tables = {}, iter(settings.tables)
    for entry, stored_tensor in _tensors_of(config, stored):
        tensor = next(tables) if entry.name in _POSITIONS else stored_tensor
        if entry.name.endswith("tokens.weight") or entry.name.startswith("output."):
            source_alone = entry.name.startswith("source") and config.tied_embeddings != "all"
            tensor = _take(tensor, rows[0 if source_alone else 1])
        tensors[entry.name] = (our_width(tensor, entry.axis) if settings.halves else tensor).contiguous()
    if OUTPUT_BIAS in tensors:
        tensors[OUTPUT_BIAS][[PAD, BOS]] = START_BIAS
    return tensors


def _take(tensor: Tensor, rows: list[int]) -> Tensor:
    """Return rows of a tensor, with zeros for -1."""
    return torch.cat([tensor, torch.zeros_like(tensor[:1])])[rows]


def _old_config(stored: StoredModel) -> dict[str, Any]:
    """Return the settings of ``config.json``, where they are since version 6; before, they were variables."""
    texts = {name: stored.find(name) for name in ("unk_token", "bos_token", "eos_token")}
    tokens = dict(zip(texts, (SPECIALS[UNK], SPECIALS[BOS], SPECIALS[EOS]), strict=True))
    for name, variable in texts.items():
        if variable is not None:
            tokens[name] = variable.values.tobytes().decode(errors="replace")
    start: str | None = tokens["bos_token" if stored.number("with_target_bos", 1) else "eos_token"]
    return {
        **tokens,
        "add_source_bos": bool(stored.number("with_source_bos", 0)),
        "add_source_eos": bool(stored.number("with_source_eos", 0)),
        "decoder_start_token": None if stored.number("user_decoder_start_tokens", 0) else start,
    }


def _unusual_marks(config: Mapping[str, Any]) -> list[str]:
    """Return the marks of a model that manyheads does not have."""
    given = config.get("decoder_start_token") is None
    return [
        *(["a begin mark at the source (add_source_bos)"] if config.get("add_source_bos") else []),
        *(["a first target token that the user gives (decoder_start_token is null)"] if given else []),
    ]


def _marks_of(stored: StoredModel, config: Mapping[str, Any]) -> _Marks:
    """Return the marks of a model.

    The tokenizers of transformers add the end mark to the source themselves. Its models start a target with the end
    mark, those of OpenNMT-py with another one.
    """
    unk, eos, start = config.get("unk_token"), config.get("eos_token"), config.get("decoder_start_token")
    if not isinstance(unk, str) or not isinstance(eos, str) or not isinstance(start, str | None):
        raise RunError(f"{stored.path.with_name('config.json')} is damaged: its tokens are no texts.")
    adds = bool(config.get("add_source_eos"))
    from_zeros = stored.number("decoder/start_from_zero_embedding", 0)
    return _Marks(unk, eos, None if from_zeros else start, adds or start == eos, adds)


def _vocabularies(folder: Path, stored: StoredModel) -> tuple[list[str], list[str]]:
    """Return the symbols of source and target, as many as their matrices have rows.

    Raises:
        RunError: a vocabulary is missing, damaged, or has another length or a symbol twice.
    """
    lists = []
    for side, matrix in zip(("source", "target"), VOCABULARY_MATRICES, strict=True):
        names = [f"{kind}_vocabulary{suffix}" for kind in ("shared", side) for suffix in (".json", ".txt")]
        path = next((folder / name for name in names if (folder / name).is_file()), None)
        if path is None:
            raise RunError(f"{folder} has no vocabulary of the {side}: {names[0]} or {names[2]}.")
        symbols = _symbols(path)
        variable = stored.find(matrix)
        rows = 0 if variable is None else len(variable.values)
        if len(symbols) != rows:
            raise RunError(
                f"{path} has {len(symbols):,} symbols, and the model {rows:,}. They do not belong together."
            )
        if len({*symbols}) < rows:
            raise RunError(f"{path} is damaged: a symbol stands in it twice.")
        lists.append(symbols)
    return lists[0], lists[1]


def _symbols(path: Path) -> list[str]:
    """Read a vocabulary: a JSON list, or a line for each symbol."""
    try:
        if path.suffix == ".txt":
            return read_bytes(path).decode().removesuffix("\n").split("\n")
        symbols = json.loads(read_json_text(path))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise RunError(f"{path} is damaged: it is no list of symbols.")
    return symbols


def _tokenizers(
    folder: Path, vocabularies: tuple[list[str], list[str]], marks: _Marks, languages: tuple[str, str]
) -> tuple[TokenizerPair, tuple[list[int], list[int]]]:
    """Return the tokenizers, and the row of each id in the matrices of both sides; -1 for rows of zeros."""
    tokenizers: list[Tokenizer] = []
    rows = []
    makers = _tokenizer_makers(folder, languages)
    for symbols, make, start in zip(vocabularies, makers, (None, marks.start), strict=True):
        ids = {symbol: i for i, symbol in enumerate(symbols)}
        lacking = [mark for mark in (marks.unk, marks.eos, start) if mark is not None and mark not in ids]
        if lacking:
            raise RunError(f"{folder} is damaged: a vocabulary lacks {', '.join(map(repr, lacking))}.")
        special = [ids[marks.unk], -1, -1 if start is None else ids[start], ids[marks.eos]]
        rest = [i for i in range(len(symbols)) if i not in (special[UNK], special[EOS])]
        tokenizers.append(make([symbols[i] for i in rest]))
        rows.append([*special, *rest])
    source, target = tokenizers
    joint = source.sha256 == target.sha256
    return TokenizerPair(source, source if joint else target, joint=joint), (rows[0], rows[1])


def _tokenizer_makers(folder: Path, languages: tuple[str, str]) -> list[Callable[[list[str]], Tokenizer]]:
    """Return the function that makes the tokenizers of source and target from their symbols.

    SentencePiece models, or merges, are in the folder, or in the package around it.
    """
    for place in (folder, folder.parent) if folder.name == "model" else (folder,):
        for names in (("source.spm", "target.spm"), (_PIECES, _PIECES)):
            if all((place / name).is_file() for name in names):
                return [partial(MarianTokenizer, model=read_bytes(place / name)) for name in names]
        if (place / _MERGES).is_file():
            merges = read_bytes(place / _MERGES).decode(errors="replace")
            return [partial(MosesBpeTokenizer, merges=merges, language=language) for language in languages]
    raise RunError(
        f"{folder} has no SentencePiece models, and no merges. Put {_PIECES}, or source.spm and target.spm, or "
        f"{_MERGES} (merges with @@) beside model.bin."
    )


def check_imported(folder: Path, imported: ImportedModel, expected: Reference) -> Parity:
    """Compare the outputs and scores of CTranslate2, in float32 arithmetic, with those of the imported model.

    Raises:
        ParityError: the results differ.
        RunError: CTranslate2 cannot open the folder.
        MissingExtraError: ctranslate2 is not installed.
    """
    config = imported.loaded.config.model
    engine = CTranslate2Engine(
        folder,
        imported.names,
        max_positions=config.max_positions,
        compute_type="float32",
        device="cpu",
    )
    mark = [EOS] if config.source_end_mark and not imported.adds_end_mark else []
    rows = [[*row, *mark] for row in expected.samples.rows]
    try:
        return compare_engine(engine, rows, expected, "float32", "the imported model")
    except (RuntimeError, ValueError) as error:
        raise RunError(f"CTranslate2 cannot use {folder}: {error}") from error
