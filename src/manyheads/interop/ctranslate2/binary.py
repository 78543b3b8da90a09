"""Read the file ``model.bin`` of CTranslate2: variables by name, checked against the size of the file before use.

The format (`ctranslate2/specs/model_spec.py`, versions 3 to 6), in little-endian order: the version, the name and
the revision of the specification, the variables (name, shape, type, bytes), the aliases. In version 3 the type is
known by its size alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import plain_file
from manyheads.errors import RunError
from manyheads.files import reading

_VERSIONS = range(3, 7)
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")  # in the order of their codes
_TYPES_BY_SIZE = {4: "float32", 2: "int16", 1: "int8"}  # in version 3
_STORED_AS = {"bfloat16": "<u2", "int8": "i1"} | {
    name: np.dtype(name).newbyteorder("<").str for name in ("float32", "int16", "int32", "float16")
}
_MOST_AXES = 8
_FEWEST_BYTES = 4  # of a variable or an alias
_INT16_SCALE = 1000  # of int16 matrices without a scale, which old versions wrote


@dataclass(frozen=True)
class Variable:
    """A variable: its type, and its values as they are in the file (bfloat16 as uint16)."""

    dtype: str
    values: NDArray[Any]


@dataclass(frozen=True)
class StoredModel:
    """A file ``model.bin``.

    Attributes:
        path: the file.
        kind: name of its specification, such as "TransformerSpec".
        revision: revision of the specification.
        version: version of the file format.
        variables: variables by name, views of the file.
        aliases: further names of variables.
    """

    path: Path
    kind: str
    revision: int
    version: int
    variables: dict[str, Variable]
    aliases: dict[str, str]

    def find(self, name: str) -> Variable | None:
        """Return a variable by its name or alias; None if there is none."""
        return self.variables.get(self.aliases.get(name, name))

    def names(self) -> set[str]:
        """Return all names and aliases."""
        return {*self.variables, *self.aliases}

    def number(self, name: str, default: float) -> float:
        """Return the value of a variable that is one number; raises `RunError` if it holds more."""
        variable = self.find(name)
        if variable is None:
            return default
        if variable.values.size != 1:
            raise self.damaged(f"{name} has the shape {list(variable.values.shape)}, and must be one number")
        value = float(_floats(variable).reshape(()))
        if not math.isfinite(value):
            raise self.damaged(f"{name} is {value}")
        return value

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return the values of a variable in float32, with the scales of 8 and 16-bit matrices undone.

        Raises:
            RunError: there is no such variable, or its scale is missing or does not fit.
        """
        variable = self.find(name)
        if variable is None:
            raise self.damaged(f"{name} is missing")
        values, factors = _floats(variable), self.factors(name)
        if factors is None:
            return values
        with np.errstate(over="ignore"):  # `load_weights` refuses infinite weights
            result: NDArray[np.float32] = values / factors.reshape(-1, *[1] * (values.ndim - 1))
        return result

    def factors(self, name: str) -> NDArray[np.float32] | None:
        """Return the scales of a matrix, one for each row (int8) or one (int16); None for other types.

        Raises:
            RunError: the scales are missing or do not fit.
        """
        variable, scale = self.find(name), self.scale(name)
        if variable is None or variable.dtype not in ("int8", "int16"):
            return None
        if scale is None and variable.dtype == "int8":
            raise self.damaged(f"{name} is int8, and has no scale {name}_scale")
        factors = np.full(1, _INT16_SCALE, dtype=np.float32) if scale is None else _floats(scale)
        expected = 1 if variable.dtype == "int16" or not variable.values.ndim else len(variable.values)
        if factors.size != expected or (scale is not None and scale.dtype != "float32"):
            raise self.damaged(
                f"{name} has the shape {variable.values.shape}, which {factors.size} scales do not fit"
            )
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            raise self.damaged(f"{name}_scale holds values that are no scales")
        return factors

    def scale(self, name: str) -> Variable | None:
        """Return the scale of a matrix, which may be stored under the name that the matrix is an alias of."""
        return self.find(f"{name}_scale") or self.find(f"{self.aliases.get(name, name)}_scale")

    def equal(self, first: str, second: str) -> bool:
        """Return whether two variables hold the same values."""
        a, b = self.find(first), self.find(second)
        if a is None or b is None or a is b:
            return a is b
        same = a.dtype == b.dtype and np.array_equal(a.values, b.values)
        scales = self.scale(first), self.scale(second)
        if same and scales[0] is not None and scales[1] is not None:
            return np.array_equal(scales[0].values, scales[1].values)
        return same

    def damaged(self, problem: str) -> RunError:
        """Return an error that names the file."""
        return RunError(f"{self.path} is damaged: {problem}. Copy it again, or convert the model again.")


def read_model(path: Path) -> StoredModel:
    """Map a file ``model.bin``; nothing is copied.

    Raises:
        RunError: the file is missing, damaged, or of another version.
    """
    with reading(path):
        if not plain_file(path).stat().st_size:
            raise RunError(f"{path} is empty. Copy it again.")
        reader = _Reader(path, np.memmap(path, dtype=np.uint8, mode="r"))
    version = reader.number(4)
    if version not in _VERSIONS:
        raise RunError(
            f"{path} has the version {version:,} of CTranslate2's file format, or is no such file; versions "
            f"{_VERSIONS[0]} to {_VERSIONS[-1]} are read. Convert the model again, with CTranslate2 4."
        )
    kind, revision = reader.text(), reader.number(4)
    variables: dict[str, Variable] = {}
    for _ in range(reader.count("variables")):
        name = reader.text()
        if name in variables:
            raise reader.error(f"{name} stands in it twice")
        variables[name] = reader.variable(name, version)
    aliases: dict[str, str] = {}
    for _ in range(reader.count("aliases")):
        alias, name = reader.text(), reader.text()
        if alias in variables or alias in aliases or name not in variables:
            raise reader.error(f"the alias {alias} of {name} is no name, or a name twice")
        aliases[alias] = name
    if reader.position != reader.data.size:
        raise reader.error(f"{reader.data.size - reader.position:,} bytes follow its end")
    return StoredModel(path, kind, revision, version, variables, aliases)


class _Reader:
    """A position in the file; every length is checked against the rest of the file before it is used."""

    def __init__(self, path: Path, data: NDArray[np.uint8]) -> None:
        self.path, self.data, self.position = path, data, 0

    def error(self, problem: str) -> RunError:
        return RunError(f"{self.path} is damaged at byte {self.position:,}: {problem}. Copy it again.")

    def take(self, count: int) -> NDArray[np.uint8]:
        if count > self.data.size - self.position:
            raise self.error(f"{count:,} bytes must follow, and {self.data.size - self.position:,} do")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size).tobytes(), "little")

    def count(self, what: str) -> int:
        count = self.number(4)
        if count > (self.data.size - self.position) // _FEWEST_BYTES:
            raise self.error(f"it cannot hold {count:,} {what}")
        return count

    def text(self) -> str:
        data = self.take(self.number(2)).tobytes()
        try:
            text = data.removesuffix(b"\0").decode()
        except UnicodeDecodeError as error:
            raise self.error("a name is no text") from error
        if not data.endswith(b"\0") or not text.isprintable():
            raise self.error("a name is no text")
        return text

    def variable(self, name: str, version: int) -> Variable:
        axes = self.number(1)
        if axes > _MOST_AXES:
            raise self.error(f"{name} has {axes} axes, and at most {_MOST_AXES} make sense")
        shape = tuple(self.number(4) for _ in range(axes))
        code = self.number(1)
        size = self.number(4) * (1 if version >= 4 else code)
        dtype = _TYPES_BY_SIZE.get(code) if version < 4 else _TYPES[code] if code < len(_TYPES) else None
        if dtype is None:
            raise self.error(f"{name} has the unknown type {code}")
        stored = np.dtype(_STORED_AS[dtype])
        if not all(shape) or math.prod(shape) * stored.itemsize != size:
            raise self.error(f"{name} has the shape {list(shape)} of {dtype}, but {size:,} bytes")
        return Variable(dtype, self.take(size).view(stored).reshape(shape))


def _floats(variable: Variable) -> NDArray[np.float32]:
    """Return a copy of the values in float32, without scales."""
    if variable.dtype == "bfloat16":
        return np.asarray(variable.values.astype(np.uint32) << 16).view(np.float32)
    return np.array(variable.values, dtype=np.float32)
