"""The page does what it says: in a real browser, on its own, in both languages, on a desk and on a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.runs.parts import make_config, write_corpus
from tests.serving.browser import Reader, open_browser
from tests.serving.process import Server, serving, train_classifier, train_language_model

from manyheads.cli.main import run as manyheads
from manyheads.inspection.colours import CIVIDIS, DIVERGING, hexadecimal
from manyheads.runs.inspect import inspect
from manyheads.runs.page import PAGE, script_of, stand_alone
from manyheads.runs.train import train
from manyheads.tasks.inspecting import InspectOptions, inspect_translation
from manyheads.tasks.inspecting.changes import Changes, HeadName
from manyheads.tasks.inspecting.head import inspect_head
from manyheads.tasks.inspecting.isolation import isolated_with_changes
from manyheads.tasks.translation import Translator

SENTENCE = "der Mann isst heute Brot"
VIEWS = ("translate", "words", "alignment", "attention", "steps", "beam", "training", "model", "card")
ALONE_VIEWS = tuple(view for view in VIEWS if view not in ("translate", "steps"))  # the others ask the server
NAMESPACES = ("2000/svg", "1998/Math/MathML")
CHARTS = ".chart, .matrix, .picture, .tree, .alignment, .bars, .heads, .token-bar, .strips"
# Every language and width; on each, all rules of accessibility in one of the colour schemes.
LOOKS = [("en", 1280, "light"), ("ko", 390, "dark")]


def train_back(folder: Path) -> Path:
    """A translator en-de of another shape, for the other direction: it has hardly learnt anything."""
    data = {"source": "en", "target": "de"}
    config = make_config(write_corpus(folder / "corpus"), data=data, model={"positions": "sinusoidal"})
    train(config, folder / "en-de")
    return folder / "en-de"


@pytest.fixture(scope="module")
def runs(translator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("more")
    return translator_run, train_back(folder), train_classifier(folder), train_language_model(folder)


@pytest.fixture(scope="module")
def address(runs: tuple[Path, ...]) -> Iterator[str]:
    with serving(*runs) as server:
        yield f"{server.url}/"
        assert isinstance(server, Server)
        assert server.end() == 0
        assert "fault" not in server.text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def reader(browser: Browser, address: str) -> Iterator[Reader]:
    found = Reader(browser, address)
    yield found
    found.close()


@pytest.fixture
def clean(reader: Reader) -> Iterator[Reader]:
    """The reader; whatever a test does with it, nothing forbidden happens."""
    yield reader
    assert reader.faults == []


def test_both_languages_have_the_same_strings() -> None:
    english, korean = (json.loads((PAGE / f"{code}.json").read_text(encoding="utf-8")) for code in ("en", "ko"))
    assert english.keys() == korean.keys()
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", korean[key])), key
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGE.glob("*.js"))
    for key in re.findall(r'\bt\("([\w.]+)"|\bkey: "([\w.]+)"', scripts):
        assert "".join(key) in english
    for name in " ".join(re.findall(r'\bcolumnTitles\("([\w ]+)"\)', scripts)).split():
        assert f"column.{name}" in english


def test_the_scripts_are_small_and_nothing_is_fetched_from_elsewhere() -> None:
    scripts = [script_of(path.read_text(encoding="utf-8")) for path in PAGE.glob("*.js")]
    assert sum(len(one.encode()) for one in scripts) < 85_000  # 64 kB, 17 for the steps of a head, 2 for the card
    for path in PAGE.iterdir():
        addresses = re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {f"http://www.w3.org/{name}" for name in NAMESPACES}, path.name
    index = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", index)


def test_every_letter_of_the_paper_has_a_name_in_both_languages(runs: tuple[Path, ...]) -> None:
    korean = json.loads((PAGE / "ko.json").read_text(encoding="utf-8"))
    for run in runs:
        for symbol in inspect(run).symbols:  # type: ignore[attr-defined]
            assert f"symbol.{symbol.symbol}" in korean


@pytest.mark.parametrize(("language", "width", "scheme"), LOOKS)
def test_every_view_of_a_translator(browser: Browser, address: str, language: str, width: int, scheme: str) -> None:
    reader = Reader(browser, address, language=language, width=width, scheme=scheme)
    for view in VIEWS:
        reader.open(view, q=SENTENCE)
        reader.check(view, rules=True)
    reader.close()


@pytest.mark.parametrize(("language", "width"), [("ko", 1280), ("en", 390)])
def test_every_view_in_the_other_sizes(browser: Browser, address: str, language: str, width: int) -> None:
    reader = Reader(browser, address, language=language, width=width)
    for view in VIEWS:
        reader.open(view, q=f"{SENTENCE} der Hund spielt und die Katze schläft und das Pferd singt {SENTENCE}")
        reader.check(f"{view}-long")
    reader.close()


@pytest.mark.parametrize(("language", "width", "scheme"), LOOKS)
def test_other_kinds_have_their_own_first_view(
    browser: Browser, address: str, language: str, width: int, scheme: str
) -> None:
    reader = Reader(browser, address, language=language, width=width, scheme=scheme)
    for view in ("classify", "attention", "steps"):
        reader.open(view, model="reviews", q="a really lovely film")
        reader.check(f"{view}-classifier", rules=True)
    assert reader.page.locator("[role=tab]").count() == 6
    for view in ("continue", "words", "steps"):
        reader.open(view, model="writer", q="ANNA:")
        reader.check(f"{view}-writer", rules=True)
    reader.close()


@pytest.mark.parametrize(("language", "names"), [("en", ["German", "English"]), ("ko", ["독일어", "영어"])])
def test_languages_are_named_in_the_language_of_the_page(
    browser: Browser, address: str, language: str, names: list[str]
) -> None:
    reader = Reader(browser, address, language=language)
    reader.open("translate")
    assert reader.page.locator(".side-head").all_inner_texts() == names
    reader.close()


def test_a_text_is_translated_as_it_is_typed_and_back(clean: Reader) -> None:
    clean.open("translate")
    box = clean.page.locator("#source")
    before = clean.page.locator("#count").inner_text()
    box.fill("der Hund läuft")
    clean.page.locator(".translation").wait_for()
    assert clean.page.locator(".translation").inner_text() == "the dog runs"
    assert clean.page.locator("#count").inner_text() != before
    table = clean.figure("translate.alternatives").locator("tbody tr")
    scores = [float(one.replace("−", "-")) for one in table.locator("td:nth-child(3)").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    assert table.nth(0).locator("td").nth(1).inner_text() == "the dog runs"
    assert table.nth(1).locator("u").count() > 0
    clean.page.get_by_role("button", name="Swap the languages").click()
    clean.until("document.querySelector('#source').value === 'the dog runs'")
    clean.until("document.querySelector('.output').lang === 'de'")


def test_several_sentences_are_looked_at_one_by_one(clean: Reader) -> None:
    clean.open("translate", q="der Hund läuft.\ndie Katze schläft.")
    clean.page.locator(".sentence").nth(1).click()
    clean.page.locator("#tab-attention").click()
    clean.shown("attention")
    assert "Katze" in clean.page.locator(".about-source").inner_text()


def test_another_word_leads_to_another_output(clean: Reader) -> None:
    clean.open("words", q=SENTENCE)
    first = clean.page.locator(".about-target").inner_text()
    rival = clean.figure("words.rivals").locator(".bars li").nth(1)
    piece = rival.locator(".bar-label").inner_text()
    rival.get_by_role("button").click()
    clean.page.locator(".changed").wait_for()
    assert clean.page.locator(".about-target").inner_text() != first
    assert clean.page.locator(".token").first.locator(".token-text").inner_text() == piece
    assert "given" in (clean.page.locator(".token").first.get_attribute("class") or "")
    assert "prefix=" in clean.page.url
    clean.page.locator(".changed button").click()
    clean.until("!document.querySelector('.changed')")
    assert clean.page.locator(".about-target").inner_text() == first


def test_the_numbers_are_those_of_the_inspection(clean: Reader, runs: tuple[Path, ...]) -> None:
    found = inspect(runs[0], SENTENCE)
    clean.open("attention", q=SENTENCE, kind="decoder", layer=0, head=1)
    panel = clean.figure("attention.decoder")
    panel.get_by_role("button", name="Show as table").click()
    rows = panel.locator(".values tbody tr")
    weights = found.attention[1].weights[0, 1]  # type: ignore[attr-defined]
    assert rows.count() == len(weights)
    for row, values in enumerate(weights):
        cells = rows.nth(row).locator("td").all_inner_texts()[1:]
        assert cells[row + 1 :] == ["masked"] * (len(values) - row - 1)
        shown = [float(cell.replace("−", "-")) for cell in cells[: row + 1]]
        assert shown == pytest.approx(values[: row + 1].tolist(), abs=1e-4)


def test_all_can_be_done_by_keyboard_and_the_focus_is_seen(clean: Reader) -> None:
    clean.open("translate", q=SENTENCE)
    keys = clean.page.keyboard
    clean.page.locator("#tab-translate").focus()
    for view in ("words", "alignment", "attention"):
        keys.press("ArrowRight")
        clean.shown(view)
        assert clean.focused("e.id") == f"tab-{view}"
    assert clean.focused("getComputedStyle(e).outlineStyle") == "solid"
    clean.page.locator(".matrix td[tabindex='0']").first.focus()
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    assert clean.focused("e.dataset.at") == "1 1"
    keys.press("Control+End")
    last = clean.focused("e.dataset.at")
    keys.press("Enter")
    assert "pinned" in clean.page.locator(".reading").first.inner_text()
    keys.press("Home")
    assert clean.focused("e.dataset.at") == f"{last.split()[0]} 0"
    seen = set()
    clean.page.locator(".skip").focus()
    for _ in range(60):
        keys.press("Tab")
        if clean.focused("e === document.body"):
            break
        assert clean.focused("getComputedStyle(e).outlineStyle") != "none", clean.focused("e.outerHTML")
        seen.add(clean.focused("e.tagName"))
    assert {"BUTTON", "SELECT", "INPUT", "TD"} <= seen


def test_heads_side_by_side_and_the_mask_of_padding(clean: Reader) -> None:
    clean.open("attention", q=SENTENCE, kind="encoder")
    clean.page.locator(".thumbnail").nth(1).click()
    clean.page.get_by_label("Compare with").select_option("0.0")
    assert clean.page.locator(".matrix").count() == 3, "both, and their difference"
    assert "head=1" in clean.page.url
    assert clean.page.locator(".matrix .masked").count() == 0
    clean.page.get_by_label("<pad>").check()
    clean.page.locator(".matrix .masked").first.wait_for()
    rows = clean.page.locator(".matrix").first.locator("tbody tr").count()
    assert clean.page.locator(".matrix").first.locator(".masked").count() == 3 * rows


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_the_difference_of_two_heads_has_a_scale_about_zero(clean: Reader, runs: tuple[Path, ...]) -> None:
    weights = inspect(runs[0], SENTENCE).attention[2].weights[0]  # type: ignore[attr-defined]
    clean.open("attention", q=SENTENCE, kind="cross", layer=0, head=0, other="0.1")
    panel = clean.figure("attention.cross").nth(2)
    ends = [number(part) for part in re.findall(r"[−.\d]+", panel.locator(".legend").inner_text())]
    assert ends[0] == -ends[1]
    assert ends[1] == pytest.approx(abs(weights[0] - weights[1]).max(), abs=0.006)
    assert panel.locator(".ramp.signed").count() == 1
    panel.get_by_role("button", name="Show as table").click()
    row = panel.locator(".values tbody tr").first.locator("td").all_inner_texts()[1:]
    assert [number(cell) for cell in row] == pytest.approx((weights[0] - weights[1])[0].tolist(), abs=1e-3)


def test_axes_are_named_by_side_and_language_and_heads_by_their_tokens(
    browser: Browser, address: str, runs: tuple[Path, ...]
) -> None:
    found = inspect(runs[0], "der Hund")
    pieces = [token.piece.replace("▁", "␣") for token in found.source.tokens]  # type: ignore[attr-defined]
    for language, source, target in (
        ("en", "Source (German)", "Target (English)"),
        ("ko", "소스 (독일어)", "타깃 (영어)"),
    ):
        reader = Reader(browser, address, language=language)
        reader.open("attention", q="der Hund", kind="cross")
        large = reader.figure("attention.cross")
        assert large.locator("caption").inner_text().startswith(source)
        assert large.locator(".corner").inner_text().startswith(target)
        heads = reader.figure("attention.all")
        assert source in heads.locator(".note").last.inner_text()
        assert heads.locator(".thumbnail .names").first.locator("span").all_inner_texts() == pieces
        assert heads.locator(".names.beside").count() == len(found.attention[2].weights)  # type: ignore[attr-defined]
        for name in (".matrix thead th > span", ".names.above > span"):  # else Hangul would stand on its head
            turned = reader.page.locator(name).first.evaluate("e => getComputedStyle(e).textOrientation")
            assert turned == "sideways"
        reader.open("alignment", q="der Hund")
        assert reader.figure("alignment.links").locator(".axis").all_inner_texts() == [source, target]
        reader.close()


def test_the_page_has_the_colours_of_the_pictures() -> None:
    script, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("charts.js", "page.css"))
    for name, scale in (("CIVIDIS", CIVIDIS), ("DIVERGING", DIVERGING)):
        written = re.search(rf'const {name} = "([^"]+)"', script)
        assert written
        assert written[1].split() == [hexadecimal(colour)[1:] for colour in scale]
        assert ", ".join("rgb({} {} {})".format(*colour) for colour in scale) in style


def test_a_script_loses_blanks_and_comments_and_nothing_else() -> None:
    text = '/* a */\n  const a = [1, 2];\n  const b = "x , y"; // z\n  if (a > b) c = a => { d };\n'
    expected = '\nconst a=[1,2];\nconst b = "x , y"; // z\nif(a>b)c=a=>{d};\n'
    assert script_of(text) == expected


def test_every_curve_has_a_ring_at_its_end_and_its_last_value_in_words(clean: Reader) -> None:
    clean.open("training")
    loss = clean.figure("training.loss")
    assert loss.locator(".ring").count() == 2
    names = loss.locator(".keys li").all_inner_texts()
    assert [re.split("[\n:]", name)[-2] for name in names] == ["training loss", "validation loss"]
    assert all(number(name.partition(": ")[2]) > 0 for name in names)


def test_a_head_is_computed_step_by_step(clean: Reader, runs: tuple[Path, ...]) -> None:
    translator = Translator.load(runs[0])
    right = inspect_head(translator, SENTENCE, HeadName("decoder", 0, 1))
    clean.open("steps", q=SENTENCE, kind="decoder", layer=0, head=1, query=2)
    keys = clean.page.keyboard
    lines = clean.page.locator(".strips tbody tr:has(button)")

    def column(place: int) -> list[str]:
        return [line.locator("td").nth(place).inner_text().strip() for line in lines.all()]

    for text, score in zip(column(2), right.scores[2], strict=True):
        assert number(text) == pytest.approx(score, abs=0.006)
    dots = right.queries[2] @ right.keys.T
    assert [number(text) for text in column(1)] == pytest.approx(dots.tolist(), abs=0.02)
    assert clean.page.locator("math msqrt").count() == 2, "the formula, and with the numbers of a key"
    score = clean.page.locator(".strips .current td").last.inner_text()
    assert clean.page.locator("math").last.evaluate("e => e.textContent").endswith(f"={score}")
    best = clean.page.locator(".strips .current button")
    best.focus()
    keys.press("ArrowRight")
    assert clean.focused("e.closest('.strips') !== null"), "the focus stays on the key"
    assert column(1) == ["0"] * 3 + ["−∞"] * (len(right.keys) - 3)
    keys.press("ArrowRight")
    weights = [number(text.split()[-1]) for text in column(2)]
    assert weights == pytest.approx(right.weights[2].tolist(), abs=6e-4)
    keys.press("ArrowRight")
    assert "stage=3" in clean.page.url
    panel = clean.figure("steps.output")
    panel.get_by_role("button", name="Show as table").click()
    last = panel.locator(".values tbody tr").last.locator("td").all_inner_texts()[2:]
    assert [number(text) for text in last] == pytest.approx(right.outputs[2].tolist(), abs=6e-3)
    assert clean.page.get_by_role("button", name="Next").is_disabled()
    clean.page.get_by_role("button", name="Back").click()
    assert clean.figure("steps.softmax").count() == 1
    clean.page.locator(".token").first.click()
    assert [number(text.split()[-1]) for text in column(2)] == [1.0] + [0.0] * (len(right.keys) - 1)
    clean.page.get_by_label("Kind").focus()
    keys.press("ArrowUp")
    clean.until("document.querySelector('.figure [role=group]')?.ariaLabel.startsWith('Source')")
    clean.shown("steps")
    assert clean.focused("e.tagName") == "SELECT"


def test_parts_of_the_model_can_be_turned_off(clean: Reader, runs: tuple[Path, ...]) -> None:
    translator = Translator.load(runs[0])
    clean.open("attention", q=SENTENCE, kind="cross", layer=0)
    before = clean.page.locator(".about-target").inner_text()
    clean.page.get_by_role("checkbox", name="without all heads of layer 0").check()
    clean.page.locator(".effect").wait_for()
    assert clean.focused("e.type") == "checkbox"
    heads = Changes((HeadName("cross", 0, 0), HeadName("cross", 0, 1)))
    with isolated_with_changes(translator, heads) as changed:
        expected = changed.translate([SENTENCE])[0].translation  # type: ignore[union-attr]
    texts = clean.page.locator(".effect [dir]").all_inner_texts()
    assert texts == [translator.translate([SENTENCE])[0].translation, expected.strip()]
    assert clean.page.locator(".effect u").count() > 0
    assert clean.page.locator(".about-target").inner_text() != before
    assert clean.page.locator(".thumbnail.off").count() == 2
    clean.page.get_by_role("checkbox", name="without positions").check()
    clean.until("document.querySelectorAll('.chips li').length === 3")
    clean.page.reload()
    clean.shown("attention")
    assert clean.page.locator(".chips li").count() == 3
    clean.page.locator("#tab-translate").click()
    clean.page.locator(".effect").wait_for()
    changed_text = clean.page.locator(".translation").inner_text().strip()
    assert changed_text == clean.page.locator(".effect [dir]").last.inner_text()
    clean.page.get_by_role("button", name="Turn on again: without positions").click()
    clean.until("document.querySelectorAll('.chips li').length === 2")
    clean.page.get_by_role("button", name="Back to the model as it was trained").click()
    clean.until("!document.querySelector('.changed-model')")
    clean.shown("translate")
    assert clean.page.locator(".translation").inner_text() == texts[0]
    assert "off=" not in clean.page.url


OTHERS = [("reviews", "a really lovely film", "classify"), ("writer", "ANNA:", "continue")]


@pytest.mark.parametrize(("model", "text", "view"), OTHERS)
def test_other_models_are_changed_too(clean: Reader, model: str, text: str, view: str) -> None:
    clean.open(view, model=model, q=text)
    probabilities = clean.page.locator(".bar-value").all_inner_texts()
    clean.open(view, model=model, q=text, positions=0)
    clean.page.locator(".effect").wait_for()
    assert clean.page.locator(".bar-value").all_inner_texts() != probabilities
    clean.check(f"{view}-changed", rules=True)
    clean.open("attention", model=model, q=text)
    assert clean.page.get_by_role("checkbox", name="without the causal mask").count() == (model == "writer")


def test_a_head_that_the_model_lacks_is_told_with_the_way_back(clean: Reader) -> None:
    clean.open("attention", q=SENTENCE, off="cross.7.0")
    assert "there is no head cross.7.0" in clean.page.locator("[role=alert]").inner_text()
    clean.page.get_by_role("button", name="Back to the model as it was trained").click()
    clean.figure("attention.cross").wait_for()
    assert all("400" in fault for fault in clean.faults)
    clean.faults.clear()


def test_a_temperature_changes_the_probabilities(clean: Reader, runs: tuple[Path, ...]) -> None:
    clean.open("words", q=SENTENCE, at=1, temperature=2)
    found = inspect_translation(Translator.load(runs[0]), SENTENCE, InspectOptions(temperature=2.0))
    shown = clean.figure("words.rivals").locator(".bar-value").all_inner_texts()
    one = found.predictions[1]
    expected = [one.probability, *(rival.probability for rival in one.rivals)]
    assert [number(text.split()[0]) for text in shown] == pytest.approx(expected, abs=6e-4)
    clean.page.get_by_label("Temperature").focus()
    for _ in range(10):
        clean.page.keyboard.press("ArrowLeft")
    clean.until("!document.querySelector('[data-figure=\"words.rivals\"] .bar-value').textContent.includes('(')")
    assert clean.focused("e.type") == "range"
    assert "temperature" not in clean.page.url


def test_the_beam_grows_step_by_step(clean: Reader) -> None:
    clean.open("beam", q=SENTENCE)
    nodes = clean.page.locator(".tree .node")
    every = nodes.count()
    assert nodes.locator("visible=true").count() == every
    slider = clean.figure("beam.tree").locator("input[type=range]")
    slider.focus()
    clean.page.keyboard.press("Home")
    first = nodes.locator("visible=true").count()
    assert 1 <= first < every
    clean.page.keyboard.press("ArrowRight")
    assert first < nodes.locator("visible=true").count() <= every
    assert "step=1" in clean.page.url
    clean.page.locator(".node[tabindex='0']").focus()
    clean.page.keyboard.press("ArrowLeft")
    assert clean.focused("e.className").startswith("node")
    assert clean.figure("beam.tree").locator(".reading").inner_text().strip()


def test_every_chart_is_a_table_too_and_can_be_saved(clean: Reader) -> None:
    for view in VIEWS[1:]:
        clean.open(view, q=SENTENCE)
        for figure in clean.page.locator(".figure").all():
            if figure.locator(CHARTS).count():
                figure.get_by_role("button", name="Show as table").click()
                assert figure.locator(".values tbody tr").count() > 0, view
    clean.open("model", q=SENTENCE)
    with clean.page.expect_download() as download:
        clean.figure("model.blocks").get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == '"Block","Parameters"'
    assert all(re.fullmatch(r'"[\w.]+","\d+"', line) for line in lines[1:])


def test_an_address_leads_back_to_what_was_looked_at(clean: Reader, browser: Browser, address: str) -> None:
    clean.open("attention", q=SENTENCE, kind="decoder", layer=0, head=1)
    link = clean.page.url
    other = Reader(browser, address)
    other.page.goto(link)
    other.shown("attention")
    assert other.page.locator(".figure h2").first.inner_text() == "Decoder self-attention, layer 0, head 1"
    other.page.locator("#tab-beam").click()
    other.shown("beam")
    other.page.go_back()
    other.shown("attention")
    assert other.faults == []
    other.close()


def test_language_and_colours_can_be_switched(clean: Reader) -> None:
    clean.open("model")
    dark = "matchMedia('(prefers-color-scheme: dark)').matches"
    assert not clean.page.evaluate(dark)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = clean.page.evaluate(paper)
    clean.page.get_by_label("Colours").select_option("dark")
    assert clean.page.evaluate(paper) != light
    clean.page.get_by_role("button", name="한국어").click()
    clean.until("document.documentElement.lang === 'ko'")
    assert clean.page.locator("#tab-model").inner_text() == "모델"
    assert clean.focused("e.lang") == "ko"
    clean.page.get_by_role("button", name="English").click()
    clean.until("document.documentElement.lang === 'en'")
    clean.page.get_by_label("색상").or_(clean.page.get_by_label("Colours")).select_option("auto")


def test_a_letter_of_the_paper_shows_the_code_that_computes_it(clean: Reader) -> None:
    clean.open("model", symbol="A")
    opened = clean.page.locator("details.symbol[open]")
    assert opened.count() == 1
    assert "softmax" in opened.locator(".equation").inner_text()
    code = opened.locator(".code").inner_text()
    assert "def attention_weights" in code


def test_what_comes_next_follows_the_sliders(clean: Reader) -> None:
    clean.open("continue", model="writer", q="ANNA:")
    bars = clean.figure("continue.next").locator(".bar-value")
    before = bars.first.inner_text()
    slider = clean.page.get_by_label("Top-k")
    slider.focus()
    clean.page.keyboard.press("ArrowRight")
    clean.until(
        "document.querySelector('[data-figure=\"continue.next\"] .bar-value').textContent.startsWith('1.000')"
    )
    assert bars.first.inner_text() != before
    clean.page.get_by_role("button", name="Generate").click()
    clean.page.locator("mark").wait_for()


def test_what_is_wrong_is_told_where_it_belongs(clean: Reader) -> None:
    clean.open("translate", q="x" * 5_001)
    clean.page.locator(".output .wrong").wait_for()
    assert "5000" in clean.page.locator(".output .wrong").inner_text()
    assert "wrong" in (clean.page.locator("#count").get_attribute("class") or "")
    clean.open("attention", q="der Hund " * 200)
    assert "tokens" in clean.page.locator("[role=alert]").inner_text()
    assert all("400" in fault for fault in clean.faults)  # the browser's own note of the answer
    clean.faults.clear()


def test_a_page_that_stands_alone_needs_nobody(browser: Browser, runs: tuple[Path, ...], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    trap = "der Hund </script><script>alert(1)</script><img src=x onerror=alert(2)> läuft"
    found = inspect(runs[0], trap)
    path.write_text(stand_alone(runs[0], found), encoding="utf-8")
    reader = Reader(browser, path.as_uri())
    reader.context.set_offline(True)
    for view in ALONE_VIEWS:
        reader.open(view)
        reader.check(f"{view}-alone", rules=view == "words")
    assert reader.page.locator("[role=tab]").count() == len(ALONE_VIEWS)
    reader.open("words")
    assert "<script>alert(1)</script>" in reader.page.locator(".about-source").inner_text()
    reader.close()


ALONE = [(2, "a really lovely film", 5), (3, "ANNA:", 6), (3, None, 3)]


@pytest.mark.parametrize(("place", "text", "views"), ALONE)
def test_the_command_writes_a_page_that_stands_alone(
    browser: Browser, runs: tuple[Path, ...], tmp_path: Path, place: int, text: str | None, views: int
) -> None:
    path = tmp_path / "page.html"
    asked = [] if text is None else [text]
    assert manyheads(["-q", "inspect", str(runs[place]), *asked, "-o", str(path)]) == 0
    reader = Reader(browser, path.as_uri(), language="ko")
    reader.page.goto(f"{path.as_uri()}?lang=ko")
    reader.page.locator("#panel[aria-busy=false] .figure").first.wait_for()
    assert reader.page.locator("[role=tab]").count() == views
    if text is not None:
        assert text in reader.page.locator(".about").inner_text()
    assert reader.faults == []
    reader.close()


def test_a_page_that_stands_alone_opens_in_the_language_of_the_command(
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


def test_the_explorer_has_a_form_for_every_operation_and_sends_it(browser: Browser, address: str) -> None:
    context = browser.new_context(base_url=address)
    page = context.new_page()
    specification = page.request.get("/spec").json()
    page.goto("/docs")
    page.locator("#operations details").first.wait_for()
    operations = page.locator("#operations details")
    assert operations.count() == len(specification["paths"])
    form = operations.filter(has_text="/translate").first
    form.locator("summary").click()
    names = form.locator("[name]").evaluate_all("elements => elements.map(element => element.name)")
    assert names == ["q", "source", "target", "format", "alternatives"]
    form.locator("textarea[name=q]").fill(SENTENCE)
    form.locator("select[name=source]").select_option("de")
    form.locator("select[name=target]").select_option("en")
    form.locator("button").click()
    form.locator("pre", has_text="translatedText").wait_for(timeout=30_000)
    assert form.locator("pre").inner_text().startswith("200 after ")
    context.close()
