"""Memory: having the allocator keep it, having the kernels need little of it, knowing when it has run out."""

from __future__ import annotations

import ctypes
import os

import torch

__all__ = ["keep_decoding_small", "keep_few_kernels", "keep_freed_memory", "out_of_memory"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc, malloc.h
KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there is no memory left; a CPU has no class of its own for it."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in SIGNS)


def keep_few_kernels(shapes: int = 64) -> None:
    """Limit both caches of oneDNN kernels, its own and torch's, to 64 shapes instead of 1,024 each.

    Batches come in hundreds of shapes. A kernel takes about a quarter of a MiB, and lies between the tensors of the
    update that made it, whose memory then falls into pieces. Variables that are set already are left as they are;
    both are read when torch first multiplies matrices on a CPU.
    """
    for cache in KERNEL_CACHES:
        os.environ.setdefault(cache, str(shapes))


def keep_freed_memory() -> None:
    """Have the C library keep large blocks for the next step instead of returning them to the system.

    Without it every large tensor of every step is paid for again page by page. Linux with glibc only.
    """
    set_malloc({M_MMAP_THRESHOLD: 1 << 30, M_TRIM_THRESHOLD: (1 << 31) - 1})


def keep_decoding_small() -> None:
    """Have threads that decode share one heap, and oneDNN remember the kernels of 256 shapes.

    Each thread would keep what it has freed for itself: 130 MiB more with two workers, and no faster. Linux with
    glibc only. A step has six products for each number of rows; of fewer shapes they would be made again and again.
    """
    keep_few_kernels(256)
    set_malloc({M_ARENA_MAX: 1})


def set_malloc(values: dict[int, int]) -> None:
    """Set parameters of the C library's allocator, where it is glibc's."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    for parameter, value in values.items():
        mallopt(parameter, value)
