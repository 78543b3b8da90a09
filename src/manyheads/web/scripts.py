"""The files of the browser code, and the scripts that `npm run build` joins from its modules."""

from __future__ import annotations

from functools import cache
from pathlib import Path

WEB = Path(__file__).parent
ENGINE = WEB / "engine" / "engine.wasm"
PAGE = WEB / "page"
EXPLORER = WEB / "explorer"
BUILT = WEB / "built"


@cache
def built_script(name: str) -> str:
    """Return the text of a script of `built`, such as "worker.js"."""
    return (BUILT / name).read_text(encoding="utf-8")


def parity_script() -> str:
    """Return the script that computes a packed model in Node.js: the worker, and `parity.js` behind it."""
    return built_script("worker.js") + (WEB / "parity.js").read_text(encoding="utf-8")
