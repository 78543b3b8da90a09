"""Memory that the C library and the caches of kernels keep for reuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads import allocator as module
from manyheads.allocator import keep_few_kernels, keep_freed_memory, return_freed_memory


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
from manyheads.allocator import keep_few_kernels, keep_freed_memory

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
