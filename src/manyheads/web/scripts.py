"""The files of the browser code, and the scripts that `npm run build` joins from its modules."""

from __future__ import annotations

from functools import cache
from pathlib import Path

WEB = Path(__file__).parent
ENGINE = WEB / "engine" / "engine.wasm"
PAGE = WEB / "page"
EXPLORER = WEB / "explorer"
BUILT = WEB / "built"
MODEL_SCRIPTS = ("worker.js", "module.js", "parity.js")  # for a page, a module, and a comparison in Node.js


@cache
def built_script(name: str) -> str:
    """Return the text of a script of `built`, such as "page.js"."""
    return (BUILT / name).read_text(encoding="utf-8")


def model_script(name: str) -> str:
    """Return a script that computes with a model: the built `model.js`, followed by a script of `MODEL_SCRIPTS`."""
    assert name in MODEL_SCRIPTS
    return built_script("model.js") + (WEB / name).read_text(encoding="utf-8")
