"""Argos Translate packages (``.argosmodel``), which LibreTranslate uses too.

A zip archive of one folder: ``model/`` is a CTranslate2 model, ``sentencepiece.model`` splits the source and
joins the target (``bpe.model`` in older packages: merges with ``@@``), ``metadata.json`` names the languages.
Argos adds no marks to the pieces of a sentence, so the model adds the end mark (``add_source_eos``). Argos splits
text into sentences with a model that it downloads at the first use.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece

from bitext.languages import language_name, libretranslate_code
from manyheads.checkpoint import plain_file, read_bytes, read_json
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.errors import ParityError, RunError, UsageError
from manyheads.files import reading
from manyheads.inference.parity import Parity, Reference
from manyheads.interop.ctranslate2.convert import check_ctranslate2, write_ctranslate2
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.tokenizer import Tokenizer

# Above the versions of the public index, by which LibreTranslate replaces a package at its start.
PACKAGE_VERSION = "100.0"
_PIECES, _MERGES = "sentencepiece.model", "bpe.model"
_MAX_RATIO = 10  # unpacked bytes of a packed byte; weights shrink little
_ALWAYS_UNPACKED = 64 * 2**20  # bytes of a package of any ratio
_DEEPEST = 3  # parts of the path of a file that is unpacked: package/model/model.bin
_UNPACKED = (".json", ".txt", ".bin", ".model", ".spm")
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # of every file in the archive, so that the same model gives the same bytes


def package_name(source: str, target: str, version: str = PACKAGE_VERSION) -> str:
    """Return the name of the folder inside the archive, and of the archive without its suffix."""
    return f"translate-{source}_{target}-{version.replace('.', '_')}"


def _tokenizer_file(tokenizer: Tokenizer) -> tuple[str, bytes]:
    """Return the name and the content of the file that splits text: a SentencePiece model, or merges.

    Raises:
        RunError: the tokenizer has none, or lowercases text before it.
    """
    if isinstance(tokenizer, MosesBpeTokenizer):
        return _MERGES, tokenizer.merges.encode()
    if not isinstance(tokenizer, SubwordTokenizer | MarianTokenizer):
        raise RunError(
            f'an Argos package splits text by SentencePiece, and this run has tokenizer.kind = "{tokenizer.kind}". '
            'Train with "bpe" or "unigram".'
        )
    if tokenizer.lowercase:
        raise RunError("an Argos package keeps capitals, and this run has tokenizer.lowercase = true.")
    return _PIECES, tokenizer.model


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
    data, (name, content) = loaded.config.data, _tokenizer_file(loaded.tokenizers.source)
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
    if loaded.prefix:
        (metadata["target_prefix"],) = loaded.tokenizers.target.pieces(loaded.prefix)
    with TemporaryDirectory(dir=path.parent) as draft:
        folder = Path(draft)
        model = folder / "model"
        model.mkdir()
        write_ctranslate2(model, loaded.config, loaded.tokenizers, loaded.model, quantization)
        (folder / name).write_bytes(content)
        (folder / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
        (folder / "README.md").write_text(readme, encoding="utf-8")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(filter(Path.is_file, folder.rglob("*"))):
                info = zipfile.ZipInfo(
                    f"{package_name(source, target, version)}/{file.relative_to(folder).as_posix()}", _TIMESTAMP
                )
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(info, file.read_bytes())


def is_package(path: Path) -> bool:
    """Return whether a folder is a CTranslate2 model or an unpacked Argos package."""
    return any((path / name).is_file() for name in ("model.bin", "model/model.bin"))


@contextmanager
def opened_package(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Unpack the model of a package, or of an unpacked one, to a folder that is removed afterwards.

    Args:
        path: a file .argosmodel, or a folder that holds a CTranslate2 model.

    Yields:
        The folder of the model, and the content of metadata.json; {} without.
    """
    if path.is_dir():
        yield _model_in(path)
        return
    with unpacked(path) as folder:
        yield _model_in(folder, path)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack the files of models in a package to a folder that is removed afterwards; see `opened_package`."""
    with TemporaryDirectory(prefix="manyheads-") as name:
        try:
            with reading(path), zipfile.ZipFile(plain_file(path.resolve())) as archive:
                _unpack(archive, path, Path(name))
        except (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error, ValueError) as error:
            raise RunError(f"{path} is no Argos package, or is damaged: {error}. Copy it again.") from error
        yield Path(name)


def _unpack(archive: zipfile.ZipFile, path: Path, folder: Path) -> None:
    """Unpack the files of models and packages; raise `RunError` for members that no package has."""
    members = [info for info in archive.infolist() if not info.is_dir()]
    limit = _MAX_RATIO * path.stat().st_size + _ALWAYS_UNPACKED
    if sum(info.file_size for info in members) > limit:
        raise RunError(f"{path} would unpack to more than {limit:,} bytes, and is not opened.")
    if len({info.filename for info in members}) < len(members):
        raise RunError(f"{path} is damaged: a name stands in it twice.")
    for info in members:
        parts = PurePosixPath(info.filename).parts
        if ".." in parts or re.search(r"^/|[\\:\0]", info.filename):
            raise RunError(f"{path} holds {info.filename!r}, a path out of its folder, and is not opened.")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise RunError(f"{path} holds {info.filename!r}, a link or a device, and is not opened.")
        if info.flag_bits & 1:
            raise RunError(f"{path} is encrypted: {info.filename!r}. Ask its author for one without a password.")
        if len(parts) <= _DEEPEST and parts[-1].endswith(_UNPACKED):
            place = folder.joinpath(*parts)
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as member, place.open("wb") as file:
                shutil.copyfileobj(member, file)


def _model_folder(root: Path, package: Path | None = None) -> Path:
    models = sorted(path.parent for depth in ("", "*/", "*/*/") for path in root.glob(f"{depth}model.bin"))
    if len(models) != 1:
        names = ", ".join(path.relative_to(root).as_posix() for path in models[:10])
        reason = (
            f"holds several models: {names}. Unpack it, and give one of them" if models else "holds no model.bin"
        )
        raise RunError(f"{package or root} {reason}.")
    return models[0]


def _model_in(root: Path, package: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the only model, and the content of metadata.json beside it."""
    model = _model_folder(root, package)
    metadata = model.parent / "metadata.json"
    found = read_json(metadata) if model != root and metadata.is_file() else {}
    if found.get("target_prefix"):
        raise RunError(f"{package or root} cannot be a model of ours: it starts each target with a given prefix.")
    return model, found


def check_argos(path: Path, loaded: LoadedModel, expected: Reference) -> Parity:
    """Unpack a package, and compare its model and how its SentencePiece model splits and joins text."""
    with unpacked(path) as folder:
        model = _model_folder(folder, path)
        parity = check_ctranslate2(model, expected)
        pieces = model.parent / _PIECES
        if pieces.is_file():  # merges are used by the calls of Argos, here too
            processor = sentencepiece.SentencePieceProcessor(model_proto=read_bytes(pieces))
            _check_pieces(processor, loaded, expected)
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
