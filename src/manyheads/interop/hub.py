"""Models on the Hugging Face hub (extra ``hf``): runs of ours and models of transformers down, runs up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from manyheads.errors import RunError, require

__all__ = ["fetched", "is_hub_name", "push_folder"]

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]*[A-Za-z0-9]")
# What a model of any kind consists of. Nothing else is fetched, and nothing of it is a program.
WANTED = [
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*.safetensors",
    "tokenizer.source.*",
    "tokenizer.target.*",
    "environment.json",
    "README.md",
    "labels.json",
    "languages.json",
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
LEGACY = "pytorch_model.bin"
SENT = [
    "config.json",
    "model.safetensors",
    "tokenizer.source.*",
    "tokenizer.target.*",
    "environment.json",
    "labels.json",
    "languages.json",
    "README.md",
    "metrics.jsonl",
]


def is_hub_name(text: str) -> bool:
    """Whether a text can be a name on the hub: one slash, no dots alone."""
    return NAME.fullmatch(text) is not None and ".." not in text


def library() -> Any:
    """huggingface_hub; raises `MissingExtraError`."""
    return require("huggingface_hub", extra="hf", purpose="a model on the Hugging Face hub")


def fetched(name: str) -> Path:
    """A folder of ours with the files of a model on the hub; what is there already is not fetched again.

    The hub's own cache is made of links, which we do not follow out of a folder.

    Raises:
        RunError: the hub does not have it, or cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = library()
    folder = Path(hub.constants.HF_HUB_CACHE) / f"manyheads--{name.replace('/', '--')}"
    try:
        hub.snapshot_download(name, local_dir=folder, allow_patterns=WANTED)
        if not any(folder.glob("model*.safetensors")):  # many opus-mt models; what to do is told at opening
            hub.snapshot_download(name, local_dir=folder, allow_patterns=[*WANTED, LEGACY])
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise RunError(f"{name} is no folder here, and the hub does not give it: {error}") from error
    return folder


def push_folder(folder: Path, name: str, *, private: bool) -> str:
    """Put the model of a run on the hub, without its checkpoints and cache; returns its address.

    Raises:
        RunError: the hub refuses it or cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = library()
    try:
        api = hub.HfApi()
        api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name, folder_path=str(folder), allow_patterns=SENT, commit_message="Upload a manyheads model"
        )
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise RunError(f"the hub did not take {folder}: {error}") from error
    return f"{hub.constants.ENDPOINT}/{name}"
