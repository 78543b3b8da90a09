"""How much of the documentation is translated into Korean, and which translations are older than the English.

A comment at the end of a Korean page names its English page and, for each section, the fingerprint of the English
text that was translated: `<!-- tutorial/attention.md in Korean: 1a2b3c4d 5e6f7a8b -->`.

`python -m tools.korean` prints the status; `--stamp PAGE` updates the fingerprints after you have compared a
page; `--code PAGE` copies the blocks of code, commands and outputs from the English page, except those that differ
only in their comments.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
KOREAN = DOCS / "ko"
ORIGIN = re.compile(r"\n<!-- (\S+) in Korean:?([0-9a-f\s]*)-->\n\Z")
CODE = re.compile(r"(?ms)^```.*?^```$")
BLOCK = re.compile(r"(?ms)^(?P<indent> *)```(?P<kind>[^\n]*)\n(?P<body>.*?)^ *```$")
# Comments, and the language of pictures, in which a block of a Korean page may differ.
COMMENT = re.compile(r"""(?m)(?:^|(?<=\s))(?:#|//) .*$|[ \t]+$| --lang ko(?= -o |$)|, language="ko\"""")


@dataclass(frozen=True)
class TranslationStatus:
    """The status of the Korean translation of a page.

    Attributes:
        name: the English page, below docs/.
        words: the number of its words without code.
        sections: the number of its sections.
        translated: the number of sections that exist in Korean.
        stale: the headings of translated sections whose English has changed since.
    """

    name: str
    words: int
    sections: int
    translated: int
    stale: tuple[str, ...]


def sections(text: str) -> list[tuple[str, str]]:
    """Return heading and fingerprint of each section of an English page; only the positions of code count."""
    prose = CODE.sub("```", text)
    parts = re.split(r"(?m)^(#{1,3} .*)$", prose)[1:]
    return [
        (heading, hashlib.sha256(f"{heading}{' '.join(body.split())}".encode()).hexdigest()[:8])
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def origin(korean: str) -> str:
    """Return the English page that a Korean page names; an empty string if it names none."""
    found = ORIGIN.search(korean)
    return found[1] if found else ""


def translation_status(name: str, english: str, korean: str | None) -> TranslationStatus:
    """Compare a page with its Korean translation, section by section in order."""
    mine = sections(english)
    compared = ORIGIN.search(korean or "")
    stamps = compared[2].split() if compared else []
    translated = min(len(mine), len(sections(korean or "")))
    stale = tuple(
        heading for number, (heading, now) in enumerate(mine[:translated]) if stamps[number : number + 1] != [now]
    )
    return TranslationStatus(name, len(CODE.sub("", english).split()), len(mine), translated, stale)


def translation_statuses() -> Iterator[TranslationStatus]:
    """Yield the status of every page except the generated ones."""
    translations = {origin(text): text for path in KOREAN.rglob("*.md") if (text := path.read_text("utf-8"))}
    for path in sorted(DOCS.rglob("*.md")):
        name = str(path.relative_to(DOCS))
        if not name.startswith(("ko/", "reference/")):
            yield translation_status(name, path.read_text("utf-8"), translations.get(name))


def stamped(english: str, korean: str) -> str:
    """Return a Korean page with the fingerprints of the current English page."""
    stamps = [stamp for _, stamp in sections(english)][: len(sections(korean))]
    comment = f"<!-- {origin(korean)} in Korean: {' '.join(stamps)} -->"
    lines = textwrap.fill(comment, 120, break_long_words=False, break_on_hyphens=False)
    return ORIGIN.sub(lambda _: f"\n{lines}\n", korean)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return kind and content of each block of code, commands or output of a page, without comments."""
    return [(found["kind"], COMMENT.sub("", found["body"])) for found in BLOCK.finditer(text) if is_content(found)]


def is_content(found: re.Match[str]) -> bool:
    """Return whether a fence holds code, commands or output, and not a directive such as a table of contents."""
    return not found["kind"].startswith("{")


def with_code(english: str, korean: str) -> str:
    """Return a Korean page with the blocks of the English page; a block that differs only in comments is kept.

    Raises:
        ValueError: the pages differ in the number of their blocks.
    """
    theirs = list(filter(is_content, BLOCK.finditer(english)))
    mine = list(filter(is_content, BLOCK.finditer(korean)))
    if len(theirs) != len(mine):
        raise ValueError(f"{len(mine)} blocks in Korean, {len(theirs)} in English")
    following = iter(theirs)

    def copy(found: re.Match[str]) -> str:
        if not is_content(found):
            return found[0]
        block = next(following)
        same = COMMENT.sub("", block["body"]) == COMMENT.sub("", found["body"])
        return f"{found['indent']}```{block['kind']}\n{(found if same else block)['body']}{found['indent']}```"

    return BLOCK.sub(copy, korean)


def main() -> None:
    """Print the status of the pages, or update some."""
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
                print(f"{path}: not changed: {error}")
    found = list(translation_statuses())
    for page in found:
        if page.translated:
            print(f"{page.name}: {page.translated} of {page.sections} sections in Korean, {len(page.stale)} stale")
            for heading in page.stale:
                print(f"    stale: {heading}")
    whole = sum(page.words for page in found)
    translated = sum(page.words * page.translated / page.sections for page in found if page.sections)
    old = sum(page.words * len(page.stale) / page.sections for page in found if page.sections)
    print(
        f"{100 * translated / whole:.0f} % of the words are translated into Korean, {100 * old / whole:.0f} % stale"
    )


if __name__ == "__main__":
    main()
