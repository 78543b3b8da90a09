"""Weights are read from safetensors; a pickle is read only if it is trusted, and never runs code."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.checkpoint import write_tensors
from manyheads.errors import RunError
from manyheads.interop.weights import read_weights

PICKLE = "pytorch_model.bin"
WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(5, dtype=torch.float16)}


class CallOnLoad:
    """An object whose pickle calls a function when an unrestricted reader loads it."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


class StateOnLoad:
    """An object of a class outside torch, whose state is set by its own method."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __setstate__(self, state: dict[str, str]) -> None:
        os.mkdir(state["marker"])


# Contents that create the folder `marker` when pickle itself loads them.
HOSTILE: dict[str, Callable[[Path], Any]] = {
    "function of os": lambda marker: {"x": CallOnLoad(os.mkdir, str(marker))},
    "exec": lambda marker: {"x": CallOnLoad(exec, f"import os; os.mkdir({str(marker)!r})")},
    "getattr": lambda marker: {
        "x": CallOnLoad(getattr, CallOnLoad(__import__, "os"), "mkdir"),
        "y": CallOnLoad(os.mkdir, str(marker)),
    },
    "state of a class": lambda marker: {"x": StateOnLoad(marker)},
    "key beside weights": lambda marker: {**WEIGHTS, CallOnLoad(os.mkdir, str(marker)): torch.ones(2)},
    "no dictionary": lambda marker: CallOnLoad(os.mkdir, str(marker)),
}
WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    "zip": torch.save,
    "file of old versions": lambda content, path: torch.save(content, path, _use_new_zipfile_serialization=False),
    "plain pickle": lambda content, path: path.write_bytes(pickle.dumps(content, protocol=2)),
}


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("content", HOSTILE)
def test_these_pickles_do_run_code_in_an_unrestricted_reader(tmp_path: Path, content: str) -> None:
    pickle.loads(pickle.dumps(HOSTILE[content](tmp_path / "marker")))
    assert (tmp_path / "marker").is_dir()


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("content", HOSTILE)
def test_a_hostile_pickle_runs_no_code_with_and_without_trust(tmp_path: Path, content: str, writer: str) -> None:
    WRITERS[writer](HOSTILE[content](tmp_path / "marker"), tmp_path / PICKLE)
    with pytest.raises(RunError, match=r"pytorch_model\.bin alone\. That is a pickle.*--trust-pickle"):
        read_weights(tmp_path)
    with pytest.raises(
        RunError, match=r"pytorch_model\.bin cannot be read as weights alone.*Use a copy"
    ) as refusal:
        read_weights(tmp_path, trust_pickle=True)
    assert "weights_only" not in str(refusal.value), "no advice to read it without restrictions"
    assert not (tmp_path / "marker").exists()


def test_a_pickle_is_not_opened_without_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(WEIGHTS, tmp_path / PICKLE)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "load", lambda *args, **options: pytest.fail("the pickle was opened"))
        with pytest.raises(RunError, match="That is a pickle"):
            read_weights(tmp_path)
    assert_equal(read_weights(tmp_path, trust_pickle=True), WEIGHTS)


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("shards", [False, True])
def test_safetensors_are_preferred_to_a_pickle(tmp_path: Path, shards: bool, trust: bool) -> None:
    torch.save(HOSTILE["function of os"](tmp_path / "marker"), tmp_path / PICKLE)
    if shards:
        write_tensors(tmp_path / "part.safetensors", WEIGHTS)
        index = {"weight_map": dict.fromkeys(WEIGHTS, "part.safetensors")}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    else:
        write_tensors(tmp_path / "model.safetensors", WEIGHTS)
    assert_equal(read_weights(tmp_path, trust_pickle=trust), WEIGHTS)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x04nothing", "cannot be read as weights alone"),
        (b"", "cannot be read as weights alone"),
        ([torch.ones(3)], "holds something else than tensors by name"),
        ({"a": torch.ones(3), "b": 7}, "holds something else than tensors by name"),
    ],
)
def test_a_trusted_pickle_without_weights_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    if isinstance(content, bytes):
        (tmp_path / PICKLE).write_bytes(content)
    else:
        torch.save(content, tmp_path / PICKLE)
    with pytest.raises(RunError, match=message):
        read_weights(tmp_path, trust_pickle=True)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"has neither model\.safetensors nor model\.safetensors\.index\.json"):
        read_weights(tmp_path, trust_pickle=True)


@pytest.mark.parametrize(
    ("map_", "message"),
    [
        ({"a": "../model.safetensors"}, "no plain file of this folder"),
        ({"a": "missing.safetensors"}, "it is missing"),
        ({"a": 3}, "does not say which tensor is in which file"),
        (None, "does not say which tensor is in which file"),
        ({"a": "part.safetensors"}, "do not fit: only one of them has b"),
        ({"a": "part.safetensors", "b": "part.safetensors", "c": "part.safetensors"}, "only one of them has c"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path: Path, map_: object, message: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    write_tensors(folder / "part.safetensors", WEIGHTS)
    shutil.copy(folder / "part.safetensors", tmp_path / "model.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": map_}), encoding="utf-8")
    with pytest.raises(RunError, match=message):
        read_weights(folder)
