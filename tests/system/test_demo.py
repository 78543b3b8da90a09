"""`manyheads demo`: its scores, its output, and the trained model."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.serving.browser import open_browser

from manyheads.data.builtin import builtin_pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run the demo, and return its output."""
    out = tmp_path_factory.mktemp("demo") / "run"
    command = [sys.executable, "-m", "manyheads", "demo", "-o", str(out)]
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def without_times(printed: str) -> str:
    """Return the output without figures of the speed of the machine."""
    return re.sub(r"[\d.]+ sentences/s|took \d+ seconds", "", printed)


def test_the_demo_scores_at_least_90_bleu_on_unseen_sentences(output: str) -> None:
    found = re.search(r"^ +BLEU ([\d.]+) +nrefs:1\|case:mixed\|eff:no\|tok:13a", output, re.MULTILINE)
    assert found is not None, output
    assert float(found[1]) >= 90


def test_the_demo_translates_three_quarters_of_the_sentences_exactly(output: str) -> None:
    found = re.search(r"([\d.]+) % of 500 sentences exact", output)
    assert found is not None, output
    assert float(found[1]) >= 75


def test_the_demo_shows_three_translations_a_heat_map_and_the_next_commands(output: str) -> None:
    assert len(re.findall(r"^  de  ", output, re.MULTILINE)) == 3
    assert len(re.findall(r"^  en  ", output, re.MULTILINE)) == 3
    assert "Rows: target (English), query. Columns: source (German), key." in output
    assert "</s> │" in output
    commands = re.findall(
        r"^  (?:echo .*\| )?(?:\S*/)?(?:\S+ -m )?(manyheads \w+)", output.partition("Next:")[2], re.MULTILINE
    )
    assert commands == ["manyheads translate", "manyheads evaluate", "manyheads init"]


def test_the_same_command_again_shows_the_finished_model(
    output: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = next(path for path in tmp_path_factory.getbasetemp().glob("demo*/run"))
    before = (out / "model.safetensors").stat().st_mtime_ns
    command = [sys.executable, "-m", "manyheads", "demo", "-o", str(out)]
    again = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    assert without_times(again) == without_times(output)


def test_the_model_of_the_demo_translates_lines(output: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = next(path for path in tmp_path_factory.getbasetemp().glob("demo*/run"))
    found = re.findall(r"^  de  (.*)\n  en  (.*)$", output, re.MULTILINE)
    text = "\n\n".join(source for source, _ in found)
    command = [sys.executable, "-m", "manyheads", "translate", str(out)]
    result = subprocess.run(command, check=True, capture_output=True, input=text.encode()).stdout.decode()
    assert result == "\n\n".join(target for _, target in found) + "\n"


def test_the_page_of_the_demo_translates_in_a_browser(
    output: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page_file = next(path for path in tmp_path_factory.getbasetemp().glob("demo*/run/page.html"))
    assert output.rstrip().endswith(f"open it in a browser: {page_file}")
    pairs = builtin_pairs("de-en", "test", source="de", target="en")[:60]
    with open_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        texts = [pair.source for pair in pairs]
        found = page.evaluate(
            "async (texts) => { const found = [];"
            " for (const text of texts) found.push(await window.manyheads.translate(text)); return found; }",
            texts,
        )
        page.locator("#tab-card").click()
        page.get_by_text("Scores on 500 sentences of its test set, beam 3: BLEU 9").wait_for()
    exact = [one["translation"] == pair.target for one, pair in zip(found, pairs, strict=True)]
    assert sum(exact) >= 45
