"""What the observatory commits of its measurements."""

from __future__ import annotations

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
    joined = observatory.joined(results)
    assert list(joined["releases"]) == ["5.9.0", "5.10.0", "5.11.0"]
    cut, several = joined["findings"]
    assert (cut["named"], cut["not named"]) == (["5.10.0"], ["5.9.0", "5.11.0"])
    assert (cut["shown"], cut["not shown"]) == (["5.10.0"], ["5.11.0"])
    assert (several["named"], several["not named"]) == (["5.9.0"], ["5.10.0", "5.11.0"])
    assert (several["shown"], several["not shown"]) == (["5.9.0"], ["5.10.0", "5.11.0"])
