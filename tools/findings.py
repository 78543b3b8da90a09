"""Write the sections of the doctor's findings into its pages, in English and Korean, from the texts of the package.

`python -m tools.findings --write` writes them. Without `--write`, the tool prints the pages that differ and exits
with 1. Other text of the pages is kept; the section of a new finding follows that of the preceding finding.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from manyheads.checks.catalogue import CATALOGUE
from transformer_doctor.catalogue import KnownFinding
from transformer_doctor.texts import FINDING_TEXTS, LANGUAGES, Language

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS: Mapping[Language, Path] = {"en": DOCS, "ko": DOCS / "ko"}
PAGES: Mapping[str, tuple[str, ...]] = {"doctor.md": ("model",), "doctor-findings.md": ("config", "run")}
WIDTH = 116  # characters of a line of English
LABELS = {"en": ("Museum", "Cause", "Cure"), "ko": ("박물관", "원인", "조치")}
# A section: label, heading, fingerprint of the English section that a Korean one translates, and text. A label that
# another page has too is written as an HTML anchor.
SECTION = re.compile(
    r"""(?msx) ^(?P<label> \((?P<name>[\w-]+)\)= | <a\ id="(?P<id>[\w-]+)"></a>\n )$
    \n[#]{3}\ [^\n]*\n (?P<fingerprint>(?:%\ \w+\n)?)
    `[\w-]+`\ \(.*? (?=\n\n(?:\([\w-]+\)=|<a\ id=|[#]{2}\ ) | \s*\Z)"""
)


def with_findings(page: str, subjects: tuple[str, ...], language: Language) -> str:
    """Return a page of the doctor with the texts of the findings of some subjects."""
    findings = [finding for subject in subjects for finding in CATALOGUE[subject].values()]
    matches = {match["name"] or match["id"]: match for match in SECTION.finditer(page)}
    replacements: dict[str, str] = {}  # name of a section in the page -> its new text
    anchor = ""
    for finding in findings:
        match = matches.get(finding.name)
        anchor = finding.name if match else anchor or next(iter(matches))
        label, fingerprint = (match["label"], match["fingerprint"]) if match else (new_label(finding), "")
        section = f"{label}\n{section_text(finding, fingerprint, language)}"
        replacements[anchor] = f"{replacements[anchor]}\n\n{section}" if anchor in replacements else section
    return SECTION.sub(lambda match: replacements.get(match["name"] or match["id"], match[0]), page)


def new_label(finding: KnownFinding) -> str:
    """Return the label of a new section: an HTML anchor if the page of models has a label of this name."""
    if finding.subject != "model" and finding.name in CATALOGUE["model"]:
        return f'<a id="{finding.name}"></a>\n'
    return f"({finding.name})="


def section_text(finding: KnownFinding, fingerprint: str, language: Language) -> str:
    """Return the heading and the paragraphs of a finding."""
    text, severity = finding.texts[language], FINDING_TEXTS[language]["report"][finding.severity]
    museum, cause, cure = LABELS[language]
    first_line = f"`{finding.name}` ({severity})." + (f" {museum}: {finding.exhibit}." if finding.exhibit else "")
    if text.meaning:
        paragraphs = [f"{first_line} {text.meaning}", f"**{cause}.** {text.cause}", f"**{cure}.** {text.cure}"]
    else:
        paragraphs = [f"{first_line} {text.cause}", f"**{cure}.** {text.cure}"]
    if language == "en":
        paragraphs = [
            textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)
            for paragraph in paragraphs
        ]
    return f"### {text.title}\n{fingerprint}" + "\n\n".join(paragraphs)


def main() -> int:
    """Write the pages, or print the paths of those that differ."""
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
