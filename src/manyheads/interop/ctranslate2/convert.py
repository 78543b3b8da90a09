"""Write a model as a CTranslate2 folder, and compare it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyheads.checkpoint import write_atomically
from manyheads.checkpoint.bundle import BundleMetadata, is_export, read_metadata, write_metadata
from manyheads.config.schema import Config
from manyheads.errors import RunError, UsageError
from manyheads.files import MOST_BYTES, plain_file
from manyheads.inference.export_formats import QUANTIZATIONS
from manyheads.inference.parity import Parity, Reference, compare
from manyheads.interop.ctranslate2.binary import read_model
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.quantize import quantize_spec
from manyheads.interop.ctranslate2.spec import build_spec, piece_names
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import Constraints, SearchOptions
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.tokenizer import BOS, PAD, TokenizerPair

_KIND = "ctranslate2"
FORBIDDEN_BIASES = "biases_of_padding_and_begin_mark"  # the model itself has others, which forbid both


def write_ctranslate2(
    folder: Path, config: Config, tokenizers: TokenizerPair, model: EncoderDecoder, quantization: str = "float32"
) -> None:
    """Write a model into an existing folder, with its configuration and tokenizers.

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
        elif isinstance(tokenizer, MosesBpeTokenizer):
            write_atomically(folder / "bpe.model", tokenizer.merges.encode())
    bias = model.output.bias
    forbidden = [] if bias is None else bias[[PAD, BOS]].tolist()
    details = {"quantization": quantization, FORBIDDEN_BIASES: forbidden}
    write_metadata(folder, config, tokenizers, _KIND, details, "model.bin")


def check_ctranslate2(folder: Path, expected: Reference) -> Parity:
    """Compare a written folder with its model, in float32 arithmetic.

    The effect of the 8-bit arithmetic of a processor is measured on text (`manyheads.runs.compare`).
    """
    metadata, engine = load_ctranslate2(folder, compute_type="float32")
    numbers = metadata.details["quantization"]
    return compare_engine(engine, expected.samples.rows, expected, numbers, "the CTranslate2 model")


def compare_engine(
    engine: CTranslate2Engine, rows: Sequence[Sequence[int]], expected: Reference, numbers: str, name: str
) -> Parity:
    """Compare what CTranslate2 gives for rows of ids with what is expected.

    Args:
        engine: the model.
        rows: the samples, with an end mark where CTranslate2 does not add it.
        expected: outputs of the model of manyheads on the samples.
        numbers: number format of the matrices.
        name: name of the compared model, for the message.
    """
    options = SearchOptions(
        beam_size=1,
        length_penalty=1.0,
        max_length_ratio=0.0,
        max_length_offset=max(expected.limits),
        batch_tokens=4_096,
    )
    forced = [Constraints(expected.prefix)] * len(rows) if expected.prefix else []
    outputs = [list(hypotheses[0].tokens) for hypotheses in engine.search(rows, options, forced)]
    scores = engine.score(rows, expected.outputs)
    return compare(expected, scores, outputs, numbers, name)


def load_ctranslate2(folder: Path, **choices: Any) -> tuple[BundleMetadata, CTranslate2Engine]:
    """Load a folder that `write_ctranslate2` wrote; `choices` are arguments of `CTranslate2Engine`.

    Raises:
        RunError: the folder is no such export, or is damaged.
        MissingExtraError: ctranslate2 is not installed.
    """
    if is_export(folder):
        read_model(folder / "model.bin")  # a file that is no such model is refused before it is read whole
    metadata = read_metadata(folder)
    if metadata.kind != _KIND:
        raise RunError(f"{folder} was exported to {metadata.kind}, which is no model of CTranslate2.")
    for path in (folder / "config.json", *folder.glob("*vocabulary*")):  # what the library itself reads
        plain_file(path, MOST_BYTES)
    engine = CTranslate2Engine(
        folder,
        (piece_names(metadata.tokenizers.source), piece_names(metadata.tokenizers.target)),
        max_positions=metadata.config.model.max_positions,
        **choices,
    )
    return metadata, engine
