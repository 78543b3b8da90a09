"""Write the sections of the doctor's findings into its pages, in English and Korean, from the texts of the package.

`python -m tools.findings --write` writes them; without it, pages that differ are named, and the exit code is 1.
What stands between the sections is kept; the section of a new finding follows that of the finding before it.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from manyheads.doctor.catalogue import CATALOGUE, KnownFinding, Subject
from manyheads.doctor.texts import FINDING_TEXTS, LANGUAGES, Language

__all__ = ["PAGES", "with_findings"]

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS: Mapping[Language, Path] = {"en": DOCS, "ko": DOCS / "ko"}
PAGES: Mapping[str, tuple[Subject, ...]] = {"doctor.md": ("model",), "doctor-findings.md": ("config", "run")}
WIDTH = 116  # characters of a line of English
LABELS = {"en": ("Museum", "Cause", "Cure"), "ko": ("박물관", "원인", "조치")}
# Label, heading, fingerprint of the English section that a Korean one translates, and text of a section. A label
# that stands on another page too is an anchor of HTML.
SECTION = re.compile(
    r"""(?msx) ^(?P<label> \((?P<name>[\w-]+)\)= | <a\ id="(?P<id>[\w-]+)"></a>\n )$
    \n[#]{3}\ [^\n]*\n (?P<stamp>(?:%\ \w+\n)?) `[\w-]+`\ \(.*? (?=\n\n(?:\([\w-]+\)=|<a\ id=|[#]{2}\ ) | \s*\Z)"""
)


def with_findings(page: str, subjects: tuple[Subject, ...], language: Language) -> str:
    """Return a page of the doctor with the texts of the findings of some subjects."""
    known = [finding for subject in subjects for finding in CATALOGUE[subject].values()]
    found = {match["name"] or match["id"]: match for match in SECTION.finditer(page)}
    following: dict[str, str] = {}  # sections by the name of the section that they stand in the place of
    place = ""
    for finding in known:
        match = found.get(finding.name)
        place = finding.name if match else place or next(iter(found))
        label, stamp = (match["label"], match["stamp"]) if match else (new_label(finding), "")
        section = f"{label}\n{section_text(finding, stamp, language)}"
        following[place] = f"{following[place]}\n\n{section}" if place in following else section
    return SECTION.sub(lambda match: following.get(match["name"] or match["id"], match[0]), page)


def new_label(known: KnownFinding) -> str:
    """Return the label of a new section: an anchor of HTML where the page of models has a label of this name."""
    if known.subject != "model" and known.name in CATALOGUE["model"]:
        return f'<a id="{known.name}"></a>\n'
    return f"({known.name})="


def section_text(known: KnownFinding, stamp: str, language: Language) -> str:
    """Return the heading and the paragraphs of a finding."""
    text, severity = known.texts[language], FINDING_TEXTS[language]["report"][known.severity]
    museum, cause, cure = LABELS[language]
    head = f"`{known.name}` ({severity})." + (f" {museum}: {known.exhibit}." if known.exhibit else "")
    if text.meaning:
        paragraphs = [f"{head} {text.meaning}", f"**{cause}.** {text.cause}", f"**{cure}.** {text.cure}"]
    else:
        paragraphs = [f"{head} {text.cause}", f"**{cure}.** {text.cure}"]
    if language == "en":
        paragraphs = [
            textwrap.fill(each, WIDTH, break_long_words=False, break_on_hyphens=False) for each in paragraphs
        ]
    return f"### {text.title}\n{stamp}" + "\n\n".join(paragraphs)


def main() -> int:
    """Write the pages, or name those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the pages")
    write = parser.parse_args().write
    differing = []
    for language in LANGUAGES:
        for name, subjects in PAGES.items():
            path = FOLDERS[language] / name
            page = path.read_text("utf-8")
            if (new := with_findings(page, subjects, language)) != page:
                differing.append(path)
                if write:
                    path.write_text(new, encoding="utf-8")
    for path in differing:
        print(f"{path}: {'written' if write else 'differs from the texts of the doctor: run with --write'}")
    return 1 if differing and not write else 0


if __name__ == "__main__":
    sys.exit(main())
