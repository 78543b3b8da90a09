"""A local folder in place of the Hugging Face hub, behind the library's own functions."""

from __future__ import annotations

import fnmatch
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest


def copy_matching(source: Path, target: Path, patterns: list[str]) -> None:
    """Copy the files that match, as the library does with `allow_patterns`."""
    for path in source.rglob("*"):
        name = path.relative_to(source).as_posix()
        if path.is_file() and any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / name)


def use_local_hub(hub: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Download from and upload to `hub`/user/name; `cache` is the folder in which the library keeps downloads."""

    def snapshot_download(repo_id: str, *, local_dir: Path, allow_patterns: list[str]) -> str:
        if not (hub / repo_id).is_dir():
            raise OSError(f"404: {repo_id}")
        copy_matching(hub / repo_id, Path(local_dir), allow_patterns)
        return str(local_dir)

    def create_repo(self: Any, repo_id: str, *, private: bool, exist_ok: bool) -> None:
        (hub / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(
        self: Any, *, repo_id: str, folder_path: str, allow_patterns: list[str], commit_message: str
    ) -> None:
        copy_matching(Path(folder_path), hub / repo_id, allow_patterns)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", create_repo)
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", upload_folder)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
