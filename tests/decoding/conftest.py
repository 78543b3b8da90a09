"""The fixtures of `tests/model`: a model of each kind, and the two implementations of attention."""

from __future__ import annotations

from tests.model.conftest import _seeded, model, path

__all__ = ["_seeded", "model", "path"]
