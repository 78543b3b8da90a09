"""What an exported folder carries so that we can open it again: configuration, tokenizers, checksums.

They stand in ``manyheads.json`` and ``tokenizer.*``, because ``config.json`` belongs to the other program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyheads import __version__
from manyheads.checkpoint import as_json, read_json, read_tokenizers, sha256, write_atomically, write_tokenizers
from manyheads.config.load import config_from_json, config_to_json
from manyheads.config.schema import Config
from manyheads.errors import ConfigError, RunError
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["CARRIED", "Carried", "read_carried", "write_carried"]

CARRIED = "manyheads.json"
FORMAT = 1


@dataclass(frozen=True)
class Carried:
    """An exported folder as we know it.

    Attributes:
        config: of the run it was made of.
        tokenizers: of that run.
        kind: what it was exported to.
        details: what else the export noted.
    """

    config: Config
    tokenizers: TokenizerPair
    kind: str
    details: dict[str, Any]


def write_carried(
    folder: Path, config: Config, tokenizers: TokenizerPair, kind: str, details: Mapping[str, Any], weights: str
) -> None:
    """Add to an exported folder what opens it again; `weights` is the file whose checksum is kept."""
    write_tokenizers(folder, tokenizers)
    content = {
        "format": FORMAT,
        "manyheads": __version__,
        "kind": kind,
        **details,
        "tokenizer_sha256": [tokenizers.source.sha256, tokenizers.target.sha256],
        "sha256": {weights: sha256(folder / weights)},
        "config": json.loads(config_to_json(config)),
    }
    write_atomically(folder / CARRIED, as_json(content))


def read_carried(folder: Path) -> Carried:
    """Open what `write_carried` wrote, and check its sums.

    Raises:
        RunError: something is missing, damaged, of a newer format, or does not belong together.
    """
    path = folder / CARRIED
    content = read_json(path)
    number = content.pop("format", None)
    if number != FORMAT:
        raise RunError(
            f"{path} has the format {number!r}; this manyheads reads {FORMAT}. "
            "Upgrade it (pip install --upgrade manyheads), or export again."
        )
    try:
        config = config_from_json(json.dumps(content.pop("config")), str(path))
        kind, sums, files = str(content.pop("kind")), content.pop("tokenizer_sha256"), content.pop("sha256")
        wrong = [name for name, right in files.items() if sha256(inside(folder, name)) != right]
    except ConfigError as error:
        raise RunError(str(error)) from error
    except (KeyError, AttributeError, TypeError) as error:
        raise RunError(f"{path} is damaged: {error}. Export again.") from error
    if wrong:
        raise RunError(
            f"{folder / wrong[0]} is damaged: its checksum does not fit. Copy it again, or export again."
        )
    return Carried(config, read_tokenizers(folder, config, sums), kind, content)


def inside(folder: Path, name: str) -> Path:
    """A file of the folder by its plain name."""
    path = folder / name
    if Path(name).name != name or not path.is_file() or path.is_symlink():
        raise RunError(f"{folder / CARRIED} names the file {name!r}, which is no plain file of this folder.")
    return path
