"""Run the Python of a page of the book, block by block, and compare what it prints with the page.

A ```python block runs in the names of the blocks before it; a ```text block right below holds what it prints, in
which "..." matches any text; `<!-- varies -->` above the block says that the output depends on the machine.
`python -m tools.pages PAGE...` runs whole pages, and with `--write` stores the printed text in them.
"""

from __future__ import annotations

import argparse
import doctest
import io
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import manyheads  # noqa: F401  # before a page imports torch: sets how long OpenMP's threads spin

FENCED = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:(?P<varies><!-- varies -->\n)?```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A piece of code of a page.

    Attributes:
        line: the number of its first line.
        code: the Python code.
        output: the output that the page shows; None if it shows none.
        varies: whether the output depends on the machine.
        printed: the output of the run, once the code has run.
    """

    line: int
    code: str
    output: str | None
    varies: bool = False
    printed: str = ""

    @property
    def matches_page(self) -> bool:
        """Return whether the printed output matches the page."""
        if self.output is None:
            return not self.printed
        if self.varies:
            return bool(self.printed)
        return doctest.OutputChecker().check_output(self.output, self.printed, doctest.ELLIPSIS)


def blocks(text: str) -> list[Block]:
    """Return the code blocks of a page in order."""
    return [
        Block(text[: found.start()].count("\n") + 2, found["code"], found["output"], bool(found["varies"]))
        for found in FENCED.finditer(text)
    ]


def run(page: Path, quick: Mapping[str, str] | None = None) -> Iterator[Block]:
    """Run a page in the current directory, and yield each block with its output.

    Args:
        page: Markdown.
        quick: replacements of pieces of code, which shorten the run.

    Raises:
        AssertionError: a piece of `quick` is not in the page.
    """
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    for piece in quick or {}:
        assert any(piece in block.code for block in found), f"{page} does not hold {piece!r}"
    names = new_names()
    for block in found:
        code = block.code
        for piece, other in (quick or {}).items():
            code = code.replace(piece, other)
        yield replace(executed(replace(block, code=code), page, names), code=block.code)


def new_names() -> dict[str, Any]:
    """Return the namespace that the blocks of a page share: that of a module, which dataclasses need."""
    module = ModuleType("__page__")
    sys.modules["__page__"] = module
    return vars(module)


def executed(block: Block, page: Path, names: dict[str, Any]) -> Block:
    """Run one block in the current directory, and return it with its output."""
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
    return replace(block, printed=printed.getvalue())


def written(text: str, done: list[Block]) -> str:
    """Return the text of a page with the printed output in its output blocks."""
    rest = iter(done)

    def fill(found: re.Match[str]) -> str:
        block = next(rest)
        whole = found[0]
        if found["output"] is None or (block.matches_page and not block.varies):
            return whole
        start = found.start("output") - found.start()
        return whole[:start] + block.printed + whole[found.end("output") - found.start() :]

    return FENCED.sub(fill, text)


def main() -> int:
    """Run whole pages; return 1 if the output of a page differs from its text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    wrong = 0
    for page in (path.resolve() for path in arguments.pages):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            done = []
            for block in run(page):
                done.append(block)
                if not block.matches_page:
                    wrong += 1
                    print(f"{page.name}:{block.line} printed\n{block.printed}", file=sys.stderr)
        if arguments.write:
            page.write_text(written(page.read_text(encoding="utf-8"), done), encoding="utf-8")
        print(f"{page.name}: {len(done)} blocks, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
