"""What holds for all tests."""

from __future__ import annotations

import os

# As the program itself does (`manyheads.cli.main`): on a busy machine small models are many times faster like this.
# It is read when torch is imported, so it stands before any test.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
# Side by side (pytest -n), each process has a core of its own.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# The C decoder is tested wherever it can be compiled, also where it is slower than torch.
os.environ.setdefault("MANYHEADS_NATIVE", "1")
