"""The report counts removed pairs by reason, short pairs separately; the HTML page escapes their text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from bitext.cleaning.clean import Judgement
from bitext.cleaning.report import _EXAMPLES, MEANINGS, CleanReport, chosen_examples, page_of, report_of
from bitext.cleaning.rules import REASONS


def make_report() -> tuple[Judgement, CleanReport]:
    reasons = np.array([0] * 90 + [REASONS.index("copy")] * 60 + [REASONS.index("lexical")] * 3, np.uint8)
    words = np.full((153, 2), 7, np.uint8)
    words[::3, 1] = 2
    judgement = Judgement(reasons, words, np.full((153, 4), np.nan, np.float32), {"lexical": 0.5})
    return judgement, report_of(judgement, Path("out"), ("train.de.gz", "train.en.gz"), ("de", "en"), "key")


def test_removed_pairs_are_counted_by_reason_and_short_pairs_separately() -> None:
    _, report = make_report()
    assert (report.read, report.kept, report.short_read, report.short_kept) == (153, 90, 51, 30)
    assert report.removed == {"copy": {"pairs": 60, "short": 20}, "lexical": {"pairs": 3, "short": 1}}
    text = "\n".join(report.lines())
    assert "153 pairs read, 90 kept (58.8 %)" in text
    assert "under four words: 51 read, 30 kept (58.8 %)" in text


def test_a_report_survives_json() -> None:
    _, report = make_report()
    assert CleanReport.from_json(json.loads(json.dumps(report.to_json())), Path("out")) == report


def test_examples_are_spread_over_the_pairs_of_each_reason() -> None:
    judgement, _ = make_report()
    chosen = chosen_examples(judgement)
    assert {90, 149, 150, 151, 152} <= chosen
    assert len(chosen) == _EXAMPLES + 3


def test_the_page_is_self_contained_and_text_cannot_inject_html() -> None:
    _, report = make_report()
    report.examples["copy"] = [{"line": 1, "source": "</script><b>", "target": "x", "scores": {}}]
    page = page_of(report)
    assert "</script><b>" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "light dark" in page


def test_every_reason_has_a_description_in_both_languages() -> None:
    page = page_of(make_report()[1])
    assert set(MEANINGS) == set(REASONS[1:])
    for reason in MEANINGS:
        assert len(re.findall(rf'(?m)[\s{{]"?(?:is )?{reason}"?: "', page)) >= 2, reason
