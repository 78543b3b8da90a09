"""What the observatory commits of its measurements."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from benchmarks import observatory

PUBLISHED = """
[[finding]]
name = "cache-differs"
report = "https://example.org/1"
way = "cut"
words = "was cut"
models."ForCausalLM a" = "AForCausalLM"

[[finding]]
name = "cache-differs"
report = "https://example.org/2"
way = "several tokens at a time"
words = "several tokens at a time"
models."ForCausalLM a" = "AForCausalLM"
"""


def measured(release: str, said: str, **changes: float) -> observatory.Row:
    model, finding = "ForCausalLM a", "cache-differs"
    ways = {way.replace("_", " "): change for way, change in changes.items()}
    return {
        "release": release,
        "examined": [model],
        "findings": [[model, finding, said]] if said else [],
        "changes": [[model, finding, ways]],
    }


def test_two_findings_of_a_name_are_told_apart_by_the_way_of_using_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observatory, "PUBLISHED", tmp_path / "published.toml")
    observatory.PUBLISHED.write_text(PUBLISHED, encoding="utf-8")
    results = [
        measured("5.10.0", "decoded with a cache that was cut, ...", several_tokens_at_a_time=0.0, cut=0.2),
        measured("5.9.0", "decoded with a cache several tokens at a time, ...", several_tokens_at_a_time=0.1),
        measured("5.11.0", "", several_tokens_at_a_time=0.0, cut=0.0),
    ]
    history = functools.reduce(observatory.with_release, results, {"releases": {}, "findings": []})
    assert list(history["releases"]) == ["5.9.0", "5.10.0", "5.11.0"]
    cut, several = history["findings"]
    assert (cut["named"], cut["not named"]) == (["5.10.0"], ["5.9.0", "5.11.0"])
    assert (cut["shown"], cut["not shown"]) == (["5.10.0"], ["5.11.0"])
    assert (several["named"], several["not named"]) == (["5.9.0"], ["5.10.0", "5.11.0"])
    assert (several["shown"], several["not shown"]) == (["5.9.0"], ["5.10.0", "5.11.0"])


def test_a_way_that_is_not_published_is_told_beside_a_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observatory, "PUBLISHED", tmp_path / "published.toml")
    observatory.PUBLISHED.write_text(PUBLISHED, encoding="utf-8")
    assert not [*observatory.unpublished(measured("5.9.0", "was cut", cut=0.2, reordered=0.0))]
    (line,) = observatory.unpublished(measured("5.10.0", "was cut", cut=0.2, reordered=0.1))
    assert line.startswith("5.10.0 ForCausalLM a: cache-differs")


def test_a_release_that_is_measured_again_replaces_its_results_and_no_others() -> None:
    history = json.loads(observatory.SUMMARY.read_text(encoding="utf-8"))
    again = {"release": "5.20.0", "examined": [entry["model"] for entry in history["findings"]]}
    changed = observatory.with_release(history, again)
    for before, after in zip(history["findings"], changed["findings"], strict=True):
        assert {*after["named"]} == {*before["named"]} - {"5.20.0"}
        assert (after["shown"], after["evidence"]) == (before["shown"], before["evidence"])
    assert observatory.with_release(history, {"release": "5.20.0"}) == history
