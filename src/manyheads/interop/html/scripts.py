"""The JavaScript of the browser engine: its modules as one script."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

__all__ = ["ENGINE", "JS", "joined_script"]

HTML = Path(__file__).parent
JS = HTML / "js"
ENGINE = HTML / "engine.wasm"
IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=const|let|function|async function|class)", re.MULTILINE)


@cache
def joined_script(entry: str) -> str:
    """Return a module of `js/`, with all modules that it imports before it, as one script without imports.

    All modules share one scope: names at the top level differ between them.

    Args:
        entry: path of the module below `js/`, such as "worker.js".
    """
    texts: dict[Path, str] = {}

    def add(path: Path) -> None:
        if path in texts:
            return
        texts[path] = ""  # modules that import each other
        text = path.read_text(encoding="utf-8")
        for other in IMPORT.findall(text):
            add((path.parent / other).resolve())
        del texts[path]  # behind those that it needs
        texts[path] = EXPORT.sub("", IMPORT.sub("", text))

    add((JS / entry).resolve())
    return '"use strict";\n' + "".join(texts.values())
