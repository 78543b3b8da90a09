"""The fixtures of `tests/model`: a model of each kind, and the two ways attention is computed."""

from __future__ import annotations

from tests.model.conftest import _seeded, model, path

__all__ = ["_seeded", "model", "path"]
