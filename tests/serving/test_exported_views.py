"""What the views of an exported page draw, compute and save, asked of one page that is loaded once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Download, Page
from tests.serving.browser import PageDriver, driving, open_modules, serve_files
from tests.tolerances import printed, within

from manyheads.inference.inspect import inspect
from manyheads.inference.inspect_options import Changes
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.isolation import isolated_with_changes
from manyheads.views.documents import TranslationInspection
from manyheads.web.html_export import html_document, pack_run

SENTENCE = "der Mann isst heute Brot"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def modules(browser: Browser) -> Iterator[Page]:
    with open_modules(browser) as page:
        yield page


@pytest.fixture(scope="module")
def page(browser: Browser, translator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageDriver]:
    path = tmp_path_factory.mktemp("views") / "page.html"
    path.write_text(html_document(translator_run, pack_run(translator_run, "fp32")), encoding="utf-8")
    with driving(browser, path.as_uri()) as found:
        yield found


@pytest.fixture
def driver(page: PageDriver) -> Iterator[PageDriver]:
    yield page
    assert page.faults == []


@pytest.fixture(scope="module")
def inspection(translator_run: Path) -> TranslationInspection:
    found = inspect(translator_run, SENTENCE)
    assert isinstance(found, TranslationInspection)
    return found


def current_step(driver: PageDriver) -> str:
    return driver.page.locator(".whole-detail h3").inner_text()


def test_the_whole_model_goes_from_the_text_to_the_next_token(
    driver: PageDriver, inspection: TranslationInspection
) -> None:
    driver.open("whole", q=SENTENCE)
    driver.check("whole", rules=True)
    assert driver.page.locator("footer").count() == 0, "a page has a footer only with the address of a project"
    next_step = driver.page.get_by_role("button", name="Next step")
    titles = [current_step(driver)]
    while titles[-1] != "The next token":
        next_step.click()
        titles.append(current_step(driver))
        assert driver.page.locator(".block.now").count() > 0
        assert len(driver.page.locator(".whole-detail p").first.inner_text()) > 20
    encoder = ["Pieces", "Queries, keys, values", "Scores", "Feed-forward"]
    decoder = ["Masked self-attention", "Cross-attention", "Feed-forward", "Logits"]
    assert [title for title in titles if title in {*encoder, *decoder}] == [*encoder, *decoder]
    first, second = inspection.predictions[:2]
    assert f"→ {first.piece.replace('▁', '␣')}" in driver.page.locator(".whole").inner_text()
    next_step.click()  # the token is read, and the next one is written
    driver.wait_until("document.querySelectorAll('.whole-figure .token')[1].ariaPressed === 'true'")
    assert current_step(driver) == "What is written so far"
    assert f"→ {second.piece.replace('▁', '␣')}" in driver.page.locator(".whole").inner_text()
    driver.check("whole-second", rules=True)


def test_a_step_of_the_whole_model_shows_the_strongest_weight_and_opens_its_head(
    driver: PageDriver, inspection: TranslationInspection
) -> None:
    driver.open("whole", q=SENTENCE, at=1)
    driver.page.locator(".block", has_text="Cross-attention").first.focus()
    assert current_step(driver) == "Cross-attention"
    shown = re.search(
        r"most at (\S+): ([\d.]+) \(layer 0, head (\d)\)", driver.page.locator(".whole-detail").inner_text()
    )
    assert shown
    piece, weight, head = shown[1].replace("␣", "▁"), float(shown[2]), shown[3]
    words = [i for i, token in enumerate(inspection.source.tokens) if token.word is not None]
    weights = inspection.attention[2].weights[-1, :, 1]  # (H, S)
    assert weight == printed(float(weights[:, words].max()), 2)
    of_piece = [i for i in words if inspection.source.tokens[i].piece == piece]
    assert weight == printed(float(weights[int(head), of_piece].max()), 2)
    driver.page.keyboard.press("Enter")
    driver.wait_for_view("attention")
    state = parse_qs(driver.page.url.partition("?")[2].partition("?")[2])
    assert (state["kind"], state["head"]) == (["cross"], [head])
    driver.page.go_back()
    driver.wait_for_view("whole")
    driver.page.locator(".block[tabindex='0']").focus()
    driver.page.keyboard.press("Home")
    assert current_step(driver) == "The next token", "the arrow keys move from the top of the picture to its bottom"


def test_the_tab_of_the_view_is_in_sight_on_a_phone_and_an_embedding_page_stays_where_it_is(
    page: PageDriver,
) -> None:
    folder, _, name = page.address.removeprefix("file://").rpartition("/")
    frame = f'<iframe src="{name}#/training" width=300></iframe>'
    (Path(folder) / "outer.html").write_text(f"<p style='height: 3000px'>x</p>{frame}", encoding="utf-8")
    with serve_files(Path(folder)) as address:  # browsers isolate files from each other
        embedding = page.context.new_page()
        embedding.goto(f"{address}/outer.html")
        embedded = embedding.frame_locator("iframe")
        embedded.locator("#tab-training[aria-selected=true]").wait_for()
        tab, row = (embedded.locator(part).bounding_box() for part in ("#tab-training", ".tabs-row"))
        assert tab
        assert row
        assert row["x"] < tab["x"] < tab["x"] + tab["width"] < row["x"] + row["width"]
        assert embedding.evaluate("scrollY") == 0
        embedding.close()


def test_the_ends_of_a_colour_scale_are_beside_it_on_a_phone(driver: PageDriver) -> None:
    driver.page.set_viewport_size({"width": 390, "height": 850})
    driver.open("attention", q=SENTENCE)
    scale = driver.figure("attention.cross").locator(".scale")
    words = driver.figure("attention.cross").locator(".legend > span").first
    assert scale.bounding_box()["height"] <= words.bounding_box()["height"] + 1
    assert re.fullmatch(r"0\.00\s*1\.00", scale.inner_text())
    driver.page.set_viewport_size({"width": driver.width, "height": 850})


def save(driver: PageDriver, key: str, form: str) -> Download:
    with driver.page.expect_download() as download:
        driver.figure(key).get_by_role("button", name=f"Save this picture as {form}").click()
    assert download.value.suggested_filename == f"{key}.{form.lower()}"
    return download.value


@pytest.mark.parametrize(
    ("view", "key"),
    [
        ("translate", "translate.attention"),
        ("whole", "whole.model"),
        ("words", "words.alternatives"),
        ("attention", "attention.cross"),
        ("steps", "steps.scores"),
        ("beam", "beam.tree"),
    ],
)
def test_a_figure_is_saved_as_a_picture_with_its_texts_where_they_are(
    driver: PageDriver, tmp_path: Path, view: str, key: str
) -> None:
    driver.open(view, q=SENTENCE, kind="cross", layer=0, head=0)
    save(driver, key, "SVG").save_as(tmp_path / "picture.svg")
    picture = ElementTree.parse(tmp_path / "picture.svg").getroot()
    texts = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]
    assert driver.figure(key).locator("h2").inner_text() in texts
    drawn = (
        driver.figure(key).locator("tbody th, .node:visible > span, .block text, .strips td").all_text_contents()
    )
    saved = "".join("".join(texts).split())
    assert not [text for text in drawn if "".join(text.split()) not in saved]
    links = driver.figure(key).locator("button.quiet").all_text_contents()
    assert links
    assert not set(links) & set(texts), "a picture has nothing to press"
    width, height = (float(picture.get(name, "0")) for name in ("width", "height"))
    for text in picture.iter(f"{SVG}text"):
        if "transform" not in text.attrib and text.get("text-anchor") is None:
            assert 0 < float(text.get("x", "0")) < width
            assert 0 < float(text.get("y", "0")) < height
    assert not {"class", "href", "style"} & {
        name for element in picture.iter() for name in element.attrib if element.tag != f"{SVG}image"
    }
    save(driver, key, "PNG").save_as(tmp_path / "picture.png")
    head = (tmp_path / "picture.png").read_bytes()[:24]
    assert head[1:4] == b"PNG"
    assert int.from_bytes(head[16:20]) == round(2 * width)
    assert driver.figure(key).evaluate("e => e.className === 'figure' && !e.style.width"), (
        "the figure is as it was before"
    )


def test_a_picture_has_every_colour_and_no_box_without_one(driver: PageDriver, tmp_path: Path) -> None:
    driver.open("attention", q=SENTENCE, kind="cross", layer=0, head=0)
    cells = driver.figure("attention.cross").locator("td[data-at]")
    cells.first.evaluate("e => { e.style.backgroundColor = 'rgb(122, 48, 0)'; }")  # the lowest of a difference
    save(driver, "attention.cross", "SVG").save_as(tmp_path / "picture.svg")
    picture = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    colours = set(cells.evaluate_all("all => all.map((e) => getComputedStyle(e).backgroundColor)"))
    assert not [colour for colour in colours if f'fill="{colour}"' not in picture]
    assert "rgba(0, 0, 0, 0)" not in picture


def test_all_rows_of_a_matrix_are_seen_at_once_on_a_projector(driver: PageDriver) -> None:
    driver.page.set_viewport_size({"width": 1280, "height": 720})
    driver.open("attention", q=SENTENCE, kind="cross")
    last = driver.page.locator(".matrix tbody tr").last.bounding_box()
    card = driver.figure("attention.cross").bounding_box()
    assert last
    assert card
    assert last["y"] + last["height"] <= 720
    assert last["width"] > 0.85 * card["width"]
    driver.page.set_viewport_size({"width": 1280, "height": 850})


def test_punctuation_stands_alone_in_an_alignment(driver: PageDriver, inspection: TranslationInspection) -> None:
    driver.open("alignment", q=SENTENCE)
    pharaoh = driver.page.locator(".pharaoh code").inner_text()
    assert inspection.alignment
    assert sorted(pharaoh.split()) == sorted(inspection.alignment.pharaoh.split())


def test_signs_at_the_ends_of_a_word_are_units_of_their_own(modules: Page) -> None:
    words = ["(So,", "U.S.", "it's", "…"]
    pieces = [["▁(", "So", ","], ["▁U", ".", "S", "."], ["▁it", "'", "s"], ["▁…"]]
    tokens = [{"id": 0, "piece": piece, "word": word} for word, own in enumerate(pieces) for piece in own]
    script = """async ([words, tokens]) => {
      const { unitsOf } = await import("/page/views/alignment.js");
      return [true, false].map((apart) => unitsOf({ words, tokens }, apart));
    }"""
    units = modules.evaluate(script, [words, [*tokens, {"id": 2, "piece": "</s>", "word": None}]])
    assert units[0]["texts"] == ["(", "So", ",", "U.S", ".", "it's", "…"]
    assert units[0]["unitOf"] == [0, 1, 2, 3, 3, 3, 4, 5, 5, 5, 6, None]
    assert units[1]["texts"] == words
    assert units[1]["unitOf"] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, None]


def changed_words(words: list[str], others: list[str]) -> int:
    """Return how many words of two texts are not in their longest common subsequence."""

    @cache
    def common(i: int, k: int) -> int:
        if i == len(words) or k == len(others):
            return 0
        same = 1 + common(i + 1, k + 1) if words[i] == others[k] else 0
        return max(same, common(i + 1, k), common(i, k + 1))

    return len(words) + len(others) - 2 * common(0, 0)


def test_the_changes_with_the_largest_effect_are_offered(driver: PageDriver, translator_run: Path) -> None:
    translator = Translator.load(translator_run)
    before = translator.translate([SENTENCE])[0].translation.split()
    changes = {
        f"without {name} in layer 0": Changes.from_json({"heads": [f"{kind}.0.{head}" for head in (0, 1)]})
        for kind, name in (
            ("encoder", "encoder self-attention"),
            ("decoder", "decoder self-attention"),
            ("cross", "cross-attention"),
        )
    } | {"without positions": Changes(positions=False), "without the causal mask": Changes(mask=False)}
    effects = {}
    for name, change in changes.items():
        with isolated_with_changes(translator, change) as changed:
            after = changed.translate([SENTENCE])[0].translation.split()
        effects[name] = changed_words(after, before)
    driver.page.evaluate("performance.now = () => 0")  # no machine is too slow to try all
    driver.open("attention", q=SENTENCE, kind="cross")
    buttons = driver.page.locator(".examples button")
    buttons.first.wait_for()
    found = dict(text.split("\n") for text in buttons.all_inner_texts())
    assert len(found) == 3
    largest = sorted(effects.values(), reverse=True)
    assert [effects[name.strip()] for name in found] == largest[:3]
    assert found[next(iter(found))] == f"words that change: {largest[0]}"
    buttons.first.click()
    driver.page.locator(".effect .different").first.wait_for()
    assert driver.page.locator(".chips li").count() > 0


def test_a_logarithmic_axis_has_equal_steps_for_equal_factors(modules: Page) -> None:
    series = [{"name": "up", "x": [0, 1, 2, 3], "y": [1, 10, 100, 0]}, {"name": "down", "x": [0, 3], "y": [100, 1]}]
    script = """async (series) => {
      const { curvesFigure } = await import("/page/curves.js");
      document.body.append(curvesFigure("training.loss", series, "x", "y"));
    }"""
    modules.evaluate(script, series)
    chart = modules.locator(".chart")
    chart.locator("path.curve").first.wait_for()
    numbers = [
        float(part) for part in re.findall(r"[\d.]+", chart.locator("path.curve").first.get_attribute("d") or "")
    ]
    heights = numbers[1::2]
    assert heights[0] - heights[1] == within(heights[1] - heights[2], 0.2)
    assert heights[3] == heights[0], "a value that is not positive is at the low end"
    assert chart.locator(".tick.end:not(.name)").all_text_contents() == ["1", "2", "5", "10", "20", "50", "100"]
    names = chart.locator("text.name")
    assert names.all_text_contents() == ["up: 0", "down: 1"]
    up, down = (float(name.get_attribute("y") or "0") for name in names.all())
    assert abs(up - down) > 15
