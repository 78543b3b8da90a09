"""Memory: having the allocator keep it, having the kernels need little of it, knowing when it has run out."""

from __future__ import annotations

import ctypes
import os

import torch

__all__ = ["keep_few_kernels", "keep_freed_memory", "out_of_memory"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there is no memory left; a CPU has no class of its own for it."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in SIGNS)


def keep_few_kernels() -> None:
    """Have oneDNN remember the kernels of the last 64 shapes instead of 1,024, unless somebody has said how many.

    Batches come in hundreds of shapes, and each kernel keeps buffers of its own: gigabytes after some thousand
    updates. Read when torch first multiplies matrices on a CPU.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


def keep_freed_memory() -> None:
    """Have the C library keep large blocks for the next step instead of returning them to the system.

    Without it every large tensor of every step is paid for again page by page. Linux with glibc only.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(M_MMAP_THRESHOLD, 1 << 30)
    mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
