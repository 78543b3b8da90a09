"""Read files that may be damaged or hostile, and write tensors.

When reading, sizes are checked before content, headers before tensors, and links out of a folder are not followed.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors import SafetensorError, safe_open

from bitext.files import replacing, sum_of
from manyheads.errors import RunError
from manyheads.files import plain_file, read_bytes, reading

if TYPE_CHECKING:
    from torch import Tensor

# Limits above the size of any file of manyheads; a larger file is refused before it is read.
_MOST_HEADER = 16 * 2**20  # bytes of the header of a safetensors file
_MOST_NODES = 1_000_000  # values of a JSON document
_MOST_AXES = 8  # axes of a tensor
_LARGEST_WEIGHT = 1_000_000  # magnitude; trained weights are below 1,000


def check_nodes(data: bytes, origin: Path) -> bytes:
    """Return the bytes of a JSON document, unless parsing it would take too much memory."""
    nodes = sum(data.count(sign) for sign in (b",", b"[", b"{"))
    if nodes > _MOST_NODES:
        raise RunError(
            f"{origin} is no file of ours: it holds up to {nodes:,} values, at most {_MOST_NODES:,} make sense."
        )
    return data


def read_json_text(path: Path) -> str:
    """Read a JSON document of a run without parsing it."""
    try:
        return check_nodes(read_bytes(path), path).decode()
    except UnicodeDecodeError as error:
        raise RunError(f"{path} cannot be read: {error}.") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a run."""
    try:
        content = json.loads(read_json_text(path))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    if not isinstance(content, dict):
        raise RunError(f"{path} is damaged: it holds no JSON object.")
    return content


class StoredTensor(NamedTuple):
    """A tensor of a safetensors file, as the header of the file describes it.

    Attributes:
        dtype: its type, such as "F32".
        shape: its shape.
        start: byte of the file where its values begin.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Read names, types and shapes of the tensors of a safetensors file, as the library accepts them.

    Raises:
        RunError: the file cannot be read, its header is too long, names a tensor twice or contradicts itself.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) != len(pairs):
            raise ValueError("a name stands in it twice")
        return entries

    try:
        with reading(path), plain_file(path).open("rb") as file:
            available = os.fstat(file.fileno()).st_size - 8
            length = int.from_bytes(file.read(8), "little")
            if available < 2 or length > min(available, _MOST_HEADER):
                raise ValueError(
                    f"its header has {length:,} bytes, and at most {max(0, min(available, _MOST_HEADER)):,} fit"
                )
            header = json.loads(check_nodes(file.read(length), path), object_pairs_hook=once)
        with reading(path), safe_open(path, "np"):  # types, shapes and offsets: do they fit the file?
            header.pop("__metadata__", None)
        tensors = {
            name: StoredTensor(entry["dtype"], tuple(entry["shape"]), 8 + length + entry["data_offsets"][0])
            for name, entry in header.items()
        }
        for name, tensor in tensors.items():  # the library only knows the product, which may be 0
            if len(tensor.shape) > _MOST_AXES or max(tensor.shape, default=0) >= 2**31:
                raise ValueError(f"no tensor has the shape of {name}, {list(tensor.shape)}")
        return tensors
    except (SafetensorError, ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}. Copy it again, or use another checkpoint.") from error


def check_largest(largest: float, name: str, origin: str) -> None:
    """Raise `RunError` if a magnitude, the largest of a tensor or NaN, is that of no trained weight."""
    if not math.isfinite(largest):
        raise RunError(f"{origin} is damaged: {name} holds values that are not finite. Use another.")
    if largest > _LARGEST_WEIGHT:
        raise RunError(
            f"{origin} is damaged: {name} holds {largest:g}, and a trained weight is at most {_LARGEST_WEIGHT:,}: "
            "numbers would overflow. Use another checkpoint."
        )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    from safetensors.torch import load_file  # imports torch

    read_header(path)
    try:
        with reading(path):
            if not any("\udc80" <= letter <= "\udcff" for letter in str(path)):
                return load_file(path)
            with TemporaryDirectory() as folder:  # the library opens no name that is not UTF-8
                link = Path(folder, "weights")
                link.symlink_to(path.absolute())
                return load_file(link)
    except SafetensorError as error:
        raise RunError(f"{path} is damaged: {error}. Copy it again, or use another checkpoint.") from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file atomically."""
    from safetensors.torch import save_file  # imports torch

    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    with replacing(path) as draft:
        draft.touch()  # with the permissions of the umask; the library makes a file for its owner alone
        mode = stat.S_IMODE(draft.stat().st_mode)
        try:
            save_file(plain, draft)
        except SafetensorError as error:
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)) from error
        draft.chmod(mode)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with reading(path):
        return sum_of(plain_file(path))


def as_json(value: Mapping[str, Any]) -> bytes:
    """Format a value as indented JSON."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
