"""Memory that is kept for reuse, and the recognition of out-of-memory errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from manyheads.training import memory as module
from manyheads.training.memory import keep_few_kernels, keep_freed_memory, out_of_memory, return_freed_memory


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 78.00 GiB",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "MPS backend out of memory (MPS allocated: 17.30 GB, other allocations: 1.50 GB, max allowed: 18.13 GB)",
        "Invalid buffer size: 19.45 GiB",
        "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
        "[enforce fail] data. DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes",
        "unable to mmap 64 bytes from file </torch_7_0>: Cannot allocate memory (12)",
        "std::bad_alloc",
        "bad allocation",
        "could not create a primitive",
    ],
)
def test_each_wording_of_an_allocator_is_out_of_memory(message: str) -> None:
    assert out_of_memory(RuntimeError(message))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        RuntimeError("could not create a primitive descriptor for the matmul primitive."),
        ValueError("out of memory"),
    ],
)
def test_other_errors_are_not_out_of_memory(error: Exception) -> None:
    assert not out_of_memory(error)


def test_an_allocation_that_is_too_large_is_out_of_memory() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    assert out_of_memory(caught.value)
    assert out_of_memory(torch.OutOfMemoryError())
    assert out_of_memory(MemoryError())


LITTLE_MEMORY = """
import resource
from pathlib import Path
import torch
from manyheads.training.memory import out_of_memory

torch.set_num_threads(1)
conv1d, kernel = torch.nn.functional.conv1d, torch.randn(64, 512, 3)
conv1d(torch.randn(1, 512, 100), kernel)
messages = set()
for length in range(101, 500):  # oneDNN compiles another kernel for each
    text = torch.randn(1, 512, length)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 500 * length, -1))
    try:
        conv1d(text, kernel)
    except RuntimeError as error:
        messages.add(str(error).partition(":")[0])
        assert out_of_memory(error), error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(sorted(messages))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="limits the memory of a process of Linux")
def test_an_error_under_a_memory_limit_is_out_of_memory() -> None:
    """Compute in little memory, where torch fails to allocate tensors, and oneDNN its kernels."""
    done = subprocess.run([sys.executable, "-c", LITTLE_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout != "[]\n"


@pytest.mark.parametrize("cache", ["ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"])
def test_the_number_of_cached_kernels_can_be_configured(monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")  # both are as before after the test
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "")
    monkeypatch.delenv(cache)
    keep_few_kernels()
    assert os.environ[cache] == "64"
    monkeypatch.setenv(cache, "7")
    keep_few_kernels()
    assert os.environ[cache] == "7"


MANY_SHAPES = """
import random
from pathlib import Path
import torch
from manyheads.training.memory import keep_few_kernels, keep_freed_memory

keep_few_kernels()
keep_freed_memory()
torch.set_num_threads(1)
linear, rng = torch.nn.Linear(128, 256), random.Random(1)
for update in range(1, 401):
    x = torch.randn(rng.randint(100, 1200), 128, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = linear(x)
    y.float().sum().backward()
    if update in (100, 400):
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        print(fields["RssAnon"].split()[0])
"""


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the resident size is read from /proc")
def test_memory_does_not_grow_with_the_number_of_shapes() -> None:
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_CACHE_CAPACITY")}
    done = subprocess.run([sys.executable, "-c", MANY_SHAPES], check=True, stdout=subprocess.PIPE, env=unset)
    settled, last = map(int, done.stdout.split())
    assert last < 1.1 * settled


def test_keeping_freed_memory_works_without_mallopt(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        """A C library without glibc's mallopt."""

    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: Library())
    keep_freed_memory()


def test_large_blocks_are_kept_or_returned_by_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[int, int] = {}

    class Library:
        @staticmethod
        def mallopt(option: int, value: int) -> int:
            options[option] = value
            return 1

    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: Library())
    keep_freed_memory()
    assert options == {-3: 1 << 30, -1: (1 << 31) - 1}
    return_freed_memory()
    assert options[-3] == 1 << 18
