"""`manyheads demo`: its scores, its output, and the trained model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serving.browser import open_browser

from manyheads.data.builtin import builtin_pairs


def manyheads(*arguments: object, given: str = "") -> str:
    """Run a command; return what it prints."""
    command = [sys.executable, "-m", "manyheads", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, input=given.encode()).stdout.decode()


def without_times(printed: str) -> str:
    """Return the output without figures of the speed of the machine."""
    return re.sub(r"[\d.]+ sentences/s|took \d+ seconds", "", printed)


@pytest.mark.slow
@pytest.mark.weekly
def test_the_demo_trains_a_translator_of_90_bleu_that_is_shown_again_translates_and_has_a_page(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    output = manyheads("demo", "-o", run)
    scores = re.search(r"^ +BLEU ([\d.]+) +nrefs:1\|case:mixed\|eff:no\|tok:13a", output, re.MULTILINE)
    exact = re.search(r"([\d.]+) % of 500 sentences exact", output)
    assert scores is not None, output
    assert exact is not None, output
    assert float(scores[1]) >= 90
    assert float(exact[1]) >= 75
    assert "Rows: target (English), query. Columns: source (German), key." in output
    assert "</s> │" in output
    commands = re.findall(
        r"^  (?:echo .*\| )?(?:\S*/)?(?:\S+ -m )?(manyheads \w+)", output.partition("Next:")[2], re.MULTILINE
    )
    assert commands == ["manyheads translate", "manyheads evaluate", "manyheads init"]

    saved = (run / "model.safetensors").stat().st_mtime_ns
    assert without_times(manyheads("demo", "-o", run)) == without_times(output)
    assert (run / "model.safetensors").stat().st_mtime_ns == saved

    shown = re.findall(r"^  de  (.*)\n  en  (.*)$", output, re.MULTILINE)
    assert len(shown) == 3
    translated = manyheads("translate", run, given="\n\n".join(source for source, _ in shown))
    assert translated == "\n\n".join(target for _, target in shown) + "\n"

    assert output.rstrip().endswith(f"open it in a browser: {run / 'page.html'}")
    pairs = builtin_pairs("de-en", "test", source="de", target="en")[:60]
    with open_browser() as browser:
        page = browser.new_page()
        page.goto((run / "page.html").as_uri())
        found = page.evaluate(
            "async (texts) => { const found = [];"
            " for (const text of texts) found.push(await window.manyheads.translate(text)); return found; }",
            [pair.source for pair in pairs],
        )
        page.locator("#tab-card").click()
        page.get_by_text("Scores on 500 sentences of its test set, beam 3: BLEU 9").wait_for()
    assert sum(output["translation"] == pair.target for output, pair in zip(found, pairs, strict=True)) >= 45
