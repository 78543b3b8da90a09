"""Cases run in processes of their own, with limits, and resume."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from transformer_doctor.cases import Limits, Row, run_cases


def end(name: str) -> list[Row]:
    """Run a case that ends in the way of its name."""
    if name == "dies":
        os._exit(1)
    if name == "hangs":
        time.sleep(600)
    if name == "raises":
        raise ValueError("said")
    return [{"value": len(name)}]


def test_a_case_that_ends_early_has_a_row_and_a_stopped_run_resumes(tmp_path: Path) -> None:
    store = tmp_path / "rows.jsonl"
    first = list(run_cases(["works", "dies", "raises"], end, Limits(60.0), store))
    assert {row["case"]: row.get("failure", row.get("value")) for row in first} == {
        "works": 5,
        "dies": "the process ended without a result",
        "raises": "ValueError: said",
    }
    store.write_text(store.read_text("utf-8") + '{"case": "fresh", "val', encoding="utf-8")  # killed while it wrote
    again = list(run_cases(["works", "dies", "raises", "fresh"], end, Limits(60.0), store))
    assert again[:3] == first
    assert again[3:] == [{"case": "fresh", "value": 5}]
    assert [json.loads(line) for line in store.read_text("utf-8").splitlines()] == again


def test_a_case_that_takes_too_long_is_ended() -> None:
    (row,) = run_cases(["hangs"], end, Limits(0.1))
    assert "not done after" in row["failure"]
