"""Memory that is kept, and the error of memory that is not there."""

from __future__ import annotations

import os

import pytest
import torch

from manyheads.training import memory as module
from manyheads.training.memory import keep_few_kernels, keep_freed_memory, out_of_memory


def test_the_real_error_of_this_machine_is_known() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    assert out_of_memory(caught.value)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    assert out_of_memory(MemoryError())
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not out_of_memory(ValueError("out of memory"))


def test_how_many_kernels_are_kept_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    keep_few_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "64"
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    keep_few_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"


def test_keeping_freed_memory_can_be_asked_for_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        """A C library without glibc's mallopt."""

    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: Library())
    keep_freed_memory()


def test_large_blocks_are_kept_by_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[int, int] = {}

    class Library:
        @staticmethod
        def mallopt(option: int, value: int) -> int:
            asked[option] = value
            return 1

    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: Library())
    keep_freed_memory()
    assert asked == {-3: 1 << 30, -1: (1 << 31) - 1}
