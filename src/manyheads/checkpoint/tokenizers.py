"""Read and write the tokenizer files of a folder, one a side, with checksums that tie them to the weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manyheads.checkpoint.files import check_nodes, read_bytes, write_atomically
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.text.tokenizer import TokenizerPair, load_tokenizer

__all__ = ["read_tokenizers", "write_tokenizers"]


def write_tokenizers(folder: Path, tokenizers: TokenizerPair) -> None:
    """Write `tokenizer.source.*` and `tokenizer.target.*`."""
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        write_atomically(folder / f"tokenizer.{side}{tokenizer.suffix}", tokenizer.to_bytes())


def read_tokenizers(folder: Path, config: Config, recorded: Sequence[str] | None) -> TokenizerPair:
    """Read the tokenizers of both sides.

    Args:
        folder: folder of the files.
        config: configuration of the run.
        recorded: checksums of the files when the folder was made, if known.

    Raises:
        RunError: a tokenizer is missing, damaged, or not the one that the weights were trained with.
    """
    source, target = (
        load_tokenizer(config.tokenizer, language, tokenizer_bytes(folder, side))
        for side, language in zip(("source", "target"), config.languages, strict=True)
    )
    sums = [source.sha256, target.sha256]
    for side, found, right in zip(("source", "target"), sums, recorded or sums, strict=True):
        if found != right:
            raise RunError(
                f"tokenizer.{side}.* in {folder} is not the one this run was begun with. Its weights mean "
                "other words: copy the whole run directory again."
            )
    if sums[0] == sums[1]:
        return TokenizerPair(source, source, joint=True)
    return TokenizerPair(source, target, joint=False)


def tokenizer_bytes(folder: Path, side: str) -> bytes:
    """Read the tokenizer file of a side."""
    found = sorted(folder.glob(f"tokenizer.{side}.*"))
    if not found:
        raise RunError(f"{folder} has no tokenizer.{side}.* file. Copy the whole run directory.")
    data = read_bytes(found[0])
    return check_nodes(data, found[0]) if found[0].suffix == ".json" else data
