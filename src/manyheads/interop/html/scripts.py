"""The JavaScript of the browser engine: its modules as one script."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_HTML = Path(__file__).parent
JS = _HTML / "js"
ENGINE = _HTML / "engine.wasm"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:const|let|async function|function|class) (\w+)", re.MULTILINE)


@cache
def joined_script(entry: str) -> str:
    """Return a module of `js/`, with all modules that it imports before it, as one script without imports.

    Every module but the entry is a function that is called once and returns what it exports. If the entry exports
    something, the script is a module.

    Args:
        entry: path of the module below `js/`, such as "worker.js".

    Raises:
        ValueError: modules import each other.
    """
    names: dict[Path, str] = {}
    texts: list[str] = []

    def add(path: Path, *, whole: bool = False) -> str:
        if path in names:
            if not names[path]:
                raise ValueError(f"{path.name} is imported by a module that it needs itself")
            return names[path]
        names[path] = ""
        text = path.read_text(encoding="utf-8")
        imports = [
            (binding, add((path.parent / imported).resolve())) for binding, imported in _IMPORT.findall(text)
        ]
        body = _IMPORT.sub("", text)
        exported = _EXPORT.findall(body)
        head = "".join(f"const {binding} = {name};\n" for binding, name in imports)
        names[path] = f"module_{path.stem}_{len(names)}"
        if whole:
            texts.append(head + body)
        else:
            body = re.sub(r"^export ", "", body, flags=re.MULTILINE)
            texts.append(
                f"const {names[path]} = (() => {{\n{head}{body}return {{ {', '.join(exported)} }};\n}})();\n"
            )
        return names[path]

    add((JS / entry).resolve(), whole=True)
    return '"use strict";\n' + "".join(texts)
