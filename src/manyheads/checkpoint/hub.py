"""Folders of models of transformers, also on the Hugging Face hub (extra ``hf``): download them, upload runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from manyheads.checkpoint.files import read_json
from manyheads.errors import RunError, require
from manyheads.files import plain_file

_REPOSITORY_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]*[A-Za-z0-9]")
_RUN_FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.source.*",
    "tokenizer.target.*",
    "environment.json",
    "labels.json",
    "languages.json",
    "source_model.json",
    "confidence.json",
    "README.md",
]
_UPLOADED = [*_RUN_FILES, "metrics.jsonl"]
# Files of a model of any kind. Nothing else is downloaded, and none of them is a program.
_DOWNLOADED = [
    *_RUN_FILES,
    "model.safetensors.index.json",
    "model-*.safetensors",
    "generation_config.json",
    "tokenizer_config.json",
    "vocab.json",
    "source.spm",
    "target.spm",
    "tokenizer.json",
    "special_tokens_map.json",
    "vocab.txt",
    "merges.txt",
]
_LEGACY = "pytorch_model.bin"


def is_marian(folder: Path) -> bool:
    """Return whether a folder is a MarianMT model."""
    return _model_type(folder) == "marian"


def is_pretrained(folder: Path) -> bool:
    """Return whether a folder has a config.json of transformers, of any model but MarianMT."""
    return _model_type(folder) not in (None, "marian")


def _model_type(folder: Path) -> object:
    path = folder / "config.json"
    return read_json(path).get("model_type") if path.is_file() else None


def is_hub_name(text: str) -> bool:
    """Return whether a text can be a name on the hub: one slash, no dots alone."""
    return _REPOSITORY_NAME.fullmatch(text) is not None and ".." not in text


def _library() -> Any:
    """Import huggingface_hub; raises `MissingExtraError`."""
    purpose = "a model on the Hugging Face hub"
    require("huggingface_hub.constants", extra="hf", purpose=purpose)  # an attribute only once it was imported
    return require("huggingface_hub", extra="hf", purpose=purpose)


def folder_of(where: str | Path) -> Path:
    """Return the folder of a model: the path itself, or a copy of a model on the hub."""
    path = Path(where)
    return path if path.is_dir() or not is_hub_name(str(where)) else _download(str(where))


def _download(name: str) -> Path:
    """Download the files of a model on the hub to a folder, unless they are there already; return the folder.

    The hub's cache is not used: it consists of links, and manyheads follows no link out of a folder.

    Raises:
        RunError: the hub does not have the model, or cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = _library()
    folder = Path(hub.constants.HF_HUB_CACHE) / f"manyheads--{name.replace('/', '--')}"
    try:
        hub.snapshot_download(name, local_dir=folder, allow_patterns=_DOWNLOADED)
        if not any(folder.glob("model*.safetensors")):  # many opus-mt models; the reader says what to do
            hub.snapshot_download(name, local_dir=folder, allow_patterns=[*_DOWNLOADED, _LEGACY])
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise RunError(f"{name} is not a folder here, and could not be downloaded from the hub: {error}") from error
    return folder


def push_folder(folder: Path, name: str, *, private: bool) -> str:
    """Upload the model of a run to the hub, without its checkpoints and cache, and return its address.

    Raises:
        RunError: a file is a link out of the folder or no file, or the hub refuses the model or cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = _library()
    files = [plain_file(path) for pattern in _UPLOADED for path in folder.glob(pattern)]
    try:
        api = hub.HfApi()
        api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name,
            folder_path=str(folder),
            allow_patterns=[file.name for file in files],
            commit_message="Upload a manyheads model",
        )
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise RunError(f"the hub did not take {folder}: {error}") from error
    return f"{hub.constants.ENDPOINT}/{name}"
