"""Read the tensors of a safetensors file one by one, as NumPy arrays, without torch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint.files import read_shapes
from manyheads.errors import RunError

__all__ = ["TensorFile"]


class TensorFile(Mapping[str, NDArray[np.float32]]):
    """The float32 tensors of a safetensors file by name; each is read whenever it is looked up.

    A file whose tensors are all read in turn, and converted, takes the memory of one tensor. A tensor that is still
    in use is not read again.

    Attributes:
        read: names of the tensors that were looked up.
    """

    def __init__(self, path: Path, aliases: Mapping[str, str]) -> None:
        """Read the header of a file.

        Args:
            path: path of the file.
            aliases: further names of tensors -> their names in the file.

        Raises:
            RunError: the file is missing or damaged, or holds numbers of another type.
        """
        self.path = path
        self.aliases = aliases
        self.shapes = read_shapes(path)
        self.read: set[str] = set()
        self.in_use: WeakValueDictionary[str, NDArray[np.float32]] = WeakValueDictionary()
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        self.starts = {name: 8 + length + header[name]["data_offsets"][0] for name in self.shapes}
        if mistyped := [name for name in self.shapes if header[name]["dtype"] != "F32"]:
            raise RunError(
                f"{path} holds numbers of another type: {mistyped[0]} is {header[mistyped[0]]['dtype']}."
            )

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Read a tensor.

        Raises:
            KeyError: there is no such tensor.
            RunError: the tensor holds values that are not finite.
        """
        name = self.aliases.get(name, name)
        shape = self.shapes[name]
        self.read.add(name)
        if (array := self.in_use.get(name)) is not None:
            return array
        count = int(np.prod(shape))
        array = np.fromfile(self.path, dtype="<f4", count=count, offset=self.starts[name]).reshape(shape)
        if not np.isfinite(array).all():
            raise RunError(f"{self.path} is damaged: {name} holds values that are not finite. Use another.")
        self.in_use[name] = array
        return array

    def __iter__(self) -> Iterator[str]:
        """Yield the names in the file."""
        return iter(self.shapes)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.shapes)
