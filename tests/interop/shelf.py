"""A folder that stands for the Hugging Face hub, behind the library's own calls."""

from __future__ import annotations

import fnmatch
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

__all__ = ["stand_in_for_hub"]


def copy_matching(source: Path, target: Path, patterns: list[str]) -> None:
    """What the library does with `allow_patterns`."""
    for path in source.rglob("*"):
        name = path.relative_to(source).as_posix()
        if path.is_file() and any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / name)


def stand_in_for_hub(shelf: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have models taken from and put into `shelf`/user/name; `cache` is where the library keeps what it fetched."""

    def snapshot_download(repo_id: str, *, local_dir: Path, allow_patterns: list[str]) -> str:
        if not (shelf / repo_id).is_dir():
            raise OSError(f"404: {repo_id}")
        copy_matching(shelf / repo_id, Path(local_dir), allow_patterns)
        return str(local_dir)

    def create_repo(self: Any, repo_id: str, *, private: bool, exist_ok: bool) -> None:
        (shelf / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(
        self: Any, *, repo_id: str, folder_path: str, allow_patterns: list[str], commit_message: str
    ) -> None:
        copy_matching(Path(folder_path), shelf / repo_id, allow_patterns)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", create_repo)
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", upload_folder)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
