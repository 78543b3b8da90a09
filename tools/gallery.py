"""Draw the pictures of the gallery with the commands on its pages.

    python -m tools.gallery FOLDER [NAME.svg ...]

FOLDER holds the runs that docs/gallery.md names, trained as that page says. Each command of the English and of the
Korean page that ends in `-o NAME.svg` is run there; the pictures go to docs/figures/gallery and
docs/figures/gallery/ko, all of them or those that are named.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
from pathlib import Path

from manyheads.cli.main import run

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "figures" / "gallery"
PAGES = {".": DOCS / "gallery.md", "ko": DOCS / "ko" / "gallery.md"}  # folder of the pictures below FIGURES -> page
MAX_BYTES = 60_000  # maximum size of a picture
FENCE = re.compile(r"(?ms)^```bash\n(.*?)^```$")


def drawing_commands(text: str) -> dict[str, list[str]]:
    """Return the commands of a page that write a picture: file name -> words of the command."""
    lines = [line for block in FENCE.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("manyheads ")]
    return {words[words.index("-o") + 1]: words for words in commands if "-o" in words}


def draw(name: str, words: list[str], path: Path) -> bool:
    """Run the command of a picture, print its size, and return whether it was drawn and is small enough."""
    path.parent.mkdir(exist_ok=True)
    code = run([str(path) if word == name else word for word in words[1:]])
    size = path.stat().st_size if code == 0 else 0
    shown = path.relative_to(FIGURES)
    print(f"{shown}: {size:,} bytes" if code == 0 else f"{shown}: exit code {code}")
    return code == 0 and size <= MAX_BYTES


def main(arguments: list[str] | None = None) -> int:
    """Run the commands of the pages; return 1 if one failed or a picture is too large."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/gallery.md and its Korean page.")
    parser.add_argument("folder", type=Path, help="folder that holds runs/")
    parser.add_argument("names", nargs="*", help="pictures to draw (default: all)")
    options = parser.parse_args(arguments)
    FIGURES.mkdir(exist_ok=True)
    drawn = []
    with contextlib.chdir(options.folder):
        for folder, page in PAGES.items():
            commands = drawing_commands(page.read_text(encoding="utf-8"))
            drawn += [draw(name, commands[name], FIGURES / folder / name) for name in options.names or commands]
    return int(not all(drawn))


if __name__ == "__main__":
    raise SystemExit(main())
