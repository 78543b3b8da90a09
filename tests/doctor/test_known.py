"""Every finding of `doctor CONFIG` and `doctor RUN` has its section on the page, and every section its finding."""

from __future__ import annotations

import re
from pathlib import Path

from manyheads.doctor.after.known import KNOWN as AFTER
from manyheads.doctor.before.known import KNOWN as BEFORE
from manyheads.doctor.known import PAGE, Example, shown

ROOT = Path(__file__).parents[2]


def sections() -> dict[str, str]:
    """The text of each section of the page, by its anchor; white space made one blank."""
    text = (ROOT / PAGE).read_text("utf-8")
    anchor = r'^(?:\((?=[\w-]+\)=$)|<a id=")([\w-]+)(?:\)=|"></a>)$'  # a name that another page has is no label
    parts = re.split(anchor, text, flags=re.MULTILINE)[1:]
    return {anchor: " ".join(body.split()) for anchor, body in zip(parts[::2], parts[1::2], strict=True)}


def test_every_finding_has_a_section_that_says_its_severity_its_cause_and_its_cure() -> None:
    found = sections()
    assert list(found) == [known.name for known in (*BEFORE, *AFTER)]
    for known in (*BEFORE, *AFTER):
        section = found[known.name]
        assert f"`{known.name}` ({known.severity})" in section
        assert known.cause in section
        assert known.cure in section


def test_a_finding_names_its_section() -> None:
    for known in (*BEFORE, *AFTER):
        assert known.found("x").page == f"{PAGE}#{known.name}"


def test_long_lines_are_quoted_in_part() -> None:
    assert shown([]) == ""
    assert shown([Example(1_234, "x" * 100)]) == f'; line 1,234: "{"x" * 77}..."'
