"""The tensors of a safetensors file as NumPy arrays: equal to those of torch, or an error that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from manyheads.checkpoint.arrays import TensorFile
from manyheads.checkpoint.files import write_tensors
from manyheads.errors import RunError

TENSORS = {"b": torch.randn(7, 3), "a": torch.randn(5), "empty": torch.randn(0, 2), "one": torch.tensor(2.5)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(TENSORS, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_every_tensor_is_read_by_its_name_and_by_its_tied_name(path) -> None:
    file = TensorFile(path, {"tied": "b"})
    assert len(file) == len(TENSORS)
    assert set(file) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert np.array_equal(file[name], tensor.numpy())
    assert np.array_equal(file["tied"], TENSORS["b"].numpy())
    assert file.get("missing") is None


def test_a_tensor_in_use_is_read_once_and_an_unreferenced_tensor_is_released(path) -> None:
    file = TensorFile(path, {"tied": "b"})
    held = file["b"]
    assert file["tied"] is held
    assert file.read == {"b"}
    del held
    assert "b" not in file.in_use


def test_numbers_that_are_not_finite_or_of_another_type_are_refused(path) -> None:
    for tensor, message in (
        (torch.tensor([1.0, torch.nan]), "a holds values that are not finite"),
        (torch.tensor([1.0, torch.inf]), "a holds values that are not finite"),
        (torch.tensor([1.0, -1e38]), r"a holds 1e\+38, and a trained weight is at most 1,000,000"),
        (torch.ones(2).double(), "another type: a is F64"),
    ):
        save_file({"a": tensor}, path)
        with pytest.raises(RunError, match=message):
            TensorFile(path, {})["a"]


def test_a_file_that_is_replaced_meanwhile_gives_the_tensors_of_the_one_that_was_opened(path) -> None:
    file = TensorFile(path, {})
    write_tensors(path, {name: tensor + 1 for name, tensor in TENSORS.items()})
    assert all(np.array_equal(file[name], tensor.numpy()) for name, tensor in TENSORS.items())
