"""Read the tensors of a safetensors file one by one, as NumPy arrays, without torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from weakref import WeakValueDictionary, finalize

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint.files import check_largest, read_header
from manyheads.errors import RunError


class TensorFile(Mapping[str, NDArray[np.float32]]):
    """The float32 tensors of a safetensors file by name; each is read whenever it is looked up.

    A file whose tensors are all read in turn, and converted, takes the memory of one tensor. A tensor that is still
    in use is not read again.

    Attributes:
        read: names of the tensors that were looked up.
    """

    def __init__(self, path: Path, aliases: Mapping[str, str]) -> None:
        """Read the header of a file; `aliases` maps further names of tensors to their names in the file.

        Raises:
            RunError: the file is missing or damaged, or holds numbers of another type.
        """
        self.path = path
        self.aliases = aliases
        self.header = read_header(path)
        self.file = path.open("rb")  # once: a training replaces the file
        finalize(self, self.file.close)
        self.read: set[str] = set()
        self.in_use: WeakValueDictionary[str, NDArray[np.float32]] = WeakValueDictionary()
        if mistyped := [name for name, tensor in self.header.items() if tensor.dtype != "F32"]:
            raise RunError(
                f"{path} holds numbers of another type: {mistyped[0]} is {self.header[mistyped[0]].dtype}."
            )

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Read a tensor."""
        name = self.aliases.get(name, name)
        _, shape, start = self.header[name]
        self.read.add(name)
        if (array := self.in_use.get(name)) is not None:
            return array
        self.file.seek(start)
        array = np.fromfile(self.file, dtype="<f4", count=math.prod(shape)).reshape(shape)
        check_largest(float(max(array.max(initial=0), -array.min(initial=0))), name, str(self.path))
        self.in_use[name] = array
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.header)

    def __len__(self) -> int:
        return len(self.header)
