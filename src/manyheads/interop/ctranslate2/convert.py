"""Write a model as a CTranslate2 folder, compare it, and load it; a run is converted once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

from manyheads.checkpoint import RunDirectory, sha256, write_atomically
from manyheads.config.schema import Config
from manyheads.errors import RunError, UsageError
from manyheads.files import MOST_BYTES, discard, locked_beside, new_folder, plain_file, refuse_links
from manyheads.interop.bundle import (
    BundleMetadata,
    is_export,
    load_run,
    read_metadata,
    write_metadata,
)
from manyheads.interop.ctranslate2.binary import read_model
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.quantize import quantize_spec
from manyheads.interop.ctranslate2.spec import build_spec, piece_names
from manyheads.interop.parity import Parity, Reference, compare, random_samples
from manyheads.interop.reference import reference
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import Constraints, SearchOptions
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.tokenizer import BOS, PAD, TokenizerPair

_KIND = "ctranslate2"
_CACHED = "ctranslate2-"  # beginning of the names of converted runs in their cache
FORBIDDEN_BIASES = "biases_of_padding_and_begin_mark"  # the model itself has others, which forbid both
QUANTIZATIONS = ("float32", "int8", "int8_float32", "int8_bfloat16", "int8_float16", "bfloat16", "float16", "int16")


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

    Raises:
        ParityError: the results differ.
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

    Raises:
        ParityError: the results differ.
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
        raise RunError(f"{folder} was exported to {metadata.kind}, which this engine cannot open.")
    for path in (folder / "config.json", *folder.glob("*vocabulary*")):  # what the library itself reads
        plain_file(path, MOST_BYTES)
    model = metadata.config.model
    engine = CTranslate2Engine(
        folder,
        (piece_names(metadata.tokenizers.source), piece_names(metadata.tokenizers.target)),
        max_positions=model.max_positions,
        num_layers=model.num_decoder_layers,
        quantization=str(metadata.details.get("quantization", "float32")),
        **choices,
    )
    return metadata, engine


def engine_for(folder: Path, **choices: Any) -> tuple[BundleMetadata, CTranslate2Engine]:
    """Load an exported folder or a run; `choices` are device, workers and threads of the engine.

    A run is converted to float32 in its cache, and compared, unless that was done since its weights changed; if the
    cache cannot be written, is a link, or is being written, in a temporary folder.

    Raises:
        RunError: the folder is neither an export nor a run, or cannot be read.
        ParityError: the results of the converted model differ.
        MissingExtraError: ctranslate2 is not installed.
    """
    if is_export(folder):
        return load_ctranslate2(folder, **choices)
    weights = RunDirectory.existing(folder).weights_path
    converted = folder / "cache" / f"{_CACHED}{sha256(weights)[:16]}"
    if not is_export(converted):
        try:
            refuse_links(folder, ["cache"])
            with locked_beside(converted.with_name(_CACHED), RunError):
                with new_folder(converted) as draft:
                    _convert(folder, draft)
                older = [path for path in converted.parent.glob(f"{_CACHED}*") if path != converted]
                for path in sorted(older, key=lambda path: path.stat().st_mtime)[:-1]:
                    discard(path)  # all but the newest, which a program may still use
        except RunError:  # the cache cannot be written, or another process writes it now
            return _convert_temporarily(folder, choices)
    return load_ctranslate2(converted, **choices)


def _convert(run: Path, draft: Path) -> None:
    loaded = load_run(run)
    write_ctranslate2(draft, loaded.config, loaded.tokenizers, loaded.model)
    check_ctranslate2(draft, reference(loaded.model, random_samples(loaded.tokenizers.source)))


def _convert_temporarily(run: Path, choices: dict[str, Any]) -> tuple[BundleMetadata, CTranslate2Engine]:
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(TemporaryDirectory(prefix="manyheads-")))
        _convert(run, folder)
        metadata, engine = load_ctranslate2(folder, **choices)
        finalize(engine, cleanup.pop_all().close)
    return metadata, engine
