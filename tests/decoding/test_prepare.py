"""Packing of a model for decoding: in C where that is possible, in the precision that was chosen."""

from __future__ import annotations

import pytest
from tests.model.samples import scrambled_model

from manyheads.decoding import prepare
from manyheads.decoding.native.build import library
from manyheads.decoding.prepare import pack
from manyheads.errors import UsageError

needs_compiler = pytest.mark.skipif(library() is None, reason="no C compiler here")


@needs_compiler
@pytest.mark.parametrize("used", [True, False])
def test_a_model_is_packed_for_the_chosen_implementation(used, monkeypatch) -> None:
    monkeypatch.setattr(prepare, "library", lambda: library() if used else None)
    assert (pack(scrambled_model().float()).native is not None) == used


def test_models_that_the_c_code_does_not_support_are_computed_by_torch(monkeypatch) -> None:
    assert pack(scrambled_model()).native is None, "float64"
    assert pack(scrambled_model().float().to("meta")).native is None
    monkeypatch.setattr(prepare, "library", lambda: None)
    assert pack(scrambled_model().float()).native is None


def test_int8_is_refused_on_other_devices_than_a_cpu() -> None:
    with pytest.raises(UsageError, match='"int8" is for a CPU'):
        pack(scrambled_model().to("meta"), "int8")
