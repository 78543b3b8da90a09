"""Errors of the disk are no damage, and have the cure of their kind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError

from manyheads.checkpoint.files import read_bytes, read_header, read_json, read_tensors, sha256, write_tensors
from manyheads.errors import RunError


@pytest.mark.parametrize("read", [read_bytes, read_header, read_json, read_tensors, sha256])
@pytest.mark.parametrize(
    ("number", "cure"), [("EACCES", "Check who may"), ("EMFILE", "ulimit -n"), ("EIO", "check it")]
)
def test_a_file_that_cannot_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], Any], number: str, cure: str
) -> None:
    write_tensors(tmp_path / "x", {"a": torch.ones(2)})

    def fail(*_: object, **__: object) -> None:
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)), str(tmp_path / "x"))

    monkeypatch.setattr(Path, "open", fail)
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(RunError, match=f"x cannot be read: .*{cure}") as caught:
        read(tmp_path / "x")
    assert "damaged" not in str(caught.value)


def test_the_number_of_an_error_of_safetensors_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SafetensorError("I/O error: Read-only file system (os error 30)")

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_tensors(tmp_path / "x", {"a": torch.ones(2)})
    assert caught.value.errno == errno.EROFS
    assert [*tmp_path.iterdir()] == []
