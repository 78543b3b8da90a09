"""The C library and Python agree on structs and functions, or the library is refused with the reason."""

from __future__ import annotations

import _ctypes
import ctypes
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inference.native.test_model import packed
from tests.model.samples import TARGET_SIZE, language_model, scrambled_model

from manyheads.inference.native import build, interface
from manyheads.inference.native.beams import NativeBeams
from manyheads.inference.native.interface import InterfaceError, check_interface
from manyheads.inference.native.model import pointers
from manyheads.inference.native.structs import ENUMERATIONS, STRUCTS, Failure, Model, Step
from manyheads.inference.native.weights import PackedWeights
from manyheads.search.interface import never_cancelled
from manyheads.search.options import SearchOptions

OPTIONS = SearchOptions(beam_size=3, length_penalty=1.0, max_length_ratio=1.0, max_length_offset=3)

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C compiler here")


@pytest.fixture
def path() -> Path:
    """Return the file of the library, to open it as a second `CDLL` object."""
    library = build.library()
    assert library is not None
    return Path(library._name)


def test_every_struct_and_field_has_the_same_size_and_offset_in_c_and_in_python() -> None:
    library = build.library()
    assert library is not None
    layout = interface._layout_in_c(library)
    in_python = interface._layout_in_python()
    assert {name: layout[name] for name in in_python} == in_python
    assert len(in_python) > 80


def test_a_field_of_another_type_is_refused_by_name(path, monkeypatch) -> None:
    class Output(ctypes.Structure):
        names = ("length", "row", "ended", "log_prob")
        _fields_ = (
            *((name, ctypes.c_int32) for name in names),
            ("total", ctypes.c_double),
            ("score", ctypes.c_double),
        )

    monkeypatch.setattr(
        interface, "STRUCTS", [Output, *(struct for struct in STRUCTS if struct.__name__ != "Output")]
    )
    message = "Output.log_prob is 4 bytes (float) at byte 12 in C, 4 bytes (int32) at byte 12 in Python"
    assert build._open_library(path) == (None, message)


def test_an_enumeration_in_another_order_is_refused_by_name(path, monkeypatch) -> None:
    other = IntEnum("Format", "FLOAT32 INT8 BFLOAT16", start=0)
    monkeypatch.setattr(interface, "ENUMERATIONS", [other, *ENUMERATIONS[1:]])
    assert build._open_library(path) == (None, "INT8 is 2 (Format) in C, 1 (Format) in Python")


def test_the_types_of_functions_are_those_of_c(path) -> None:
    library = ctypes.CDLL(str(path))
    check_interface(library)
    assert library.workspace_size.argtypes == [ctypes.POINTER(Model), *[ctypes.c_int64] * 3]
    assert library.linear_layer.restype is None
    assert library.panel_width.argtypes == []
    assert library.encode.argtypes[-2:] == [ctypes.c_int, ctypes.POINTER(Failure)]


def test_a_library_without_a_function_is_refused() -> None:
    with pytest.raises(InterfaceError, match="the C library has no function function_types"):
        check_interface(ctypes.CDLL(_ctypes.__file__))


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_misspelt_field_is_an_error(struct) -> None:
    with pytest.raises(AttributeError):
        struct().abandoned = 1
    with pytest.raises(AttributeError):
        struct(abandoned=1)


@torch.no_grad()
@pytest.mark.parametrize("token", [-1, TARGET_SIZE, 2**40])
def test_a_token_id_outside_of_the_vocabulary_is_refused_with_its_range(token) -> None:
    model = packed(scrambled_model().float())
    with pytest.raises(ValueError, match=rf"token id {token}"):
        model.encode(np.array([4, token, 5]), np.array([3]))
    beams = NativeBeams(model, OPTIONS)
    beams.add([[5, 6]], never_cancelled, lambda index, outputs: None)
    ctypes.c_int64.from_address(beams.running[0].struct.latest).value = token
    with pytest.raises(ValueError, match=rf"token id {token}; the range is 0\.\.{TARGET_SIZE - 1}"):
        beams.step()


@torch.no_grad()
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_visible", 3, "visible tokens 3"),
        ("length", 10**6, "length of the KV cache 1000000"),
        ("rows", 4, "rows of a beam 4"),
        ("source_length", 10**6, "length of the source 1000000"),
    ],
)
def test_a_beam_with_lengths_outside_of_its_arrays_is_refused(field, value, message) -> None:
    model = packed(scrambled_model().float())
    beams = NativeBeams(model, OPTIONS)
    beams.add([[5, 6]], never_cancelled, lambda index, outputs: None)
    setattr(beams.running[0].struct.step, field, value)
    with pytest.raises(ValueError, match=message):
        beams.step()


@pytest.mark.parametrize("later", [-1, 5])
def test_later_tokens_beyond_the_cache_are_refused(later) -> None:
    """Only the page reads later tokens: a target without the causal mask."""
    library, tokens, failure = build.library(), np.array([5]), Failure()
    assert library is not None
    model = language_model()
    tensors = {name: weight.detach().numpy() for name, weight in model.named_parameters(remove_duplicate=False)}
    weights = PackedWeights(tensors, model.config, "fp32", library.panel_width())
    cache = np.empty((3, 2, 1, 3, 9, 10), dtype=np.float32)
    step = Step(
        tokens=tokens.ctypes.data, cache=cache.ctypes.data, sentences=1, rows=1, length=5, capacity=9,
        shared_cache=1, num_later=later,
    )  # fmt: skip
    decoder, steps = weights.language_model(TARGET_SIZE), pointers([ctypes.addressof(step)])
    assert library.decoder_steps(decoder, steps, 1, 9, 0, 0, 1, failure) == -1
    assert (failure.quantity, failure.value, failure.low, failure.high) == (b"later tokens", later, 0, 4)
