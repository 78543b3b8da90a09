"""Compare a model that is packed for a page with the original model.

The JavaScript and the WebAssembly of the page run in Node.js, if it is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from manyheads.errors import ParityError
from manyheads.inference.parity import Parity, Reference, compare
from manyheads.web.scripts import model_script

_OLDEST_NODE = 18
_SECONDS = 600  # timeout of a comparison


@cache
def _find_node() -> str | None:
    """Return the path of Node.js, or None if there is none that is new enough."""
    path = shutil.which("node")
    if path is None:
        return None
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.match(r"v(\d+)", output)
    return path if version and int(version[1]) >= _OLDEST_NODE else None


def compare_packed(head: str, tensors: bytes, expected: Reference, numbers: str, *, decodes: bool) -> Parity | None:
    """Compare a packed model with the run, both computed on the same samples; None without Node.js.

    Args:
        head: JSON text with the engine, "wasm", and the description of the model, "header".
        tensors: the block of tensors.
        expected: results of the run; the rows of its samples are sources, or ids with their marks.
        numbers: number format of the matrices, "float32" or "int8".
        decodes: whether the model writes a target for a source.
    """
    rows = zip(expected.samples.rows, expected.outputs, expected.limits, strict=True)
    requests: list[dict[str, Any]] = [
        {"source": row, "target": output, "limit": limit, "prefix": expected.prefix} if decodes else {"ids": row}
        for row, output, limit in rows
    ]
    answers = _compute_packed(head, tensors, requests)
    if answers is None:
        return None
    scores, outputs = ([answer[part] for answer in answers] for part in ("scores", "output"))
    return compare(expected, scores, outputs, numbers, "the exported model")


def translate_packed(head: str, tensors: bytes, texts: Sequence[str], model: str) -> list[str] | None:
    """Return the greedy translations of lines by a page; None without Node.js. See `compare_packed`.

    `model` is the name of a direction on the page.
    """
    return _compute_packed(head, tensors, [{"text": text, "model": model} for text in texts])


def _compute_packed(head: str, tensors: bytes, requests: Sequence[dict[str, Any]]) -> list[Any] | None:
    """Return the answers of parity.js to requests; None without Node.js.

    Raises:
        ParityError: the engine fails.
    """
    node = _find_node()
    if node is None:
        return None
    with TemporaryDirectory() as name:
        paths = [Path(name) / part for part in ("head.json", "tensors", "requests.json")]
        paths[0].write_text(head, encoding="utf-8")
        paths[1].write_bytes(tensors)
        paths[2].write_text(json.dumps(requests), encoding="utf-8")
        command = [node, "-", *map(str, paths)]
        script = model_script("parity.js").encode()
        try:
            done = subprocess.run(command, input=script, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise ParityError(f"Node.js did not compute the model within {_SECONDS} seconds.") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        raise ParityError(f"the model could not be computed in Node.js, and was not kept: {reason}")
    answers: list[Any] = json.loads(done.stdout)
    return answers
