"""Recognition of errors that mean that memory ran out."""

from __future__ import annotations

import re

import torch

_MESSAGES = re.compile(
    r"out[ _]of[ _](\w+[ _])?memory"  # CUDA, XPU, MPS
    r"|allocate memory|not enough memory"  # the CPU; the second on Windows
    r"|bad[ _]alloc|alloc(ation)?[ _]failed"  # C++; cuBLAS, cuDNN, MKL
    r"|invalid buffer size"  # MPS
    r"|could not create a primitive$",  # oneDNN, also for the memory of its machine code
    re.IGNORECASE,
)


def out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that memory ran out; on a CPU only its message says so."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and _MESSAGES.search(str(error)) is not None
