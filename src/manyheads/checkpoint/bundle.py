"""A model with its configuration and tokenizers: in memory, and as an exported folder that can be opened again.

In an exported folder, the data of manyheads is in ``manyheads.json`` and ``tokenizer.*``, because ``config.json``
belongs to the other program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitext.file_names import Split
from manyheads import __version__
from manyheads.checkpoint import (
    as_json,
    read_json,
    read_tokenizers,
    sha256,
    write_atomically,
    write_tokenizers,
)
from manyheads.config.load import config_from_json, config_to_json
from manyheads.config.schema import Config
from manyheads.errors import HOW_TO_UPGRADE, ConfigError, RunError
from manyheads.text.tokenizer import TokenizerPair

METADATA = "manyheads.json"
_FORMAT = 1


def is_export(folder: Path) -> bool:
    """Return whether a folder is an export of manyheads, for another program to use."""
    return (folder / METADATA).is_file()


@dataclass(frozen=True)
class LoadedModel:
    """A translation model on the CPU, in eval mode, with its configuration and tokenizers."""

    config: Config
    tokenizers: TokenizerPair
    model: Any  # an `EncoderDecoder`; for texts alone also an engine

    def directions(self, split: Split = "train") -> list[LoadedModel]:
        """Return the same model with the configuration of each direction; see `DataConfig.directions`."""
        return [LoadedModel(config, self.tokenizers, self.model) for config in self.config.for_directions(split)]

    @property
    def prefix(self) -> tuple[int, ...]:
        """Tokens that every output begins with: the symbol of the target language, if the vocabulary has it."""
        return self.tokenizers.target.language_prefix(self.config.data.target)


@dataclass(frozen=True)
class BundleMetadata:
    """The data of manyheads in an exported folder.

    Attributes:
        config: configuration of the exported run.
        tokenizers: tokenizers of the exported run.
        kind: format of the export.
        details: further entries of the export.
    """

    config: Config
    tokenizers: TokenizerPair
    kind: str
    details: dict[str, Any]


def write_metadata(
    folder: Path, config: Config, tokenizers: TokenizerPair, kind: str, details: Mapping[str, Any], weights: str
) -> None:
    """Add the data of manyheads to an exported folder; `weights` is the file whose checksum is stored."""
    write_tokenizers(folder, tokenizers)
    content = {
        "format": _FORMAT,
        "manyheads": __version__,
        "kind": kind,
        **details,
        "tokenizer_sha256": [tokenizers.source.sha256, tokenizers.target.sha256],
        "sha256": {weights: sha256(folder / weights)},
        "config": json.loads(config_to_json(config)),
    }
    write_atomically(folder / METADATA, as_json(content))


def read_metadata(folder: Path) -> BundleMetadata:
    """Read the data of manyheads in an exported folder, and verify the checksums.

    Raises:
        RunError: a file is missing, damaged or of a newer format, or does not belong to the other files.
    """
    path = folder / METADATA
    content = read_json(path)
    number = content.pop("format", None)
    if number != _FORMAT:
        raise RunError(
            f"{path} has the format {number!r}; this manyheads reads {_FORMAT}. "
            f"Upgrade it ({HOW_TO_UPGRADE}), or export again."
        )
    try:
        config = config_from_json(json.dumps(content.pop("config")), str(path))
        kind, sums, files = str(content.pop("kind")), content.pop("tokenizer_sha256"), content.pop("sha256")
        damaged = [name for name, checksum in files.items() if sha256(_file_in(folder, name)) != checksum]
    except ConfigError as error:
        raise RunError(str(error)) from error
    except (KeyError, AttributeError, TypeError) as error:
        raise RunError(f"{path} is damaged: {error}. Export again.") from error
    if damaged:
        raise RunError(
            f"{folder / damaged[0]} is damaged: its checksum does not fit. Copy it again, or export again."
        )
    return BundleMetadata(config, read_tokenizers(folder, config, sums), kind, content)


def _file_in(folder: Path, name: str) -> Path:
    path = folder / name
    if Path(name).name != name or not path.is_file() or path.is_symlink():
        raise RunError(f"{folder / METADATA} names the file {name!r}, which is no plain file of this folder.")
    return path
