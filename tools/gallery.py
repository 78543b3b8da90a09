"""Draw the pictures of the gallery with the commands that stand on its page.

    python -m tools.gallery FOLDER [NAME.svg ...]

FOLDER holds the runs that docs/gallery.md names, trained as it says. Each command of the page that ends in
`-o NAME.svg` is run there; the pictures go to docs/figures/gallery, all of them or those that are named.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
from pathlib import Path

from manyheads.cli.main import run

__all__ = ["FIGURES", "MAX_BYTES", "PAGE", "drawing_commands", "main"]

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "gallery.md"
FIGURES = DOCS / "figures" / "gallery"
MAX_BYTES = 60_000  # of a picture
FENCE = re.compile(r"(?ms)^```bash\n(.*?)^```$")


def drawing_commands(text: str) -> dict[str, list[str]]:
    """Return the commands of a page that write a picture: name of its file -> words of the command."""
    lines = [line for block in FENCE.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("manyheads ")]
    return {words[words.index("-o") + 1]: words for words in commands if "-o" in words}


def main(arguments: list[str] | None = None) -> int:
    """Run the commands of the page; return 1 if one failed or a picture is too large."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/gallery.md.")
    parser.add_argument("folder", type=Path, help="folder that holds runs/")
    parser.add_argument("names", nargs="*", help="pictures to draw (default: all)")
    given = parser.parse_args(arguments)
    FIGURES.mkdir(exist_ok=True)
    commands = drawing_commands(PAGE.read_text(encoding="utf-8"))
    failed = 0
    with contextlib.chdir(given.folder):
        for name in given.names or commands:
            path = FIGURES / name
            code = run([str(path) if word == name else word for word in commands[name][1:]])
            size = path.stat().st_size if code == 0 else 0
            print(f"{name}: {size:,} bytes" if code == 0 else f"{name}: exit code {code}")
            failed |= code != 0 or size > MAX_BYTES
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
