"""Every finding has its section on its page, and every section its finding, with the same texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manyheads.doctor.catalogue import CATALOGUE, KnownFinding, config_finding, machine_finding

ROOT = Path(__file__).parents[2]
FINDINGS_PAGE, MODEL_PAGE = "docs/doctor-findings.md", "docs/doctor.md"
MODEL = [*CATALOGUE["model"].values()]
CONFIG_AND_RUN = [*CATALOGUE["config"].values(), *CATALOGUE["run"].values()]
ALL = [known for findings in CATALOGUE.values() for known in findings.values()]


def sections(page: str) -> dict[str, str]:
    """The text of each section of a page, by its anchor; white space made one blank."""
    text = (ROOT / page).read_text("utf-8")
    anchor = r'^(?:\((?=[\w-]+\)=$)|<a id=")([\w-]+)(?:\)=|"></a>)$'  # a name that another page has is no label
    parts = re.split(anchor, text, flags=re.MULTILINE)[1:]
    return {anchor: " ".join(body.split()) for anchor, body in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize(("page", "known"), [(MODEL_PAGE, MODEL), (FINDINGS_PAGE, CONFIG_AND_RUN)])
def test_every_finding_has_a_section_that_says_its_title_its_severity_its_cause_and_its_cure(
    page: str, known: list[KnownFinding]
) -> None:
    found = sections(page)
    assert [name for name in found if name != "the-machine"] == [one.name for one in known]
    for one in known:
        section, text = found[one.name], one.texts["en"]
        assert f"### {text.title} `{one.name}` ({one.severity})" in section
        assert text.cause in section
        assert text.cure in section


def test_a_finding_names_its_section() -> None:
    assert config_finding("memory", "x").page == f"{FINDINGS_PAGE}#memory"
    assert CATALOGUE["model"]["round-trip"].page == f"{MODEL_PAGE}#round-trip"
    assert machine_finding("little-disk", "x").page == f"{MODEL_PAGE}#the-machine"


def test_every_finding_is_told_in_korean_too() -> None:
    """Each text has Hangul in it, but a cure that is one line to type."""
    for known in ALL:
        english, korean = known.texts["en"], known.texts["ko"]
        for name, text in vars(korean).items():
            hangul = any("가" <= letter <= "힣" for letter in text)
            assert hangul or (known.name, name) == ("too-many-threads", "cure"), (known.name, name)
        assert not any("가" <= letter <= "힣" for text in vars(english).values() for letter in text)


def test_names_of_settings_and_verbs_are_the_same_in_both_languages() -> None:
    """A setting that the Korean text names, and the English does not, would be a mistake, and the reverse."""
    named = re.compile(r"(?:data|tokenizer|model|training|search)\.[a-z_]+|`[^`]+`")
    for known in ALL:
        for part in ("cause", "cure"):
            english, korean = (named.findall(vars(known.texts[language])[part]) for language in ("en", "ko"))
            assert sorted(english) == sorted(korean), (known.name, part)


def test_a_placeholder_is_filled_in_in_both_languages() -> None:
    finding = machine_finding("too-many-threads", "8 threads", processors=2)
    assert finding.cure == finding.translate("ko").cure == "OMP_NUM_THREADS=2"
