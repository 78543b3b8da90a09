"""The JavaScript and WebAssembly of the browser engine in Node.js, with models packed by Python."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tests.web.text.browser import Browser, node

from manyheads.config.schema import Config, ModelConfig
from manyheads.web.pack import PackedModel, pack_model
from manyheads.web.scripts import ENGINE

DRIVER = Path(__file__).with_name("driver.mjs")


class Node(Browser):
    """Call functions of web/engine in a process of Node.js."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        super().__init__(process)
        self.folder = folder

    def load(self, name: str, packed: PackedModel) -> dict[str, int]:
        """Load a model; return the state of the memory."""
        paths = [self.folder / f"{name}.{suffix}" for suffix in ("json", "bin")]
        paths[0].write_text(json.dumps(packed.header, allow_nan=False), encoding="utf-8")
        paths[1].write_bytes(packed.block())
        return self.call("load", name, *map(str, paths))


@contextmanager
def open_node() -> Iterator[Node]:
    """Start Node.js; skip the test if it is missing or too old."""
    command = [
        node(), "--no-warnings", str(DRIVER),
        ENGINE.parent.as_uri(), str(ENGINE),
    ]  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process,
    ):
        yield Node(process, Path(folder))
        assert process.stdin is not None
        process.stdin.close()


def make_run_config(model: ModelConfig, task: str = "translation", **sections: Any) -> Config:
    """Return the configuration of a run with this model."""
    languages = {"source": "en", "target": "de"} if task == "translation" else {"language": "en"}
    lengths = {"max_length": min(128, model.max_positions)}
    data = {"root": ".", **languages, **lengths, **sections.pop("data", {})}
    return Config(task=task, data=data, model=model, **sections)


def pack(model: Any, precision: str = "fp32", task: str = "translation", **sections: Any) -> PackedModel:
    """Return a model as packed for a page."""
    tensors, first = {}, dict[int, str]()
    tied = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        tensors[name] = weight.detach().float().numpy()
        if (own := first.setdefault(id(weight), name)) != name:
            tied[name] = own
    if task == "language-modeling" and model.output.bias is not None:
        tensors["output.bias"] = model.output.bias.float().numpy()
    return pack_model(make_run_config(model.config, task, **sections), tensors, tied, precision)


def array(values: Sequence[Any], *shape: int) -> np.ndarray:
    """Convert a list of the driver to an array."""
    return np.array(values, dtype=np.float64).reshape(shape)
