"""How much of the book is there in Korean, and which of it is older than the English.

A Korean page says in its first line which page it is of (`% of tutorial/attention.md`), and below each heading
the fingerprint of the English section that it says (`% 1a2b3c4d`). `python -m tests.docs.korean` prints how it
stands; `--stamp PAGE` writes the fingerprints anew after somebody has compared; `--code PAGE` copies the blocks of
code, commands and outputs from the English page, all but those that differ in their comments alone.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Standing", "blocks", "sections", "standing", "standings", "with_code"]

DOCS = Path(__file__).parent.parent.parent / "docs"
KOREAN = DOCS / "ko"
ORIGIN = re.compile(r"\A% of (\S+)\n")
STAMP = re.compile(r"(?m)^(#{1,3} .*)\n(?:% ([0-9a-f]{8})\n)?")
CODE = re.compile(r"(?ms)^```.*?^```$")
BLOCK = re.compile(r"(?ms)^(?P<indent> *)```(?P<kind>[^\n]*)\n(?P<body>.*?)^ *```$")
# Comments, and the language of pictures: what a block of a Korean page may have of its own.
COMMENT = re.compile(r"""(?m)(?:^|(?<=\s))(?:#|//) .*$|[ \t]+$| --lang ko(?= -o |$)|, language="ko\"""")


@dataclass(frozen=True)
class Standing:
    """How a page stands.

    Attributes:
        name: the English page, below docs/.
        words: of it, code left out.
        sections: of it.
        translated: how many of them there are in Korean.
        stale: headings of those whose English has changed since.
    """

    name: str
    words: int
    sections: int
    translated: int
    stale: tuple[str, ...]


def sections(text: str) -> list[tuple[str, str]]:
    """Heading and fingerprint of each section of an English page; its code counts only as a place."""
    prose = CODE.sub("```", text)
    parts = re.split(r"(?m)^(#{1,3} .*)$", prose)[1:]
    return [
        (heading, hashlib.sha256(f"{heading}{' '.join(body.split())}".encode()).hexdigest()[:8])
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def origin(korean: str) -> str:
    """The English page that a Korean one says it is of; empty for one of its own."""
    found = ORIGIN.match(korean)
    return found[1] if found else ""


def standing(name: str, english: str, korean: str | None) -> Standing:
    """Compare a page with its Korean one, section by section in their order."""
    mine = sections(english)
    stamps = [found[2] for found in STAMP.finditer(CODE.sub("```", korean or ""))]
    pairs = list(zip(mine, stamps, strict=False))
    stale = tuple(heading for (heading, now), then in pairs if now != then)
    return Standing(name, len(CODE.sub("", english).split()), len(mine), len(pairs), stale)


def standings() -> Iterator[Standing]:
    """Every page of the book but the generated ones."""
    translations = {origin(text): text for path in KOREAN.rglob("*.md") if (text := path.read_text("utf-8"))}
    for path in sorted(DOCS.rglob("*.md")):
        name = str(path.relative_to(DOCS))
        if not name.startswith(("ko/", "reference/")) and name != "changelog.md":
            yield standing(name, path.read_text("utf-8"), translations.get(name))


def stamped(english: str, korean: str) -> str:
    """A Korean page with the fingerprints of the English page as it is now."""
    now = iter(sections(english))

    def stamp(found: re.Match[str]) -> str:
        _, mark = next(now, ("", ""))
        return f"{found[1]}\n% {mark}\n" if mark else found[0]

    parts = re.split(r"(?ms)(^```.*?^```$)", korean)
    return "".join(part if place % 2 else STAMP.sub(stamp, part) for place, part in enumerate(parts))


def blocks(text: str) -> list[tuple[str, str]]:
    """Kind and content of each block of code, commands or output of a page; its comments are left out."""
    return [(found["kind"], COMMENT.sub("", found["body"])) for found in BLOCK.finditer(text) if shown(found)]


def shown(found: re.Match[str]) -> bool:
    """Whether a fence holds code, commands or output, and not a directive such as a table of contents."""
    return not found["kind"].startswith("{")


def with_code(english: str, korean: str) -> str:
    """A Korean page with the blocks of the English one; a block that differs in comments alone keeps its own.

    Raises:
        ValueError: the pages differ in the number of their blocks.
    """
    theirs = list(filter(shown, BLOCK.finditer(english)))
    mine = list(filter(shown, BLOCK.finditer(korean)))
    if len(theirs) != len(mine):
        raise ValueError(f"{len(mine)} blocks in Korean, {len(theirs)} in English")
    following = iter(theirs)

    def copy(found: re.Match[str]) -> str:
        if not shown(found):
            return found[0]
        block = next(following)
        same = COMMENT.sub("", block["body"]) == COMMENT.sub("", found["body"])
        return f"{found['indent']}```{block['kind']}\n{(found if same else block)['body']}{found['indent']}```"

    return BLOCK.sub(copy, korean)


def main() -> None:
    """Print how the pages stand, or change one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stamp", type=Path, nargs="+", default=[], metavar="PAGE")
    parser.add_argument("--code", type=Path, nargs="+", default=[], metavar="PAGE")
    arguments = parser.parse_args()
    for change, paths in ((with_code, arguments.code), (stamped, arguments.stamp)):
        for path in paths:
            korean = path.read_text("utf-8")
            try:
                path.write_text(change((DOCS / origin(korean)).read_text("utf-8"), korean), encoding="utf-8")
            except ValueError as error:
                print(f"{path}: left as it is: {error}")
    found = list(standings())
    for page in found:
        if page.translated:
            print(f"{page.name}: {page.translated} of {page.sections} sections in Korean, {len(page.stale)} stale")
            for heading in page.stale:
                print(f"    stale: {heading}")
    whole = sum(page.words for page in found)
    there = sum(page.words * page.translated / page.sections for page in found if page.sections)
    old = sum(page.words * len(page.stale) / page.sections for page in found if page.sections)
    print(
        f"{100 * there / whole:.0f} % of the words of the book are there in Korean, {100 * old / whole:.0f} % stale"
    )


if __name__ == "__main__":
    main()
