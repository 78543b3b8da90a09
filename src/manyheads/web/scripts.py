"""The files of the browser code, its modules joined to one script, and scripts without comments."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

WEB = Path(__file__).parent
ENGINE = WEB / "engine" / "engine.wasm"
PAGE = WEB / "page"
EXPLORER = WEB / "explorer"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";\n', re.MULTILINE)
_COMMENT_LINES = re.compile(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?:const|let|async function|function|class) (\w+)", re.MULTILINE)


@cache
def joined_script(entry: str) -> str:
    """Return a module of `web/`, with all modules that it imports before it, as one script without imports.

    Every module but the entry is a function that is called once and returns what it exports. If the entry exports
    something, the script is a module.

    Args:
        entry: path of the module below `web/`, such as "worker.js".

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

    add((WEB / entry).resolve(), whole=True)
    return '"use strict";\n' + "".join(texts)


def compact_script(text: str) -> str:
    """Return a script without indentation, comment lines, types and needless blanks; line numbers stay the same.

    Blanks beside signs are removed in lines without a quote or slash only, so that no string and no regular
    expression changes.
    """
    text = _COMMENT_LINES.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    text = re.sub(r"(?m)^[ \t]+|/\*\* @type .*?\*/ ?", "", text)
    return re.sub(r"(?m)^[^\"'`/\n]+$", lambda line: re.sub(r" ?([=,{}()?:;&|<>*]) ?", r"\1", line[0]), text)
