"""A fake standard input."""

from __future__ import annotations

import io
import sys

import pytest


def set_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Replace standard input by these bytes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
