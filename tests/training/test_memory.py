"""The recognition of out-of-memory errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from manyheads.training.memory import out_of_memory


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
