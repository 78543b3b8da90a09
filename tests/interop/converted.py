"""Random CTranslate2 folders in the layout of each converter, with small SentencePiece models.

Each function writes the SentencePiece models to a new folder, and returns the folder ``model`` in it.
"""

from __future__ import annotations

import argparse
import importlib
import io
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ctranslate2
import numpy as np
import sentencepiece
import torch
import yaml
from numpy.typing import NDArray
from tests.interop.marian import TARGETS, TEXTS, train_pieces

from manyheads.interop.ctranslate2.binary import read_model

WIDTH, INNER, HEADS, LAYERS = 30, 37, 3, (2, 3)
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
Array = NDArray[np.float32]


def pieces_of(model: bytes) -> list[str]:
    """Return the pieces of a SentencePiece model, without its control symbols."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(3, len(processor))]


MERGES = "#version: 0.2\nh a\ne r</w>\nha u\ns t\nA U\n"


def write_pieces(folder: Path, *, joint: bool | str) -> tuple[list[str], list[str]]:
    """Write the SentencePiece models, or merges if `joint` is "@@", and return the pieces of both sides."""
    if joint == "@@":
        (folder / "bpe.model").write_text(MERGES, encoding="utf-8")
        words = sorted({word for text in [*TEXTS, *TARGETS] for word in text.split()})
        subword_nmt = importlib.import_module("subword_nmt.apply_bpe")
        pieces = [*dict.fromkeys(subword_nmt.BPE(io.StringIO(MERGES)).segment_tokens(words))]
        return pieces, pieces
    if joint:
        model = train_pieces([*TEXTS, *TARGETS], 60)
        (folder / "sentencepiece.model").write_bytes(model)
        return pieces_of(model), pieces_of(model)
    source, target = train_pieces(TEXTS, 40), train_pieces(TARGETS, 37)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    return pieces_of(source), pieces_of(target)


class RandomWeights:
    """Make random arrays: those of vocabularies larger, gains near one."""

    def __init__(self, seed: int = 3) -> None:
        self.rng = np.random.default_rng(seed)

    def matrix(self, rows: int, columns: int) -> Array:
        return self.rng.normal(0, 0.4, (rows, columns)).astype(np.float32)

    def vector(self, size: int, mean: float = 0.0) -> Array:
        return self.rng.normal(mean, 0.3, size).astype(np.float32)


def write_opennmt_py(folder: Path, *, joint: bool | str = True, numbers: str | None = None, **options: Any) -> Path:
    """Convert a random checkpoint of OpenNMT-py: pre-norm, alternating sinusoids, no end mark at the source."""
    folder.mkdir()
    random, weights = RandomWeights(), {}

    def linear(name: str, rows: int, columns: int) -> None:
        weights[f"{name}.weight"] = random.matrix(rows, columns)
        weights[f"{name}.bias"] = random.vector(rows)

    def norm(name: str) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = random.vector(WIDTH, 1.0), random.vector(WIDTH)

    def attention(name: str) -> None:
        for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
            linear(f"{name}.{part}", WIDTH, WIDTH)

    def feed_forward(name: str) -> None:
        linear(f"{name}.w_1", INNER, WIDTH)
        linear(f"{name}.w_2", WIDTH, INNER)
        norm(f"{name}.layer_norm")

    vocabularies = [["<unk>", "<blank>", "<s>", "</s>", *pieces] for pieces in write_pieces(folder, joint=joint)]
    positions = np.arange(100)[:, None] * np.exp(np.arange(0, WIDTH, 2) * -(np.log(10_000.0) / WIDTH))
    table = np.stack([np.sin(positions), np.cos(positions)], 2).reshape(100, WIDTH).astype(np.float32)
    for side, count, vocabulary in zip(("encoder", "decoder"), LAYERS, vocabularies, strict=True):
        embedding = f"{side}.embeddings.make_embedding"
        weights[f"{embedding}.emb_luts.0.weight"] = random.matrix(len(vocabulary), WIDTH)
        weights[f"{embedding}.pe.pe"] = table[:, None]
        norm(f"{side}.layer_norm")
        for number in range(count):
            layer = f"{side}.transformer{'' if side == 'encoder' else '_layers'}.{number}"
            attention(f"{layer}.self_attn")
            feed_forward(f"{layer}.feed_forward")
            norm(f"{layer}.layer_norm{'' if side == 'encoder' else '_1'}")
            if side == "decoder":
                attention(f"{layer}.context_attn")
                norm(f"{layer}.layer_norm_2")
    generator = {
        "weight": weights["decoder.embeddings.make_embedding.emb_luts.0.weight"],
        "bias": random.vector(len(vocabularies[1])),
    }
    generator["bias"][3] += 1.5
    opt = {
        "encoder_type": "transformer", "decoder_type": "transformer", "enc_layers": LAYERS[0], "heads": HEADS,
        "dec_layers": LAYERS[1], "position_encoding": True, "max_relative_positions": 0,
    }  # fmt: skip
    checkpoint = {
        "model": {name: torch.from_numpy(array) for name, array in weights.items()},
        "generator": {name: torch.from_numpy(array) for name, array in generator.items()},
        "vocab": {"src": vocabularies[0], "tgt": vocabularies[1]},
        "opt": argparse.Namespace(**opt | options),
    }
    torch.save(checkpoint, folder / "model.pt")
    converter = ctranslate2.converters.OpenNMTPyConverter(str(folder / "model.pt"), unsafe_deserialization=True)
    return Path(converter.convert(str(folder / "model"), quantization=numbers))


def write_opus_mt(
    folder: Path, *, joint: bool | str = True, numbers: str | None = None, pre: bool = False, **options: Any
) -> Path:
    """Convert a random model of Marian, as OPUS-MT publishes them: sinusoids in halves, decoder from zeros."""
    folder.mkdir()
    random, weights = RandomWeights(), {}

    def norm(name: str, *, before: bool = False) -> None:
        for kind, mean in (("scale", 1.0), ("bias", 0.0)):
            weights[f"{name}_ln_{kind}{'_pre' if before else ''}"] = random.vector(WIDTH, mean)[None]

    def linear(name: str, suffix: str, inputs: int, outputs: int) -> None:
        weights[f"{name}_W{suffix}"] = random.matrix(inputs, outputs)
        weights[f"{name}_b{suffix}"] = random.vector(outputs)[None]

    def attention(name: str) -> None:
        for part in "qkvo":
            linear(name, part, WIDTH, WIDTH)
        norm(f"{name}_Wo", before=pre)

    vocabularies = [["</s>", "<unk>", *pieces] for pieces in write_pieces(folder, joint=joint)]
    for side, count, vocabulary in zip(("encoder", "decoder"), LAYERS, vocabularies, strict=True):
        if not joint:
            weights[f"{side}_Wemb"] = random.matrix(len(vocabulary), WIDTH)
        if pre:
            norm(f"{side}_top")
        for number in range(1, count + 1):
            layer = f"{side}_l{number}"
            attention(f"{layer}_self")
            if side == "decoder":
                attention(f"{layer}_context")
            linear(f"{layer}_ffn", "1", WIDTH, INNER)
            linear(f"{layer}_ffn", "2", INNER, WIDTH)
            norm(f"{layer}_ffn_ffn", before=pre)
    if joint:
        weights["Wemb"] = random.matrix(len(vocabularies[0]), WIDTH)
    bias = random.vector(len(vocabularies[1]))
    bias[0] += 1.5
    weights["decoder_ff_logit_out_b"] = bias[None]
    config = {
        "type": "transformer", "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
        "transformer-ffn-activation": "swish", "transformer-postprocess-emb": "d",
        "transformer-preprocess": "n" if pre else "", "transformer-postprocess": "da" if pre else "dan",
        "transformer-postprocess-top": "n" if pre else "", "transformer-guided-alignment-layer": "last",
        "transformer-heads": HEADS, "enc-depth": LAYERS[0], "dec-depth": LAYERS[1],
    }  # fmt: skip
    text = yaml.safe_dump(config | options).encode() + b"\0"
    np.savez(folder / "model.npz", **weights, **{"special:model.yml": np.frombuffer(text, dtype=np.int8)})
    names = []
    for number, vocabulary in enumerate(vocabularies):
        names.append(f"vocabulary.{number}.yml")
        lines = [f'"{piece}": {i}' for i, piece in enumerate(vocabulary)]
        (folder / names[-1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "decoder.yml").write_text(
        yaml.safe_dump({"models": ["model.npz"], "vocabs": names}), encoding="utf-8"
    )
    converter = ctranslate2.converters.OpusMTConverter(str(folder))
    return Path(converter.convert(str(folder / "model"), quantization=numbers))


def _save(spec: Any, folder: Path, numbers: str | None) -> Path:
    spec.validate()
    spec.optimize(quantization=numbers)
    model = folder / "model"
    model.mkdir()
    spec.save(str(model))
    return model


def _random_bart(kind: str, size: int, **settings: Any) -> Any:
    """Return a random model of transformers of the family of BART."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(
        vocab_size=size, d_model=WIDTH, encoder_layers=LAYERS[0], decoder_layers=LAYERS[1], encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, pad_token_id=1,
        bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, max_position_embeddings=50, init_std=0.4,
        **settings,
    )  # fmt: skip
    torch.manual_seed(4)
    return getattr(transformers, f"{kind}ForConditionalGeneration")(config).eval()


def write_transformers(folder: Path, kind: str, *, numbers: str | None = None) -> Path:
    """Convert a random BART (learned positions, norms of embeddings) or M2M100 (pre-norm, other sinusoids)."""
    from ctranslate2.converters.transformers import _MODEL_LOADERS

    folder.mkdir()
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *write_pieces(folder, joint=True)[0]]
    tokenizer = SimpleNamespace(
        bos_token="<s>", eos_token="</s>", unk_token="<unk>", special_tokens_map={}, num_madeup_words=0,
        get_vocab=lambda: {symbol: i for i, symbol in enumerate(symbols)},
        convert_ids_to_tokens=symbols.__getitem__,
    )  # fmt: skip
    model = _random_bart(kind, len(symbols), **({"activation_function": "gelu"} if kind == "Bart" else {}))
    model.config.normalize_before = False  # as in files of old versions of transformers
    with torch.no_grad():
        return _save(_MODEL_LOADERS[f"{kind}Config"](model, tokenizer), folder, numbers)


def write_fairseq(folder: Path, *, joint: bool | str = True, numbers: str | None = None) -> Path:
    """Convert modules with the names of fairseq: sinusoids of other frequencies from position 2 on."""
    from ctranslate2.converters import fairseq
    from ctranslate2.specs import TransformerSpec

    folder.mkdir()
    symbols = ["<s>", "<blank>", "</s>", "<unk>", *write_pieces(folder, joint=joint)[0]]
    model = _random_bart("M2M100", len(symbols))
    spec = TransformerSpec.from_config(LAYERS, HEADS, pre_norm=True)
    with torch.no_grad():
        for module in (model.model.encoder, model.model.decoder):
            module.embed_scale = WIDTH**0.5
            module.layernorm_embedding = module.project_in_dim = module.project_out_dim = None
        model.model.decoder.output_projection = model.lm_head
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        fairseq.set_transformer_encoder(spec.encoder, model.model.encoder)
        fairseq.set_transformer_decoder(spec.decoder, model.model.decoder)
        spec.register_source_vocabulary(symbols)
        spec.register_target_vocabulary(symbols)
        spec.config.decoder_start_token, spec.config.add_source_eos = "</s>", True
        return _save(spec, folder, numbers)


def rewrite(
    path: Path,
    *,
    version: int = 6,
    kind: str | None = None,
    revision: int | None = None,
    more: dict[str, Any] | None = None,
    without: str = "",
) -> None:
    """Write a file model.bin again: in another version, with more variables, or without some (a name's end)."""
    stored = read_model(path)
    variables = {name: (variable.dtype, variable.values.copy()) for name, variable in stored.variables.items()}
    variables |= {name: (np.asarray(value).dtype.name, np.asarray(value)) for name, value in (more or {}).items()}

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value.encode()) + 1) + value.encode() + b"\0"

    kept = {name: value for name, value in variables.items() if not (without and name.endswith(without))}
    data = struct.pack("<I", version) + text(kind or stored.kind)
    data += struct.pack("<II", stored.revision if revision is None else revision, len(kept))
    for name, (dtype, values) in kept.items():
        code = values.itemsize if version < 4 else _TYPES.index(dtype)
        size = values.size if version < 4 else values.nbytes
        data += text(name) + struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
        data += struct.pack("<BI", code, size) + values.tobytes()
    aliases = {alias: name for alias, name in stored.aliases.items() if name in kept and alias not in kept}
    data += struct.pack("<I", len(aliases))
    for alias, name in aliases.items():
        data += text(alias) + text(name)
    del stored
    path.unlink()
    path.write_bytes(data)
