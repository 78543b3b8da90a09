"""The English and the Korean book: a switch on each page, and links from one book into the other.

A comment at the end of a Korean page names the English page that it translates. Both books are built into one
folder, the Korean one into `ko/`, so a relative link is the same for files and pages. A table of contents and
an included file are comments, such as `<!-- toctree ... -->`, which the repository does not show.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parent.parent
ORIGIN = re.compile(r"\n<!-- (\S+)\.md in Korean[^>]*-->\n\Z")
DIRECTIVE = re.compile(r"(?ms)^<!-- (toctree|include)\b(.*?)^-->$")
SWITCH = re.compile(r"(?m)^\[(?:한국어|English|Changes)\]\([^)\s]*\.md\)\n")  # for readers of the repository
LINK = re.compile(r"\]\((?P<path>[\w./-]+)\.md(?:#(?P<section>[^)\s]*))?\)")


def counterparts(docs: Path = DOCS) -> dict[str, str]:
    """Return the path of the Korean page of each English one that has one, both below docs/ and without suffix."""
    found = {}
    for path in sorted((docs / "ko").rglob("*.md")):
        origin = ORIGIN.search(path.read_text(encoding="utf-8"))
        found[origin[1] if origin else "index"] = path.relative_to(docs).with_suffix("").as_posix()
    return found


def other_url(page: str, pairs: dict[str, str]) -> str:
    """Return the address of a page in the other language, relative to it; of the other index if there is none."""
    if page.startswith("ko/"):
        target = next((english for english, korean in pairs.items() if korean == page), "index")
    else:
        target = pairs.get(page, "ko/index")
    return posixpath.relpath(f"{target}.html", posixpath.dirname(page) or ".")


def rewritten(text: str, page: str) -> str:
    """Return a page without its switch, with links into the other book as links to what is built from them."""

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found["path"]))
        if target.startswith("..") or target.startswith("ko/") == page.startswith("ko/"):
            return found[0]
        section = found["section"]
        scheme = "other-book-section" if section else "other-book"
        return f"]({scheme}:{found['path']}.html{'#' + section if section else ''})"

    return DIRECTIVE.sub(r"```{\1}\2```", LINK.sub(link, SWITCH.sub("", text)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Change each page when it is read, and tell the template about the other language."""
    korean = app.config.language == "ko"
    prefix = "ko/" if korean else ""
    pairs = counterparts()

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        content[0] = rewritten(content[0], prefix + name)

    def write(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: object) -> None:
        context["other_language_url"] = other_url(prefix + name, pairs)
        context["other_language_code"] = "en" if korean else "ko"
        context["other_language_name"] = "English" if korean else "한국어"
        context["other_language_label"] = "언어" if korean else "Language"

    app.connect("source-read", read)
    app.connect("html-page-context", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
