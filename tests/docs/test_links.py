"""The repository shows the documents as the book does: plain Markdown, and links that lead to a heading or a file.

Links to other hosts are not checked.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "README.ko.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "design").glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts),
]
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?\)")
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,4} (.+)$", re.MULTILINE)
# What MyST alone understands: directives and their options, targets, comments, lists of definitions and roles.
MYST = re.compile(r"^:::|^:\w+:|^\([\w.-]+\)=$|^% |^: |\{[\w:]+\}`|^\{", re.MULTILINE)


@cache
def prose(path: Path) -> str:
    """Return a document without its code."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """Return the anchor of a heading, in the form of GitHub and MyST."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
    kept = (
        letter for letter in plain.strip().lower() if letter in " -_" or unicodedata.category(letter)[0] in "LN"
    )
    return "".join(kept).replace(" ", "-")


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a document: headings, repeated ones numbered."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(path)):
        name, number = slug(heading), 0
        while name in found:
            number += 1
            name = f"{slug(heading)}-{number}"
        found.add(name)
    return frozenset(found)


def broken(document: Path, text: str) -> list[str]:
    """Return the broken links of a text."""
    found = []
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        exists = target.exists()
        if exists and anchor and target.suffix == ".md":
            exists = anchor in anchors(target)
        if not exists:
            found.append(link)
    return found


def test_no_link_of_a_document_is_broken() -> None:
    found = {document.relative_to(ROOT).as_posix(): broken(document, prose(document)) for document in DOCUMENTS}
    assert {name: links for name, links in found.items() if links} == {}


def remains(document: str) -> list[str]:
    """Return what MyST alone understands in what a reader of the rendered document sees."""
    found = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(document):
        shown = {"text": "{}", "softbreak": "\n", "code_inline": "`code`"}
        visible = "".join(shown.get(part.type, "").format(part.content) for part in token.children or ())
        found += [match[0] for match in MYST.finditer(token.info if token.type == "fence" else visible)]
    return found


def test_the_repository_shows_each_document_without_remains_of_myst() -> None:
    found = {document.relative_to(ROOT).as_posix(): remains(document.read_text("utf-8")) for document in DOCUMENTS}
    assert {name: parts for name, parts in found.items() if parts} == {}
