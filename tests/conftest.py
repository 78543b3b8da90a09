"""What holds for all tests."""

from __future__ import annotations

import os

import manyheads  # noqa: F401  # before any test imports torch: sets how long OpenMP's threads spin

# Side by side (pytest -n), each process has a core of its own.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# The C decoder is tested wherever it can be compiled, also where it is slower than torch.
os.environ.setdefault("MANYHEADS_NATIVE", "1")
