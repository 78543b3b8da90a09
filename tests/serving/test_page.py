"""The web page in a real browser: served and standalone, in both languages, on a wide and on a narrow screen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser
from tests.runs.parts import make_config, write_corpus
from tests.serving.browser import PageDriver, driving, open_modules, serve_below
from tests.serving.process import Server, serving, train_classifier, train_language_model, train_once
from tests.tolerances import printed, within

from manyheads.cli.main import run as manyheads
from manyheads.data.suggestions import SuggestionFile
from manyheads.inference.about import examples_of
from manyheads.inference.inspect import inspect
from manyheads.inference.inspect_options import Changes, HeadName, InspectOptions
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.head_steps import inspect_head
from manyheads.inspection.isolation import isolated_with_changes
from manyheads.inspection.translation import inspect_translation
from manyheads.runs.train import train
from manyheads.views.colours import _CIVIDIS, _DIVERGING, hexadecimal
from manyheads.web.html_page import stand_alone
from manyheads.web.scripts import PAGE, built_script

SENTENCE = "der Mann isst heute Brot"
LONG = f"{SENTENCE} der Hund spielt und die Katze schläft und das Pferd singt {SENTENCE}"
VIEWS = ("translate", "whole", "words", "alignment", "attention", "steps", "beam", "training", "model", "card")
STANDALONE_VIEWS = tuple(view for view in VIEWS if view not in ("translate", "steps"))  # these two need the server
NAMESPACES = ("2000/svg", "1998/Math/MathML")
CHARTS = ".chart, .matrix, .picture, .tree, .alignment, .bars, .heads, .token-bar, .strips"


def train_reverse_direction(folder: Path) -> Path:
    """Train a translator en-de of another shape for a few updates, for the other direction."""
    data = {"source": "en", "target": "de"}
    config = make_config(write_corpus(folder / "corpus"), data=data, model={"positions": "sinusoidal"})
    train(config, folder / "en-de")
    return folder / "en-de"


@pytest.fixture(scope="module")
def runs(translator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    others = (train_reverse_direction, train_classifier, train_language_model)
    return translator_run, *(train_once(tmp_path_factory, train) for train in others)


@pytest.fixture(scope="module")
def suggestions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suggestions") / "suggestions.jsonl"


@pytest.fixture(scope="module")
def address(runs: tuple[Path, ...], suggestions: Path) -> Iterator[str]:
    with serving(*runs, "--suggestions", suggestions) as server:
        yield f"{server.url}/"
        assert isinstance(server, Server)
        assert server.end() == 0
        assert "fault" not in server.text


@pytest.fixture(scope="module")
def shared_driver(browser: Browser, address: str) -> Iterator[PageDriver]:
    with driving(browser, address) as found:
        yield found


@pytest.fixture
def driver(shared_driver: PageDriver) -> Iterator[PageDriver]:
    """Return the shared driver; after the test, expect that it recorded no faults."""
    yield shared_driver
    faults, shared_driver.faults = shared_driver.faults, []  # those of one test are not those of the next
    assert faults == []


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_both_languages_have_the_same_strings() -> None:
    english, korean = (json.loads((PAGE / f"{code}.json").read_text(encoding="utf-8")) for code in ("en", "ko"))
    assert english.keys() == korean.keys()
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", korean[key])), key
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGE.rglob("*.js"))
    for key in re.findall(r'\bt\(\s*"([\w.]+)"|\bkey: "([\w.]+)"', scripts):
        assert "".join(key) in english
    for name in ("missing-phrase", "forced-term"):  # of a server with a glossary
        assert f"warning.{name}" in english
    for name in " ".join(re.findall(r'\bcolumnTitles\(\s*"([\w ]+)"', scripts)).split():
        assert f"column.{name}" in english


def test_the_script_is_small_and_the_page_loads_nothing_from_other_hosts() -> None:
    assert len(built_script("page.js").encode()) < 115_000
    for path in [path for path in PAGE.rglob("*") if path.is_file()]:
        addresses = re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {f"http://www.w3.org/{name}" for name in NAMESPACES}, path.name
    index = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", index)


def test_every_symbol_of_the_paper_has_a_name_in_both_languages(runs: tuple[Path, ...]) -> None:
    korean = json.loads((PAGE / "ko.json").read_text(encoding="utf-8"))
    for run in runs:
        for symbol in inspect(run).symbols:  # type: ignore[attr-defined]
            assert f"symbol.{symbol.symbol}" in korean


@pytest.mark.parametrize(
    ("language", "width", "scheme", "text", "accessible"),
    [
        ("ko", 390, "dark", SENTENCE, ("translate", "attention")),  # the rules take seconds a view
        pytest.param("ko", 390, "dark", SENTENCE, VIEWS, marks=[pytest.mark.slow, pytest.mark.weekly]),
        pytest.param("en", 1280, "light", SENTENCE, VIEWS, marks=pytest.mark.slow),
        pytest.param("en", 390, "light", LONG, (), marks=pytest.mark.slow),
    ],
)
def test_every_view_of_a_translator_fits_the_window_is_accessible_and_without_faults(
    browser: Browser, address: str, language: str, width: int, scheme: str, text: str, accessible: tuple[str, ...]
) -> None:
    with driving(browser, address, language=language, width=width, scheme=scheme) as driver:
        for view in VIEWS:
            driver.open(view, q=text)
            driver.check(view, rules=view in accessible)


def test_the_tabs_of_a_narrow_window_are_one_row_that_scrolls_to_the_current_one(
    browser: Browser, address: str
) -> None:
    with driving(browser, address, language="ko", width=390) as driver:
        for view in (VIEWS[-1], VIEWS[0]):
            driver.open(view, q=SENTENCE)
            tabs = [tab.bounding_box() for tab in driver.page.locator("[role=tab]").all()]
            assert len({tab["y"] for tab in tabs if tab}) == 1
            current = driver.page.locator("[role=tab][aria-selected=true]").bounding_box()
            assert current
            assert 0 <= current["x"] <= 390 - current["width"]
            driver.check(f"tabs-{view}")


@pytest.mark.parametrize(
    ("language", "width", "scheme"),
    [pytest.param("en", 1280, "light", marks=[pytest.mark.slow, pytest.mark.weekly]), ("ko", 390, "dark")],
)
def test_other_tasks_have_their_own_first_view(
    browser: Browser, address: str, language: str, width: int, scheme: str
) -> None:
    with driving(browser, address, language=language, width=width, scheme=scheme) as driver:
        for view in ("classify", "attention"):
            driver.open(view, model="reviews", q="a really lovely film")
            driver.check(f"{view}-classifier", rules=view == "classify")
        assert driver.page.locator("[role=tab]").count() == 7
        for view in ("continue", "words", "steps"):
            driver.open(view, model="writer", q="ANNA:")
            driver.check(f"{view}-writer", rules=view != "words")


def test_the_page_opens_with_an_example_its_translation_and_its_attention(
    driver: PageDriver, runs: tuple[Path, ...]
) -> None:
    driver.page.goto(driver.address)
    driver.figure("translate.attention").locator(".matrix").wait_for()
    assert driver.page.locator("#source").input_value() == examples_of(runs[0])[0]
    assert driver.page.locator(".translation").inner_text()
    driver.page.locator("#tab-words").click()
    driver.wait_for_view("words")
    driver.page.go_back()
    driver.figure("translate.attention").locator(".matrix").wait_for()
    driver.page.locator("#settings").get_by_label("Model").select_option("writer")
    driver.wait_for_view("continue")
    assert driver.page.locator("#source").input_value() == examples_of(runs[3])[0]


def test_a_text_is_translated_while_it_is_typed_and_in_the_other_direction(driver: PageDriver) -> None:
    driver.open("translate", q=SENTENCE)
    box = driver.page.locator("#source")
    before = driver.page.locator("#count").inner_text()
    box.fill("der Hund läuft")
    driver.page.locator(".translation", has_text="the dog runs").wait_for()
    assert driver.page.locator("#count").inner_text() != before
    table = driver.figure("translate.alternatives").locator("tbody tr")
    scores = [number(text) for text in table.locator("td:nth-child(3)").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    assert table.nth(0).locator("td").nth(1).inner_text() == "the dog runs"
    assert table.nth(1).locator("u").count() > 0
    driver.page.get_by_role("button", name="Swap the languages").click()
    driver.wait_until("document.querySelector('#source').value === 'the dog runs'")
    driver.wait_until("document.querySelector('.output').lang === 'de'")


def test_the_sentences_of_a_text_are_inspected_one_by_one(driver: PageDriver) -> None:
    driver.open("translate", q="der Hund läuft.\ndie Katze schläft.")
    driver.page.locator(".sentence").nth(1).click()
    driver.page.locator("#tab-attention").click()
    driver.wait_for_view("attention")
    assert "Katze" in driver.page.locator(".about-source").inner_text()


def test_choosing_another_token_changes_the_output(driver: PageDriver) -> None:
    driver.open("words", q=SENTENCE)
    first = driver.page.locator(".about-target").inner_text()
    alternative = driver.figure("words.alternatives").locator(".bars li").nth(1)
    piece = alternative.locator(".bar-label").inner_text()
    alternative.get_by_role("button").click()
    driver.page.locator(".changed").wait_for()
    assert driver.page.locator(".about-target").inner_text() != first
    assert driver.page.locator(".token").first.locator(".token-text").inner_text() == piece
    assert "given" in (driver.page.locator(".token").first.get_attribute("class") or "")
    assert "prefix=" in driver.page.url
    driver.page.locator(".changed button").click()
    driver.wait_until("!document.querySelector('.changed')")
    assert driver.page.locator(".about-target").inner_text() == first


def test_the_numbers_are_those_of_the_inspection(driver: PageDriver, runs: tuple[Path, ...]) -> None:
    found = inspect(runs[0], SENTENCE)
    driver.open("attention", q=SENTENCE, kind="decoder", layer=0, head=1)
    panel = driver.figure("attention.decoder")
    panel.get_by_role("button", name="Show as table").click()
    rows = panel.locator(".values tbody tr")
    weights = found.attention[1].weights[0, 1]  # type: ignore[attr-defined]
    assert rows.count() == len(weights)
    for row, values in enumerate(weights):
        cells = rows.nth(row).locator("td").all_inner_texts()[1:]
        assert cells[row + 1 :] == ["masked"] * (len(values) - row - 1)
        shown = [number(cell) for cell in cells[: row + 1]]
        assert shown == printed(values[: row + 1], 4)


def test_the_decoder_shows_that_a_row_reads_up_to_the_token_before(driver: PageDriver) -> None:
    driver.open("attention", q=SENTENCE, kind="decoder", layer=0, head=0)
    panel = driver.figure("attention.decoder")
    assert panel.locator(".corner").inner_text().endswith("token predicted")
    assert panel.locator("caption").inner_text().endswith("token read")
    columns = panel.locator("thead th").all_inner_texts()
    rows = [text.split(" → ") for text in panel.locator("tbody th").all_inner_texts()]
    assert [before for before, _ in rows] == columns
    assert [predicted for _, predicted in rows[:-1]] == columns[1:]
    sentence = f"the row of {rows[1][1]} reads up to {rows[1][0]}, the token before it"
    assert sentence in panel.inner_text()
    panel.locator("td[data-at='1 0']").focus()
    assert panel.locator("thead th.unread").all_inner_texts() == columns[2:]
    driver.open("steps", q=SENTENCE, kind="decoder", layer=0, head=0)
    assert sentence in driver.figure("steps.query").inner_text()
    driver.open("attention", q=SENTENCE, kind="decoder", layer=0, head=0, mask=0)
    assert "reads up to" not in panel.inner_text()


def test_the_page_can_be_used_by_keyboard_with_a_visible_focus(driver: PageDriver) -> None:
    driver.open("translate", q=SENTENCE)
    keys = driver.page.keyboard
    driver.page.locator("#tab-translate").focus()
    for view in ("whole", "words", "alignment", "attention"):
        keys.press("ArrowRight")
        driver.wait_for_view(view)
        assert driver.focused("e.id") == f"tab-{view}"
    assert driver.focused("getComputedStyle(e).outlineStyle") == "solid"
    driver.page.locator(".matrix td[tabindex='0']").first.focus()
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    assert driver.focused("e.dataset.at") == "1 1"
    keys.press("Control+End")
    last = driver.focused("e.dataset.at")
    keys.press("Enter")
    assert "pinned" in driver.page.locator(".reading").first.inner_text()
    keys.press("Home")
    assert driver.focused("e.dataset.at") == f"{last.split()[0]} 0"
    seen = set()
    driver.page.locator(".skip").focus()
    for _ in range(60):
        keys.press("Tab")
        if driver.focused("e === document.body"):
            break
        assert driver.focused("getComputedStyle(e).outlineStyle") != "none", driver.focused("e.outerHTML")
        seen.add(driver.focused("e.tagName"))
    assert {"BUTTON", "SELECT", "INPUT", "TD"} <= seen


def test_a_correction_is_sent_by_keyboard_and_stored(driver: PageDriver, suggestions: Path) -> None:
    driver.open("translate", q=SENTENCE)
    output = driver.page.locator(".output .translation").inner_text()
    page, keys = driver.page, driver.page.keyboard
    opener = page.get_by_role("button", name="Correct this")
    assert opener.get_attribute("aria-expanded") == "false"
    opener.press("Enter")
    assert driver.focused("e.value") == output
    driver.check("correct", rules=True)
    keys.press("Tab")
    keys.press("Enter")  # unchanged
    assert page.get_by_role("status").inner_text() == "Change the translation first."
    keys.press("Escape")
    assert driver.focused("e.getAttribute('aria-expanded')") == "false"
    keys.press("Enter")
    page.get_by_label("Your translation").fill("<b>the man</b>")
    assert SuggestionFile(suggestions).read() == ([], [])
    keys.press("Tab")
    keys.press("Enter")
    page.get_by_text("Thank you.").wait_for()
    assert driver.focused("e.textContent") == "Correct this"
    (stored,), _ = SuggestionFile(suggestions).read()
    assert (stored.source, stored.output, stored.correction) == (SENTENCE, output, "<b>the man</b>")
    opener.press("Enter")
    page.get_by_label("Your translation").fill("a" * 5001)
    page.get_by_role("button", name="Send").press("Enter")
    page.get_by_text("exceeds text limit").wait_for()
    driver.expect_refused()


def test_two_heads_are_compared_and_the_padding_is_masked(driver: PageDriver) -> None:
    driver.open("attention", q=SENTENCE, kind="encoder")
    driver.page.locator(".thumbnail").nth(1).click()
    driver.page.get_by_label("Compare with").select_option("0.0")
    assert driver.page.locator(".matrix").count() == 3, "both, and their difference"
    assert "head=1" in driver.page.url
    assert driver.page.locator(".matrix .masked").count() == 0
    driver.page.get_by_label("<pad>").check()
    driver.page.locator(".matrix .masked").first.wait_for()
    rows = driver.page.locator(".matrix").first.locator("tbody tr").count()
    assert driver.page.locator(".matrix").first.locator(".masked").count() == 3 * rows


def test_the_difference_of_two_heads_has_a_scale_about_zero(driver: PageDriver, runs: tuple[Path, ...]) -> None:
    weights = inspect(runs[0], SENTENCE).attention[2].weights[0]  # type: ignore[attr-defined]
    driver.open("attention", q=SENTENCE, kind="cross", layer=0, head=0, other="0.1")
    panel = driver.figure("attention.cross").nth(2)
    ends = [number(part) for part in re.findall(r"[−.\d]+", panel.locator(".legend").inner_text())]
    assert ends[0] == -ends[1]
    assert ends[1] == printed(abs(weights[0] - weights[1]).max(), 2)
    assert panel.locator(".ramp.signed").count() == 1
    panel.get_by_role("button", name="Show as table").click()
    row = panel.locator(".values tbody tr").first.locator("td").all_inner_texts()[1:]
    assert [number(cell) for cell in row] == printed((weights[0] - weights[1])[0], 3)


def test_axes_are_named_by_side_and_language_and_heads_by_their_tokens(
    browser: Browser, address: str, runs: tuple[Path, ...]
) -> None:
    found = inspect(runs[0], "der Hund")
    pieces = [token.piece.replace("▁", "␣") for token in found.source.tokens]  # type: ignore[attr-defined]
    for language, names, source, target in (
        ("en", ["German", "English"], "Source (German)", "Target (English)"),
        ("ko", ["독일어", "영어"], "소스 (독일어)", "타깃 (영어)"),
    ):
        with driving(browser, address, language=language) as driver:
            driver.open("translate")
            assert driver.page.locator(".side-head").all_inner_texts() == names
            driver.open("attention", q="der Hund", kind="cross")
            large = driver.figure("attention.cross")
            assert large.locator("caption").inner_text().startswith(source)
            assert large.locator(".corner").inner_text().startswith(target)
            heads = driver.figure("attention.all")
            assert source in heads.locator(".note").last.inner_text()
            assert heads.locator(".thumbnail .names").first.locator("span").all_inner_texts() == pieces
            assert heads.locator(".names.beside").count() == len(found.attention[2].weights)  # type: ignore[attr-defined]
            for name in (".matrix thead th > span", ".names.above > span"):  # otherwise Hangul would be upside down
                orientation = driver.page.locator(name).first.evaluate("e => getComputedStyle(e).textOrientation")
                assert orientation == "sideways"
            driver.open("alignment", q="der Hund")
            assert driver.figure("alignment.links").locator(".axis").all_inner_texts() == [source, target]


def test_the_page_has_the_colours_of_the_pictures() -> None:
    script, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("colours.js", "page.css"))
    for name, scale in (("CIVIDIS", _CIVIDIS), ("DIVERGING", _DIVERGING)):
        written = re.search(rf'const {name} = "([^"]+)"', script)
        assert written
        assert written[1].split() == [hexadecimal(colour)[1:] for colour in scale]
        assert ", ".join("rgb({} {} {})".format(*colour) for colour in scale) in style


def test_every_curve_has_a_marker_at_its_end_and_its_last_value_as_text(driver: PageDriver) -> None:
    driver.open("training")
    loss = driver.figure("training.loss")
    assert loss.locator(".ring").count() == 2
    names = loss.locator("text.name").all_text_contents()
    assert [name.partition(":")[0] for name in names] == ["training loss", "validation loss"]
    assert all(number(name.partition(": ")[2]) > 0 for name in names)


def test_a_head_is_computed_step_by_step(driver: PageDriver, runs: tuple[Path, ...]) -> None:
    translator = Translator.load(runs[0])
    right = inspect_head(translator, SENTENCE, HeadName("decoder", 0, 1))
    driver.open("steps", q=SENTENCE, kind="decoder", layer=0, head=1, query=2)
    keys = driver.page.keyboard
    lines = driver.page.locator(".strips tbody tr:has(button)")

    def column(index: int) -> list[str]:
        return [line.locator("td").nth(index).inner_text().strip() for line in lines.all()]

    for text, score in zip(column(2), right.scores[2], strict=True):
        assert number(text) == printed(score, 2)
    dots = right.queries[2] @ right.keys.T
    assert [number(text) for text in column(1)] == within(dots.tolist(), 0.02)
    assert driver.page.locator("math msqrt").count() == 2, "the formula, and with the numbers of a key"
    score = driver.page.locator(".strips .current td").last.inner_text()
    assert driver.page.locator("math").last.evaluate("e => e.textContent").endswith(f"={score}")
    best = driver.page.locator(".strips .current button")
    best.focus()
    keys.press("ArrowRight")
    assert driver.focused("e.closest('.strips') !== null"), "the focus stays on the key"
    assert column(1) == ["0"] * 3 + ["−∞"] * (len(right.keys) - 3)
    keys.press("ArrowRight")
    weights = [number(text.split()[-1]) for text in column(2)]
    assert weights == printed(right.weights[2], 3)
    keys.press("ArrowRight")
    assert "stage=3" in driver.page.url
    panel = driver.figure("steps.output")
    panel.get_by_role("button", name="Show as table").click()
    last = panel.locator(".values tbody tr").last.locator("td").all_inner_texts()[2:]
    assert [number(text) for text in last] == printed(right.outputs[2], 2)
    assert driver.page.get_by_role("button", name="Next").is_disabled()
    driver.page.get_by_role("button", name="Back").click()
    assert driver.figure("steps.softmax").count() == 1
    driver.page.locator(".token").first.click()
    assert [number(text.split()[-1]) for text in column(2)] == [1.0] + [0.0] * (len(right.keys) - 1)
    driver.open("steps", q=SENTENCE, kind="decoder", layer=0, head=1, query=2, stage=1, mask=0)
    assert "−∞" not in column(1)
    driver.page.get_by_label("Kind").focus()
    keys.press("ArrowUp")
    driver.wait_until("document.querySelector('.figure [role=group]')?.ariaLabel.startsWith('Source')")
    driver.wait_for_view("steps")
    assert driver.focused("e.tagName") == "SELECT"


def test_heads_positions_and_layers_can_be_switched_off(driver: PageDriver, runs: tuple[Path, ...]) -> None:
    translator = Translator.load(runs[0])
    driver.open("attention", q=SENTENCE, kind="cross", layer=0)
    before = driver.page.locator(".about-target").inner_text()
    driver.page.get_by_role("checkbox", name="without all heads of layer 0").check()
    driver.page.locator(".effect").wait_for()
    assert driver.focused("e.type") == "checkbox"
    heads = Changes((HeadName("cross", 0, 0), HeadName("cross", 0, 1)))
    with isolated_with_changes(translator, heads) as changed:
        expected = changed.translate([SENTENCE])[0].translation  # type: ignore[union-attr]
    outputs = driver.page.locator(".effect [lang]")
    texts = outputs.all_inner_texts()
    assert texts == [translator.translate([SENTENCE])[0].translation, expected.strip()]
    assert driver.page.locator(".effect .different").count() > 0
    assert driver.figure("change.switches").locator(".effect").count() == 1, "the effect stands beside its switches"
    assert driver.page.locator(".about-target").inner_text() != before
    assert driver.page.locator(".thumbnail.off").count() == 2
    driver.page.get_by_role("checkbox", name="without positions").check()
    driver.wait_until("document.querySelectorAll('.chips li').length === 3")
    driver.page.reload()
    driver.wait_for_view("attention")
    assert driver.page.locator(".chips li").count() == 3
    driver.page.locator("#tab-translate").click()
    driver.page.locator(".effect").wait_for()
    changed_text = driver.page.locator(".translation").inner_text().strip()
    assert changed_text == outputs.last.inner_text()
    driver.page.get_by_role("button", name="Turn on again: without positions").click()
    driver.wait_until("document.querySelectorAll('.chips li').length === 2")
    driver.page.get_by_role("button", name="Back to the model as it was trained").click()
    driver.wait_until("!document.querySelector('.changed-model')")
    driver.wait_for_view("translate")
    assert driver.page.locator(".translation").inner_text() == texts[0]
    assert "off=" not in driver.page.url


def test_the_effect_of_a_change_is_told_in_words_scores_and_cells(
    driver: PageDriver, runs: tuple[Path, ...]
) -> None:
    driver.open("attention", q=SENTENCE, kind="encoder", layer=0, head=0, off="cross.0.0")
    translator = Translator.load(runs[0])
    with isolated_with_changes(translator, Changes((HeadName("cross", 0, 0),))) as changed:
        scores = [model.translate([SENTENCE])[0].score for model in (translator, changed)]  # type: ignore[union-attr]
    cells = driver.page.locator("#effect .note")
    cells.wait_for()
    shown = driver.page.locator(".effect td:last-child").all_inner_texts()
    assert [number(text) for text in shown] == printed(scores, 3)
    size = len(inspect(runs[0], SENTENCE).attention[0].weights[0, 0])  # type: ignore[attr-defined]
    assert f": 0 of {size**2} in this picture, 0 of " in cells.inner_text(), "the encoder precedes cross-attention"
    driver.open("attention", q=SENTENCE, kind="encoder", layer=0, head=0, positions=0)
    cells.wait_for()
    assert not re.search(r": 0 of \d+ in this picture", cells.inner_text())


def test_a_change_of_the_score_alone_is_told(browser: Browser) -> None:
    outputs = [[], {"measure": "score", "score": -0.03}, {"measure": "score", "score": -0.727}]
    summary = """async (outputs) => {
      const { effectSummary } = await import("/page/effect.js");
      return effectSummary(...outputs);
    }"""
    with open_modules(browser) as page:
        told = page.evaluate(summary, outputs)
    assert told == "The words are the same; the score fell from −0.030 to −0.727."


OTHERS = [("reviews", "a really lovely film", "classify"), ("writer", "ANNA:", "continue")]


@pytest.mark.parametrize(("model", "text", "view"), OTHERS)
def test_other_models_are_changed_too(driver: PageDriver, model: str, text: str, view: str) -> None:
    driver.open(view, model=model, q=text)
    probabilities = driver.page.locator(".bar-value").all_inner_texts()
    driver.open(view, model=model, q=text, positions=0)
    driver.page.locator(".effect").wait_for()
    assert driver.page.locator(".bar-value").all_inner_texts() != probabilities
    driver.check(f"{view}-changed", rules=model == "writer")
    driver.open("attention", model=model, q=text)
    assert driver.page.get_by_role("checkbox", name="without the causal mask").count() == (model == "writer")


def test_a_head_that_the_model_lacks_is_an_error_with_a_button_to_reset(driver: PageDriver) -> None:
    driver.open("attention", q=SENTENCE, off="cross.7.0")
    assert "there is no head cross.7.0" in driver.page.locator("[role=alert]").inner_text()
    driver.page.get_by_role("button", name="Back to the model as it was trained").click()
    driver.figure("attention.cross").wait_for()
    driver.expect_refused()


def test_a_temperature_changes_the_probabilities(driver: PageDriver, runs: tuple[Path, ...]) -> None:
    driver.open("words", q=SENTENCE, at=1, temperature=2)
    found = inspect_translation(Translator.load(runs[0]), SENTENCE, InspectOptions(temperature=2.0))
    shown = driver.figure("words.alternatives").locator(".bar-value").all_inner_texts()
    second = found.predictions[1]
    expected = [second.probability, *(alternative.probability for alternative in second.alternatives)]
    assert [number(text.split()[0]) for text in shown] == printed(expected, 3)
    driver.page.get_by_label("Temperature").focus()
    for _ in range(10):
        driver.page.keyboard.press("ArrowLeft")
    driver.wait_until(
        "!document.querySelector('[data-figure=\"words.alternatives\"] .bar-value').textContent.includes('(')"
    )
    assert driver.focused("e.type") == "range"
    assert "temperature" not in driver.page.url


def test_the_beam_tree_is_shown_step_by_step(driver: PageDriver) -> None:
    driver.open("beam", q=SENTENCE)
    nodes = driver.page.locator(".tree .node")
    every = nodes.count()
    first = nodes.locator("visible=true").count()
    assert 1 <= first < every
    driver.figure("beam.tree").locator("input[type=range]").focus()
    driver.page.keyboard.press("ArrowRight")
    assert first < nodes.locator("visible=true").count() <= every
    assert "step=1" in driver.page.url
    driver.page.locator(".node[tabindex='0']").focus()
    driver.page.keyboard.press("ArrowLeft")
    assert driver.focused("e.className").startswith("node")
    assert driver.figure("beam.tree").locator(".reading").inner_text().strip()
    driver.page.get_by_role("button", name="Next step").click()  # the driver prefers reduced motion
    assert "step=2" in driver.page.url


def test_play_shows_the_beam_tree_to_its_end(browser: Browser, address: str) -> None:
    with driving(browser, address) as driver:
        driver.page.emulate_media(reduced_motion="no-preference")
        driver.page.clock.install()
        driver.open("beam", q=SENTENCE)
        driver.page.get_by_role("button", name="Play").click()
        driver.page.get_by_role("button", name="Pause").wait_for()
        driver.page.clock.run_for(60_000)
        driver.page.get_by_role("button", name="Play").wait_for()
        nodes = driver.page.locator(".tree .node")
        assert nodes.locator("visible=true").count() == nodes.count()


def test_every_chart_has_a_table_and_can_be_saved(driver: PageDriver) -> None:
    for view in VIEWS[1:]:
        driver.open(view, q=SENTENCE)
        for figure in driver.page.locator(".figure").all():
            if figure.locator(CHARTS).count():
                figure.get_by_role("button", name="Show as table").click()
                assert figure.locator(".values tbody tr").count() > 0, view
    driver.open("model", q=SENTENCE)
    with driver.page.expect_download() as download:
        driver.figure("model.blocks").get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == '"Block","Parameters"'
    assert all(re.fullmatch(r'"[\w.]+","\d+"', line) for line in lines[1:])


def test_an_address_restores_its_view(driver: PageDriver, browser: Browser, address: str) -> None:
    driver.open("attention", q=SENTENCE, kind="decoder", layer=0, head=1)
    link = driver.page.url
    with driving(browser, address) as other:
        other.page.goto(link)
        other.wait_for_view("attention")
        assert other.page.locator(".figure h2").first.inner_text() == "Decoder self-attention, layer 0, head 1"
        other.page.locator("#tab-beam").click()
        other.wait_for_view("beam")
        other.page.go_back()
        other.wait_for_view("attention")


def test_language_and_colours_can_be_switched(driver: PageDriver) -> None:
    driver.open("model")
    dark = "matchMedia('(prefers-color-scheme: dark)').matches"
    assert not driver.page.evaluate(dark)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = driver.page.evaluate(paper)
    driver.page.get_by_label("Colours").select_option("dark")
    assert driver.page.evaluate(paper) != light
    driver.page.get_by_role("button", name="한국어").click()
    driver.wait_until("document.documentElement.lang === 'ko'")
    assert driver.page.locator("#tab-model").inner_text() == "모델"
    assert driver.focused("e.lang") == "ko"
    driver.page.get_by_role("button", name="English").click()
    driver.wait_until("document.documentElement.lang === 'en'")
    driver.page.get_by_label("색상").or_(driver.page.get_by_label("Colours")).select_option("auto")


def test_a_symbol_of_the_paper_shows_the_code_that_computes_it(driver: PageDriver) -> None:
    driver.open("model", symbol="A")
    opened = driver.page.locator("details.symbol[open]")
    assert opened.count() == 1
    assert "softmax" in opened.locator(".equation").inner_text()
    code = opened.locator(".code").inner_text()
    assert "def attention_weights" in code


def test_the_next_tokens_follow_the_sliders(driver: PageDriver) -> None:
    driver.open("continue", model="writer", q="ANNA:")
    bars = driver.figure("continue.next").locator(".bar-value")
    before = bars.first.inner_text()
    slider = driver.page.get_by_label("Top-k")
    slider.focus()
    driver.page.keyboard.press("ArrowRight")
    driver.wait_until(
        "document.querySelector('[data-figure=\"continue.next\"] .bar-value').textContent.startsWith('1.000')"
    )
    assert bars.first.inner_text() != before
    driver.page.get_by_role("button", name="Generate").click()
    driver.page.locator("mark").wait_for()


def test_an_error_is_shown_beside_its_input(driver: PageDriver) -> None:
    driver.open("translate", q="x" * 5_001)
    driver.page.locator(".output .wrong").wait_for()
    assert "5000" in driver.page.locator(".output .wrong").inner_text()
    assert "wrong" in (driver.page.locator("#count").get_attribute("class") or "")
    driver.open("attention", q="der Hund " * 200)
    assert "tokens" in driver.page.locator("[role=alert]").inner_text()
    driver.expect_refused()


def test_a_standalone_page_needs_no_server(browser: Browser, runs: tuple[Path, ...], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    hostile_text = "der Hund </script><script>alert(1)</script><img src=x onerror=alert(2)> läuft"
    found = inspect(runs[0], hostile_text)
    path.write_text(stand_alone(runs[0], found), encoding="utf-8")
    with driving(browser, path.as_uri()) as driver:
        driver.context.set_offline(True)
        for view in STANDALONE_VIEWS:
            driver.open(view)
            driver.check(f"{view}-alone", rules=view == "words")
        assert driver.page.locator("[role=tab]").count() == len(STANDALONE_VIEWS)
        driver.open("words")
        assert "<script>alert(1)</script>" in driver.page.locator(".about-source").inner_text()


STANDALONE = [(2, "a really lovely film", 6), (3, None, 3)]


@pytest.mark.parametrize(("index", "text", "views"), STANDALONE)
def test_the_command_writes_a_standalone_page(
    browser: Browser, runs: tuple[Path, ...], tmp_path: Path, index: int, text: str | None, views: int
) -> None:
    path = tmp_path / "page.html"
    arguments = [] if text is None else [text]
    assert manyheads(["-q", "inspect", str(runs[index]), *arguments, "-o", str(path)]) == 0
    with driving(browser, path.as_uri(), language="ko") as driver:
        driver.page.goto(f"{path.as_uri()}?lang=ko")
        driver.page.locator("#panel[aria-busy=false] .figure").first.wait_for()
        assert driver.page.locator("[role=tab]").count() == views
        if text is not None:
            assert text in driver.page.locator(".about").inner_text()


def test_a_standalone_page_opens_in_the_language_of_the_command(
    browser: Browser, runs: tuple[Path, ...], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    for options, language in (([], "en"), (["--lang", "ko"], "ko")):
        assert manyheads(["-q", "inspect", str(runs[0]), SENTENCE, *options, "-o", str(path)]) == 0
        page = browser.new_page(locale="en-GB")
        page.goto(path.as_uri())
        page.locator("#panel[aria-busy=false] .figure").first.wait_for()
        assert page.locator("html").get_attribute("lang") == language
        page.close()


def train_right_to_left(folder: Path) -> Path:
    """Train a translator for a few updates on text whose letters are those of Hebrew and of Arabic."""
    corpus = write_corpus(folder / "corpus")
    for language, first in (("de", "א"), ("en", "ف")):
        letters = {code: chr(ord(first) + code % 26 % 10) for code in range(ord("a"), ord("z") + 1)}
        for path in corpus.glob(f"*.{language}"):
            path.write_text(path.read_text(encoding="utf-8").lower().translate(letters), encoding="utf-8")
    train(make_config(corpus, tokenizer={"kind": "characters"}), folder / "de-en")
    return folder / "de-en"


def test_text_from_right_to_left_is_shown_from_right_to_left(
    browser: Browser, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its tokens too, the arrow keys follow them, and special symbols and numbers beside it stay readable."""
    run, text, texts = train_once(tmp_path_factory, train_right_to_left), "אבג דה", list[str]()
    path = tmp_path / "page.html"
    path.write_text(stand_alone(run, inspect(run, text, InspectOptions(target="فقك قف"))), encoding="utf-8")
    with driving(browser, path.as_uri()) as driver:
        for view in ("whole", "words"):
            driver.open(view)
            texts += driver.page.locator(".whole text").all_text_contents()
            tokens = driver.page.locator(".tokens .token")
            first, second = (tokens.nth(i).bounding_box() for i in (0, 1))
            assert first is not None
            assert second is not None
            assert first["x"] > second["x"]
            tokens.first.focus()
            driver.page.keyboard.press("ArrowLeft")
            assert driver.focused("[...e.parentNode.children].indexOf(e)") == 1
        assert driver.page.locator(".about-source").first.evaluate("e => getComputedStyle(e).direction") == "rtl"
        assert f"\u2067{text}\u2069" in texts
        assert any(re.fullmatch(r"\u2067.*\u200e</s>\u200e\u2069", shown) for shown in texts)


@pytest.mark.parametrize("path", ["", "/a/translate"])
def test_the_explorer_has_a_form_for_every_operation_and_sends_it(
    browser: Browser, address: str, path: str
) -> None:
    """Use the server at its own address, and below a path of a reverse proxy."""
    with serve_below(address, path) if path else nullcontext(address) as root:
        context = browser.new_context()
        page = context.new_page()
        specification = page.request.get(f"{root}spec").json()
        (server,) = specification["servers"]
        languages = urljoin(f"{root}spec", server["url"]).removesuffix("/") + "/languages"
        assert page.request.get(languages).json()[0]["code"] == "de"
        page.goto(f"{root}docs")
        page.locator("#operations details").first.wait_for()
        operations = page.locator("#operations details")
        assert operations.count() == len(specification["paths"])
        form = operations.filter(has_text="/translate").first
        form.locator("summary").click()
        names = form.locator("[name]").evaluate_all("elements => elements.map(element => element.name)")
        assert names == ["q", "source", "target", "format", "alternatives", "glossary"]
        form.locator("textarea[name=q]").fill(SENTENCE)
        form.locator("select[name=source]").select_option("de")
        form.locator("select[name=target]").select_option("en")
        form.locator("button").click()
        form.locator("pre", has_text="translatedText").wait_for(timeout=30_000)
        assert form.locator("pre").inner_text().startswith("200 after ")
        assert page.locator("main").evaluate("e => getComputedStyle(e).maxWidth") != "none", (
            "the style sheet is loaded"
        )
        context.close()


def test_the_explorer_sends_a_file_and_downloads_its_translation(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}docs")
    operations = page.locator("#operations details")
    form = operations.filter(has_text="/translate_file")
    form.locator("summary").click()
    form.get_by_label("file (required)").set_input_files(
        {"name": "a.html", "mimeType": "text/html", "buffer": b"<pre>der Hund</pre>"}
    )
    form.get_by_label("source").select_option("de")
    form.get_by_label("target").select_option("en")
    form.get_by_role("button", name="Send").click()
    answer = form.locator("pre", has_text="translatedFileUrl")
    answer.wait_for()
    name = json.loads(answer.inner_text().partition("\n")[2])["translatedFileUrl"].rpartition("/")[2]
    form = operations.filter(has_text="GET /download_file/")
    form.locator("summary").click()
    form.get_by_label("name (required)").fill(name)
    form.get_by_role("button", name="Send").click()
    form.locator("pre", has_text="<pre>der Hund</pre>").wait_for()
    page.close()
