"""Write a page for each package from its docstrings, and the schema for editors, each time the book is built.

`tools/reference.py` writes the other pages of the reference, which are committed.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from tools.docstrings import module_page, module_tree, paragraphs

import bitext
import manyheads
from manyheads.config.load import json_schema

PACKAGE = Path(manyheads.__file__).parent
BITEXT = Path(bitext.__file__).parent
HIDDEN = {"cli", "museum"}  # programs to run or to read, not to call
BANNER = ["<!-- Written by docs/_ext/reference.py; edit the docstrings instead. -->", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect("builder-inited", lambda app: write_all(Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_all(docs: Path) -> None:
    """Write every generated page, and the schema for editors beside the book."""
    folder = docs / "reference" / "generated"
    pages = package_pages()
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.stem for path in folder.glob("*.md")} - set(pages):
        (folder / f"{stale}.md").unlink()
    for name, lines in pages.items():
        write_if_changed(folder / f"{name}.md", "\n".join([*BANNER, *lines]) + "\n")
    generated = docs / "_generated"
    shutil.rmtree(generated, ignore_errors=True)
    generated.mkdir()
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (generated / "manyheads.schema.json").write_text(schema, encoding="utf-8")


def write_if_changed(path: Path, text: str) -> None:
    """Leave a page alone that has not changed, so that it is not built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def package_pages() -> dict[str, list[str]]:
    """Return a page for each package, and one for the errors."""
    packages = sorted(path.parent for path in PACKAGE.glob("*/__init__.py") if path.parent.name not in HIDDEN)
    return {
        **{f"package-{package.name}": list(package_page(package)) for package in packages},
        "package-errors": [
            "# errors",
            "",
            *module_page("manyheads.errors", module_tree(PACKAGE / "errors.py")),
            *module_page("bitext.errors", module_tree(BITEXT / "errors.py")),
        ],
    }


def package_page(package: Path) -> Iterator[str]:
    """Yield the modules of a package, those of its inner packages too."""
    docstring = ast.get_docstring(module_tree(package / "__init__.py")) or ""
    yield from (f"# {package.name}", "", *paragraphs(docstring))
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        if path.stem != "__init__" and not HIDDEN & set(inside.parts):
            yield from module_page(".".join(["manyheads", *inside.with_suffix("").parts]), module_tree(path))
