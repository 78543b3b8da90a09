"""Write a model as a CTranslate2 folder, compare it, and open it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyheads.checkpoint import write_atomically
from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.interop.carried import Carried, read_carried, write_carried
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.quantize import quantize_spec
from manyheads.interop.ctranslate2.spec import build_spec, piece_names
from manyheads.interop.parity import Parity, Reference, compare
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import SearchOptions
from manyheads.text.marian import MarianTokenizer
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["QUANTIZATIONS", "check_ctranslate2", "engine_of", "open_ctranslate2", "write_ctranslate2"]

KIND = "ctranslate2"
QUANTIZATIONS = ("float32", "int8", "int8_float32", "int8_bfloat16", "int8_float16", "bfloat16", "float16", "int16")


def write_ctranslate2(
    folder: Path, config: Config, tokenizers: TokenizerPair, model: EncoderDecoder, quantization: str = "float32"
) -> None:
    """Write a model into an existing folder, with our configuration and tokenizers beside it.

    Raises:
        UsageError: there is no such quantisation.
        MissingExtraError: ctranslate2 is not installed.
    """
    if quantization not in QUANTIZATIONS:
        raise UsageError(f"--quantization {quantization} is none of {', '.join(QUANTIZATIONS)}.")
    spec = build_spec(model, tokenizers)
    eight_bits = quantization.startswith("int8")
    if eight_bits:
        quantize_spec(spec, quantization)
    spec.validate()
    spec.optimize(quantization=None if eight_bits else quantization)
    spec.save(str(folder))
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        if isinstance(tokenizer, MarianTokenizer):  # its own file is no SentencePiece model, but holds one
            write_atomically(folder / f"{side}.spm", tokenizer.model)
    details = {"quantization": quantization}
    write_carried(folder, config, tokenizers, KIND, details, "model.bin")


def check_ctranslate2(folder: Path, right: Reference) -> Parity:
    """Compare a written folder with the model it was made of, whatever processor will compute it.

    Its numbers are computed in float32. What the 8-bit arithmetic of a processor adds to the rounding of weights is
    measured on text (`manyheads.runs.export_cost`).

    Raises:
        ParityError: it gives something else.
    """
    carried = read_carried(folder)
    engine, rows = engine_of(folder, carried, compute_type="float32"), right.samples.rows
    options = SearchOptions(
        beam_size=1,
        length_penalty=1.0,
        max_length_ratio=0.0,
        max_length_offset=max(right.limits),
        batch_tokens=4_096,
    )
    outputs = [list(found[0].tokens) for found in engine.search(rows, options)]
    scores = engine.score(rows, right.outputs)
    return compare(right, scores, outputs, carried.details["quantization"], "the CTranslate2 model")


def open_ctranslate2(folder: Path, **choices: Any) -> tuple[Carried, CTranslate2Engine]:
    """Open a folder that `write_ctranslate2` wrote; `choices` are those of `CTranslate2Engine`."""
    carried = read_carried(folder)
    return carried, engine_of(folder, carried, **choices)


def engine_of(folder: Path, carried: Carried, **choices: Any) -> CTranslate2Engine:
    """The engine of an opened folder."""
    model = carried.config.model
    return CTranslate2Engine(
        folder,
        (piece_names(carried.tokenizers.source), piece_names(carried.tokenizers.target)),
        max_positions=model.max_positions,
        num_layers=model.num_decoder_layers,
        quantization=str(carried.details.get("quantization", "float32")),
        **choices,
    )
