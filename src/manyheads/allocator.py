"""Settings of the C library's allocator and of the caches of kernels."""

from __future__ import annotations

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # glibc, malloc.h
_KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def keep_few_kernels(shapes: int = 64) -> None:
    """Limit both caches of oneDNN kernels, its own and torch's, to 64 shapes instead of 1,024 each.

    Batches have hundreds of shapes. A kernel takes about a quarter of a MiB between the tensors of the update that
    created it, and so fragments the memory. Environment variables that are already set are not changed; torch reads
    them when it first multiplies matrices on a CPU.
    """
    for cache in _KERNEL_CACHES:
        os.environ.setdefault(cache, str(shapes))


def keep_freed_memory() -> None:
    """Make the C library keep freed large blocks for the next step instead of returning them to the system.

    Otherwise the system maps the pages of every large tensor anew in every step. Linux with glibc only.
    """
    _set_malloc({_M_MMAP_THRESHOLD: 1 << 30, _M_TRIM_THRESHOLD: (1 << 31) - 1})


def keep_decoding_small() -> None:
    """Make decoding threads share one heap, and let oneDNN cache the kernels of 256 shapes.

    With a heap for each thread, decoding takes 130 MiB more with two workers and is no faster. Linux with glibc
    only. A decoding step has six matrix products for each number of rows: a smaller cache would not hold them.
    """
    keep_few_kernels(256)
    _set_malloc({_M_ARENA_MAX: 1})


def return_freed_memory() -> None:
    """Make the C library return freed blocks of 256 KiB or more to the system at once. Linux with glibc only.

    By itself it raises this limit to the size of a freed matrix. The keys and values of batches then leave holes in
    the heap of a server.
    """
    _set_malloc({_M_MMAP_THRESHOLD: 1 << 18})


def _set_malloc(values: dict[int, int]) -> None:
    """Set parameters of the C library's allocator, if the library is glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    for parameter, value in values.items():
        mallopt(parameter, value)
