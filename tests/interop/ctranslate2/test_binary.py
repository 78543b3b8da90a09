"""The file model.bin is read in each of its versions; a damaged one is refused before memory is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.tolerances import assert_close

from manyheads.errors import RunError
from manyheads.interop.ctranslate2.binary import read_model

pytest.importorskip("ctranslate2")
from tests.interop.converted import rewrite, write_opennmt_py, write_opus_mt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_opennmt_py(tmp_path_factory.mktemp("binary") / "package", numbers="int8")


@pytest.fixture
def path(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of a file."""
    copy = tmp_path / "model.bin"
    copy.write_bytes((folder / "model.bin").read_bytes())
    return copy


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_each_version_holds_the_same_variables(path: Path, version: int) -> None:
    right = {name: variable.values.copy() for name, variable in read_model(path).variables.items()}
    rewrite(path, version=version)
    stored = read_model(path)
    assert stored.version == version
    assert stored.variables.keys() == right.keys()
    assert all(np.array_equal(stored.variables[name].values, values) for name, values in right.items())


@pytest.mark.parametrize("numbers", ["int8", "int16", "float16", "bfloat16"])
def test_rounded_matrices_are_near_those_in_float32(tmp_path: Path, numbers: str) -> None:
    exact, rounded = (
        read_model(write_opus_mt(tmp_path / str(each), numbers=each) / "model.bin") for each in (None, numbers)
    )
    names = ("encoder/embeddings_0/weight", "decoder/projection/weight", "decoder/layer_2/ffn/linear_1/weight")
    for name in names:
        right = exact.floats(name)
        assert rounded.floats(name).dtype == np.float32
        assert np.abs(rounded.floats(name) - right).max() <= np.abs(right).max() / 125


def test_a_matrix_of_8_bits_is_divided_by_the_scale_of_each_row(path: Path) -> None:
    stored, name = read_model(path), "decoder/layer_0/ffn/linear_0/weight"
    values, scales = stored.variables[name].values, stored.variables[f"{name}_scale"].values
    assert_close(stored.floats(name), values.astype(np.float64) / scales[:, None])


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, b"\x07\0\0\0", "has the version 7"),
        (0, b"\x00\0\0\xff", "is no such file"),
        (4, b"\xff\xff", "a name is no text"),
        (26, b"\xff\xff\xff\xff", "cannot hold 4,294,967,295 variables"),
        (6, b"\xff", "a name is no text"),
    ],
)
def test_absurd_counts_and_names_are_refused(path: Path, position: int, value: bytes, message: str) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(RunError, match=message):
        read_model(path)


def test_every_truncation_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for length in [*range(0, 300, 7), *range(300, len(data), 997), len(data) - 1]:
        path.unlink()
        path.write_bytes(data[:length])
        with pytest.raises(RunError):
            read_model(path)


def test_a_length_beyond_the_end_is_refused_before_memory_is_taken(path: Path) -> None:
    head = path.read_bytes()[:26]
    variable = b"\2\0x\0\2" + 2 * b"\xff\xff\0\0" + b"\0" + (4 * 65_535**2 % 2**32).to_bytes(4, "little")
    path.write_bytes(head + b"\1\0\0\0" + variable)
    with pytest.raises(RunError, match="bytes"):
        read_model(path)


def test_bytes_after_the_end_are_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0\0")
    with pytest.raises(RunError, match="2 bytes follow its end"):
        read_model(path)


@pytest.mark.parametrize(
    ("scales", "message"),
    [(None, "int8, and has no scale"), ([1.0, 2.0], "2 scales do not fit"), (np.zeros(37), "are no scales")],
)
def test_8_bits_without_fitting_scales_are_refused(path: Path, scales: object, message: str) -> None:
    name = "decoder/layer_0/ffn/linear_0/weight"
    more = {} if scales is None else {f"{name}_scale": np.asarray(scales, dtype=np.float32)}
    rewrite(path, more=more, without="" if more else "_scale")
    with pytest.raises(RunError, match=message):
        read_model(path).floats(name)
