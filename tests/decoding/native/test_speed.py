"""The choice between the C code and torch: measured once on a machine, stored, and applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manyheads.decoding import prepare
from manyheads.decoding.native import speed as module
from manyheads.decoding.native.build import SWITCH
from manyheads.decoding.native.speed import NativeSpeed, is_used, native_speed, used_library
from manyheads.decoding.prepare import _ROW_COUNTS

FAST, SLOW = (
    NativeSpeed(2, dict.fromkeys(_ROW_COUNTS, seconds), dict.fromkeys(_ROW_COUNTS, 2.0)) for seconds in (1.0, 3.0)
)


class Library:
    """A stand-in for a loaded library, of which only the path is used."""

    def __init__(self, path: Path) -> None:
        self._name = str(path)


@pytest.fixture
def code(tmp_path, monkeypatch) -> Library:
    """Return a library in an empty cache, without a stored measurement."""
    monkeypatch.delenv(SWITCH, raising=False)
    (tmp_path / "decoder-1.so").touch()
    return Library(tmp_path / "decoder-1.so")


@pytest.mark.parametrize("speed", [FAST, SLOW], ids=["faster", "slower"])
def test_a_library_is_used_if_it_was_measured_faster_and_is_measured_once(code, speed, monkeypatch) -> None:
    monkeypatch.setattr(prepare, "measure", lambda _: speed)
    assert is_used(code) == (speed is FAST)
    module._cached_speed.cache_clear()
    monkeypatch.setattr(prepare, "measure", lambda _: pytest.fail("measured again"))
    assert is_used(code) == (speed is FAST)
    assert native_speed(code) == speed


def test_the_choice_is_by_the_mean_ratio_over_numbers_of_rows() -> None:
    native = {1: 8.0, 5: 1.0, 320: 1.0}
    assert not NativeSpeed(1, native, {1: 1.0, 5: 2.0, 320: 2.0}).faster
    assert NativeSpeed(1, native, {1: 1.0, 5: 3.0, 320: 3.0}).faster


def test_the_environment_decides_before_the_measurement(code, monkeypatch) -> None:
    monkeypatch.setattr(prepare, "measure", lambda _: SLOW)
    monkeypatch.setenv(SWITCH, "1")
    assert is_used(code)


BROKEN = [
    "",
    "{}",
    '{"threads": 2, "native": 3, "torch": {}}',
    '{"threads": 2, "native": {"1": 1}, "torch": {}}',
    '{"threads": 2, "native": {"1": 0}, "torch": {"1": 1}}',
    '{"threads": 2, "native": {"1": NaN}, "torch": {"1": 1}}',
    '{"threads": 2, "native": {"1": 1}, "torch": {"1": 1e400}}',
    "[" * 100_000,
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_corrupt_measurement_is_repeated(code, broken, tmp_path, monkeypatch) -> None:
    (tmp_path / "decoder-1.json").write_text(broken)
    monkeypatch.setattr(prepare, "measure", lambda _: SLOW)
    assert not is_used(code)
    assert json.loads((tmp_path / "decoder-1.json").read_text())["native"] == {
        str(rows): 3.0 for rows in _ROW_COUNTS
    }


def test_a_library_outside_the_cache_is_used_without_being_measured(code, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(prepare, "measure", lambda _: pytest.fail("measured"))
    (tmp_path / "decoder-1.so").unlink()
    assert native_speed(code) is None
    assert is_used(code)


@pytest.mark.parametrize(("used", "expected"), [(True, "code"), (False, None)])
def test_used_library_returns_none_for_a_library_that_is_not_used(used, expected, monkeypatch) -> None:
    monkeypatch.setattr(module, "library", lambda: "code")
    monkeypatch.setattr(module, "is_used", lambda _: used)
    assert used_library() == expected
    monkeypatch.setattr(module, "library", lambda: None)
    assert used_library() is None
