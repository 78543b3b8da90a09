"""Suggested corrections are divided into lines, counted, and sorted with the reasons against each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.serving.browser import PageDriver, open_browser, serve_files

from bitext.cleaning.report import fill_page
from bitext.tsv import split_row
from manyheads.data.corrections import (
    CORRECTION_MEANINGS,
    CORRECTIONS_PAGE,
    Correction,
    ModelScores,
    collect_corrections,
    judge_corrections,
)
from manyheads.data.suggestions import Suggestion

SOURCE = "Ein alter Mann sitzt mit seinem Hund auf einer Bank im Park."
OUTPUT = "An old man is sitting with his dog on a bench in the park."
RIGHT = "An old man sits on a park bench with his dog."


def suggest(*texts: str, key: str | None = None, time: str = "2026-01-01") -> Suggestion:
    source, output, correction = texts
    return Suggestion(time, ("de", "en"), source, output, correction, key)


def judge(text: str, source: str = SOURCE, output: str = OUTPUT, scores: ModelScores | None = None) -> Correction:
    correction = Correction(source, output, text, "2026-01-01", {"a"})
    judge_corrections([correction], ("de", "en"), scores)
    return correction


def scores_of(loss: float, gain: float, end: float) -> ModelScores:
    return ModelScores(*(np.array([value]) for value in (loss, gain, end)))


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        (RIGHT, "accepted", None),
        (OUTPUT, "rejected", "unchanged"),
        (SOURCE, "rejected", "copy"),
        (SOURCE.replace("Bank", "bench"), "rejected", "copy"),
        ("aaaaaaaaaaaaaaaaaaaaaa", "rejected", "repetition"),
        ("aa", "rejected", "letters"),
        ("...", "rejected", "empty"),
        ("\u200b", "rejected", "empty"),
        ("An old man man man man man man man is sitting on a bench.", "rejected", "repetition"),
        ("Un vieil homme est assis avec son chien sur un banc du parc.", "doubtful", "far"),
        ("Two women are cooking a large dinner for their families.", "doubtful", "far"),
        ("오늘은 날씨가 아주 좋아서 우리는 공원에 갔습니다", "rejected", "language"),
        (OUTPUT + "\nYes.", "doubtful", "lines"),
        (f"{RIGHT} {RIGHT}", "rejected", "repetition"),
        ("An old man is sitting with seinem Hund auf einer Bank.", "doubtful", "untranslated"),
        (f"{RIGHT} Two women are cooking dinner.", "accepted", None),
        (f"{OUTPUT} Two women are cooking a large dinner for all of their families.", "doubtful", "length"),
        ("An old man sits mit seinem dog on a bench in the park.", "accepted", None),
    ],
)
def test_texts_are_judged_without_a_model(text: str, verdict: str, reason: str | None) -> None:
    found = judge(text)
    assert found.verdict == verdict, found.reasons
    assert reason in (found.reasons or [None])
    assert set(found.reasons) <= set(CORRECTION_MEANINGS)


@pytest.mark.parametrize(
    ("scores", "reasons"),
    [
        (scores_of(1, 3, -0.1), []),
        (scores_of(1, 0.5, -0.1), ["unrelated"]),
        (scores_of(1, np.nan, -0.1), []),  # no other source to compare with
        (scores_of(7, 3, -0.1), ["unlikely"]),
        (scores_of(1, 3, -9), ["cut"]),
        (scores_of(7, 0.1, -0.1), ["unrelated", "unlikely"]),
        (scores_of(np.nan, np.nan, np.nan), ["far"]),  # too long for the model
    ],
)
def test_a_model_judges_instead_of_the_likeness_with_the_output(scores: ModelScores, reasons: list[str]) -> None:
    text = "Outdoors somebody of great age relaxes, and a pet is there too." if reasons != [] else RIGHT
    assert judge(text, scores=scores).reasons == reasons


def test_a_title_may_end_where_the_model_expects_a_mark() -> None:
    scores = scores_of(1, 3, -9)
    assert judge("Old man with a dog", "Alter Mann mit Hund", "Old man with dog", scores).reasons == []


def test_names_and_short_texts_that_the_output_copies_are_no_copies() -> None:
    assert judge("Bonn, Berlin!", "Bonn, Berlin.", "Bonn, Berlin,").reasons == []
    assert judge("No.", "Nein.", "Not.").reasons == []


def test_changed_lines_are_divided_and_equal_ones_counted() -> None:
    found = collect_corrections([
        suggest("Eins.\n\nZwei.", "One.\n\nTow.", "One.\n\nTwo. ", key="a"),
        suggest("Zwei.", "Tow.", "Two.", key="b"),
        suggest("Zwei.", "Too.", "Two.", key="b", time="2026-01-02"),
        suggest("Zwei.", "Tow.", "Two."),
        suggest("Zwei.", "Tow.", "Two."),
        suggest("Eins.\nZwei.", "One.\nTwo.", "One. Two."),
        suggest("Drei.\nVier.", "Three.\nFour.", "Three.\nFour."),
    ])  # fmt: skip
    assert [(correction.source, correction.text, len(correction.senders)) for correction in found] == [
        ("Zwei.", "Two.", 4), ("Eins.\nZwei.", "One. Two.", 1), ("Drei.", "Three.", 1),
    ]  # fmt: skip
    assert (found[0].output, found[0].time) == ("Too.", "2026-01-02")


def test_of_contradicting_corrections_the_most_frequent_and_then_the_newest_is_taken() -> None:
    texts = [RIGHT, RIGHT.replace("old", "aged"), RIGHT.replace("sits", "is"), "aaaaaaaaaaaaaaaaaaaa"]
    senders = [{"a", "b"}, {"a", "c"}, {"a"}, {"a", "b", "c"}]
    times = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    found = [Correction(SOURCE, OUTPUT, *rest) for rest in zip(texts, times, senders, strict=True)]
    judge_corrections(found, ("de", "en"))
    assert [correction.verdict for correction in found] == ["doubtful", "accepted", "doubtful", "rejected"]
    assert found[0].reasons == found[2].reasons == ["contradicted"]


def test_ticked_corrections_are_saved_as_tsv(tmp_path: Path) -> None:
    rows = [
        {"source": "<b>&\n\t", "output": "x", "text": 'say "yes"', "reasons": ["far"]},
        {"source": "b", "output": "y", "text": "no", "reasons": list(CORRECTION_MEANINGS)},
        {"source": "c", "output": "z", "text": "</script>", "reasons": ["cut"]},
    ]
    (tmp_path / "page.html").write_text(
        fill_page(CORRECTIONS_PAGE, {"languages": ["de", "en"], "rows": rows}),
        "utf-8",
    )
    with open_browser() as browser, serve_files(tmp_path) as address:
        driver = PageDriver(browser, f"{address}/page.html", language="ko")
        page = driver.page
        page.route("**/favicon.ico", lambda route: route.fulfill(body=""))
        page.goto(driver.address)
        page.get_by_label("Language").select_option("ko")
        assert page.get_by_role("heading").inner_text() == "의심스러운 수정 번역 (de-en)"
        assert page.get_by_role("button").is_disabled()
        driver.check("corrections", rules=True)
        page.get_by_label('올바름: say "yes"').press("Space")
        page.get_by_label("올바름: </script>").check()
        page.get_by_label("Language").select_option("en")
        assert page.get_by_role("status").inner_text() == "2 of 3 ticked"
        with page.expect_download() as download:
            page.get_by_role("button").press("Enter")
        saved = Path(download.value.path()).read_text("utf-8").split("\n")
        assert [split_row(line) for line in saved] == [["<b>&  ", 'say "yes"'], ["c", "</script>"], [""]]
        assert driver.faults == []
        driver.close()


def test_every_doubt_has_a_description_in_both_languages() -> None:
    page = fill_page(CORRECTIONS_PAGE, {})
    for name in set(CORRECTION_MEANINGS) - {"empty", "copy", "unchanged", "repetition"}:  # never doubtful
        if name not in ("boilerplate", "duplicate", "lexical", "models"):  # of a whole corpus
            assert page.count(f' {name}: "') == 2, name
    assert json.dumps({}) in page
