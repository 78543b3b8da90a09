"""Write the page "What the doctor found in released libraries" in both languages, from observatory/summary.json.

    python -m tools.observatory           compare the pages with the summary; exit code 1 if one differs
    python -m tools.observatory --write   write them

`benchmarks/observatory.py` measures the summary.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from manyheads.checks.catalogue import CATALOGUE
from transformer_doctor.texts import Language

ROOT = Path(__file__).parent.parent
PAGES: Mapping[Language, Path] = {
    "en": ROOT / "docs" / "reference" / "observatory.md",
    "ko": ROOT / "docs" / "ko" / "observatory.md",
}
TEXTS = Path(__file__).with_suffix(".toml")
SUMMARY = ROOT / "observatory" / "summary.json"
FINDINGS = {"en": "findings.md", "ko": "findings.md"}  # all findings, seen from the page


def page(language: Language, summary: Mapping[str, Any]) -> str:
    """Return the page in a language."""
    text: Mapping[str, str] = tomllib.loads(TEXTS.read_text(encoding="utf-8"))[language]
    releases: Mapping[str, int | str] = summary["releases"]
    measured = [release for release, examined in releases.items() if not isinstance(examined, str)]
    facts = {
        "number": len(measured),
        "first": measured[0],
        "last": measured[-1],
        "releases": ", ".join(f"{release} ({releases[release]})" for release in measured),
        "not installed": "\n".join(f"- {name}: {why}" for name, why in releases.items() if isinstance(why, str)),
    }
    table = "\n".join(rows(language, text, summary["findings"], measured[-1]))
    return text["page"].strip().format(**facts, table=table) + "\n"


def rows(
    language: Language, text: Mapping[str, str], findings: list[Mapping[str, Any]], newest: str
) -> Iterator[str]:
    """Yield a row of the table for all classes with one report, one way of using the cache and equal releases."""

    def key(finding: Mapping[str, Any]) -> tuple[str, str, str, str]:
        return finding["name"], finding["report"], finding["way"], span(finding, text, newest)

    for (name, report, _, releases), group in groupby(sorted(findings, key=key), key):
        members = list(group)
        classes = ", ".join(f"`{finding['class']}`" for finding in members)
        title = CATALOGUE["model"][name].texts[language].title
        evidence = next(finding["evidence"] for finding in members if finding["evidence"])
        if report.startswith("https"):
            report = f"[#{report.rpartition('/')[2]}]({report})"
        else:
            report = f"`observatory/reports/{report}`"
        yield f"| {classes} | {releases} | [{title}]({FINDINGS[language]}#{name}) | {evidence} | {report} |"


def span(finding: Mapping[str, Any], text: Mapping[str, str], newest: str) -> str:
    """Return the measured releases that have a finding, as "from - to"."""
    shown, others = finding["shown"], finding["not shown"]
    order = sorted([*shown, *others], key=lambda release: [int(part) for part in release.split(".")])
    runs = [list(run) for has, run in groupby(order, lambda release: release in shown) if has]
    parts = [run[0] if len(run) == 1 else f"{run[0]} – {run[-1]}" for run in runs]
    if runs[0][0] == order[0]:
        parts[0] = parts[0].replace(order[0], text["or earlier"].format(order[0]), 1)
    return ", ".join(parts) + (f" ({text['newest']})" if runs[-1][-1] == newest else "")


def main(arguments: list[str] | None = None) -> int:
    """Compare or write the pages; return 1 if one differs from the summary."""
    parser = argparse.ArgumentParser(description="Write the page of what was found in released libraries.")
    parser.add_argument("--write", action="store_true", help="write the pages")
    options = parser.parse_args(arguments)
    summary = json.loads(SUMMARY.read_text(encoding="utf-8"))
    different = 0
    for language, path in PAGES.items():
        text = page(language, summary)
        if options.write:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} differs. Run: python -m tools.observatory --write")
            different = 1
    return different


if __name__ == "__main__":
    raise SystemExit(main())
