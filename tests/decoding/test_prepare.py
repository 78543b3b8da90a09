"""Packing of a model for decoding: in C where that is possible."""

from __future__ import annotations

import pytest
from tests.model.samples import scrambled_model

from manyheads.decoding import prepare
from manyheads.decoding.prepare import pack_native
from manyheads.inference.native.build import library


@pytest.mark.skipif(library() is None, reason="no C compiler here")
def test_float32_weights_on_a_cpu_are_packed_for_the_c_code() -> None:
    assert pack_native(scrambled_model().float()) is not None


def test_models_that_the_c_code_does_not_support_are_not_packed_for_it(monkeypatch) -> None:
    assert pack_native(scrambled_model()) is None, "float64"
    assert pack_native(scrambled_model().float().to("meta")) is None
    monkeypatch.setattr(prepare, "library", lambda: None)
    assert pack_native(scrambled_model().float()) is None
