"""Argos Translate packages (``.argosmodel``), which LibreTranslate uses too.

A zip archive of one folder: ``model/`` is a CTranslate2 model, ``sentencepiece.model`` splits the source and
joins the target, ``metadata.json`` names the languages. Argos adds no marks to the pieces of a sentence, so the
model adds the end mark (``add_source_eos``). Argos splits text into sentences with a model that it downloads at
the first use.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import sentencepiece

from manyheads.errors import ParityError, RunError, UsageError
from manyheads.interop.bundle import LoadedModel
from manyheads.interop.ctranslate2.convert import check_ctranslate2, write_ctranslate2
from manyheads.interop.parity import Parity, Reference
from manyheads.languages import language_name, libretranslate_code
from manyheads.text.marian import MarianTokenizer
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.tokenizer import Tokenizer

PACKAGE_VERSION = (
    "100.0"  # above those of the public index, by which LibreTranslate replaces a package at its start
)
_PIECES = "sentencepiece.model"
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # of every file in the archive, so that the same model gives the same bytes


def package_name(source: str, target: str, version: str = PACKAGE_VERSION) -> str:
    """Return the name of the folder inside the archive, and of the archive without its suffix."""
    return f"translate-{source}_{target}-{version.replace('.', '_')}"


def _sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """Return the SentencePiece model of a tokenizer.

    Raises:
        RunError: the tokenizer has none, or lowercases text before it.
    """
    if not isinstance(tokenizer, SubwordTokenizer | MarianTokenizer):
        raise RunError(
            f'an Argos package splits text by SentencePiece, and this run has tokenizer.kind = "{tokenizer.kind}". '
            'Train with "bpe" or "unigram".'
        )
    if tokenizer.lowercase:
        raise RunError("an Argos package keeps capitals, and this run has tokenizer.lowercase = true.")
    return tokenizer.model


def write_argos(
    path: Path, loaded: LoadedModel, quantization: str, readme: str, version: str = PACKAGE_VERSION
) -> None:
    """Write a package with this version.

    Raises:
        RunError: the run has no SentencePiece model.
        UsageError: there is no such quantisation, or the version is not made of numbers and points.
    """
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9}){0,3}", version, re.ASCII):
        raise UsageError(f"--package-version {version} is no version. Give numbers with points, such as 100.1.")
    data, pieces = loaded.config.data, _sentencepiece_model(loaded.tokenizers.source)
    source, target = libretranslate_code(data.source), libretranslate_code(data.target)
    metadata = {
        "package_version": version,
        "argos_version": "1.9.0",
        "type": "translate",
        "from_code": source,
        "from_name": language_name(data.source),
        "to_code": target,
        "to_name": language_name(data.target),
    }
    with TemporaryDirectory(dir=path.parent) as name:
        folder = Path(name)
        model = folder / "model"
        model.mkdir()
        write_ctranslate2(model, loaded.config, loaded.tokenizers, loaded.model, quantization)
        (folder / _PIECES).write_bytes(pieces)
        (folder / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
        (folder / "README.md").write_text(readme, encoding="utf-8")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(filter(Path.is_file, folder.rglob("*"))):
                info = zipfile.ZipInfo(
                    f"{package_name(source, target, version)}/{file.relative_to(folder).as_posix()}", _TIMESTAMP
                )
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(info, file.read_bytes())


def check_argos(path: Path, loaded: LoadedModel, expected: Reference) -> Parity:
    """Unpack a package, and compare its model and how its SentencePiece model splits and joins text.

    Raises:
        ParityError: the results differ from those of the run.
    """
    with TemporaryDirectory() as name:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(name)  # an archive that manyheads wrote
        (folder,) = Path(name).iterdir()
        parity = check_ctranslate2(folder / "model", expected)
        _check_pieces(sentencepiece.SentencePieceProcessor(model_file=str(folder / _PIECES)), loaded, expected)
    return parity


def _check_pieces(
    processor: sentencepiece.SentencePieceProcessor, loaded: LoadedModel, expected: Reference
) -> None:
    """Compare pieces of sources and texts of outputs.

    Argos joins outputs with the model of the source, which keeps pieces that it does not know unchanged, and then
    shows SentencePiece's mark as a blank (underscores too).
    """
    pair = loaded.tokenizers
    texts = [pair.source.decode(row) for row in expected.samples.rows]
    rows = pair.source.encode(texts)
    split = [[piece for piece, i in zip(pair.source.pieces(row), row, strict=True) if i] for row in rows]
    argos_pieces = [processor.encode(text, out_type=str) for text in texts]
    known = {pair.source.pieces([i])[0] for i in range(pair.source.size)}
    if split != [[piece for piece in row if piece in known] for row in argos_pieces]:
        raise ParityError("the package splits text in another way than the run, and was not kept.")
    outputs = [pair.target.whole_characters(row)[0] for row in expected.outputs]  # Argos shows others as U+FFFD
    joined = [processor.decode_pieces(pair.target.pieces(row)).replace("▁", " ").strip() for row in outputs]
    if joined != [pair.target.decode(row).strip() for row in outputs]:
        raise ParityError("the package puts text together in another way than the run, and was not kept.")
