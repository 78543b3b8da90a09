"""The exported page computes what Python computes, in a real browser, without a server."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Error, Page
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import SENTENCES, make_config, make_languages_config, write_corpus, write_languages
from tests.serving.browser import ASK, PageDriver, driving, open_browser, serve_files, wait_until
from tests.serving.firefox import open_firefox
from tests.serving.process import train_classifier
from tests.tolerances import within
from tests.web.text.browser import node

from manyheads.errors import RunError, UsageError
from manyheads.inference.about import examples_of
from manyheads.inference.classifier import Classifier
from manyheads.inference.generation import GenerateOptions
from manyheads.inference.generator import Generator
from manyheads.inference.inspect import inspect_loaded, load_for_inspection
from manyheads.inference.inspect_options import Changes, HeadName, InspectOptions
from manyheads.inference.next_token import next_tokens
from manyheads.inference.translation.confidence import ConfidenceModel
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.head_steps import inspect_head
from manyheads.inspection.isolation import isolated_with_changes
from manyheads.reports import NO_LISTENER
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.search.options import Sampling, SearchOptions
from manyheads.tensors.capture import attention_groups
from manyheads.views.codec import array_from_json, to_json_values
from manyheads.web import check
from manyheads.web import html_export as html_export
from manyheads.web.html_export import export_for_browsers, html_document, pack_run

TEXTS = [source for source, _ in SENTENCES][:8]
LONG = " ".join(TEXTS) + ". Haus! (der Hund) 17:45"
TOLERANCE = 2e-3
PROJECT = "https://example.org/translator"  # the address of the exporter


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return runs with decoders of two layers: with one, an output is the same without the causal mask."""
    folder, deep = tmp_path_factory.mktemp("html"), {"num_decoder_layers": 2}
    train(make_config(write_corpus(folder / "corpus"), model=deep), folder / "de-en")
    longer = {"steps": 150, "save_every": 150}  # until the text is no longer one letter
    train(make_language_config(write_play(folder / "play"), model=deep, training=longer), folder / "writer")
    steps = {"steps": 120, "save_every": 60, "batch_tokens": 300, "warmup_steps": 20}
    several = make_languages_config(write_languages(folder / "languages-text"), model=deep, training=steps)
    train(several, folder / "languages")
    confidence = ConfidenceModel(0.4, (0.05, 0.6, -0.02, -0.1), 0.1, (0.3, 0.5))
    (folder / "de-en" / "confidence.json").write_text(json.dumps(confidence.to_json()), encoding="utf-8")
    return {
        "translation": folder / "de-en",
        "languages": folder / "languages",
        "classification": train_classifier(folder),
        "language-modeling": folder / "writer",
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def page_file(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that writes the exported page of a run once, and returns its file."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(task: str = "translation", precision: str = "int8") -> Path:
        path = folder / f"{task}-{precision}.html"
        document = html_document(runs[task], pack_run(runs[task], precision), project=PROJECT)
        path.write_text(document, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def pages(browser: Browser, page_file: Any) -> Iterator[tuple[Any, list[str]]]:
    """Return a function that opens the exported page of a run, which may make no request, once; and its faults."""
    faults: list[str] = []

    @cache
    def open_page(task: str, precision: str = "fp32") -> Page:
        page = browser.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: request.url[:5] in ("file:", "blob:") or faults.append(request.url))
        page.goto(page_file(task, precision).as_uri())
        return page

    yield open_page, faults
    assert faults == []


@pytest.fixture
def open_run(pages: tuple[Any, list[str]]) -> Iterator[Any]:
    open_page, faults = pages
    yield open_page
    assert faults == []


def answer(page: Page, path: str, **body: Any) -> Any:
    """Return the answer of the model in the page to a request."""
    return page.evaluate(ASK, [path, body])


def assert_near(found: Any, expected: Any, where: str = "") -> None:
    """Compare JSON values: numbers nearly, arrays by their numbers, all else exactly."""
    if isinstance(expected, dict) and "uint16" in expected:
        assert array_from_json(found) == within(array_from_json(expected), TOLERANCE), where
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, value in expected.items():
            assert_near(found[name], value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            assert_near(found[number], value, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert found == within(expected, TOLERANCE * max(1, abs(expected))), where
    else:
        assert found == expected, where


def test_the_page_translates_like_python(runs: dict[str, Path], open_run: Any) -> None:
    page = open_run("translation")
    translator = Translator.load(runs["translation"])
    for beam in (1, 3):
        for text in ["", " ", *TEXTS, LONG, f"  {TEXTS[0]}\n\n***\r\n\t12:30\n- {LONG}\n| --- | "]:
            (expected,) = translator.translate([text], beam_size=beam, options=SearchOptions(alignment=True))
            found = page.evaluate("([text, beam]) => window.manyheads.translate(text, { beam })", [text, beam])
            assert_near(found, expected.to_json(), text)
            assert (expected.confidence is None) == (not text.strip())


INSPECTED = [
    ("translation", {"q": TEXTS[0]}, {}),
    ("translation", {"q": TEXTS[1], "beam": 3, "temperature": 2.0}, {"beam_size": 3, "temperature": 2.0}),
    ("translation", {"q": TEXTS[1], "target": "the dog"}, {"target": "the dog"}),
    ("translation", {"q": TEXTS[1], "beam": 2, "prefix": [5, 7]}, {"beam_size": 2, "prefix": (5, 7)}),
    ("classification", {"q": "a fine film"}, {}),
    ("language-modeling", {"q": "der", "max_tokens": 5}, {"max_tokens": 5}),
]


def test_the_page_translates_and_inspects_in_the_direction_of_a_request(
    runs: dict[str, Path], open_run: Any
) -> None:
    page, own = open_run("languages"), load_for_inspection(runs["languages"], "cpu")
    assert isinstance(own, Translator)
    text = "the dog sings. a child reads"
    for target in ("de", "fr"):
        translator, model = own.to(source="en", target=target), f"languages en-{target}"
        (expected,) = translator.translate([text], beam_size=2, n_best=2)
        found = answer(page, "api/translate", q=text, beam=2, model=model)
        assert_near(found["sentences"][0], expected.to_json())
        for body, options in (({}, {}), ({"target": "a child"}, {"target": "a child"})):
            given = InspectOptions(run="languages", beam_size=2, **options)
            inspected = inspect_loaded(translator, "the dog", given).packed_dict()
            found = answer(page, "api/inspect", q="the dog", beam=2, model=model, **body)
            wanted = {name: value for name, value in inspected.items() if name in found and name != "run"}
            assert_near(found, wanted | {"run": found["run"]})
            assert found["inputs"][1]["piece"] == f"<to-{target}>"


def test_a_page_has_lists_of_the_source_and_the_target_languages(page_file: Any, browser: Browser) -> None:
    with driving(browser, page_file("languages").as_uri()) as driver:
        driver.open("translate")
        lists = {name: driver.page.locator(f"select[data-focus='{name}']") for name in ("From", "To")}
        lists["To"].wait_for()
        assert lists["From"].locator("option").all_inner_texts() == ["English", "German"]
        assert lists["To"].locator("option").all_inner_texts() == ["German", "French"]
        driver.page.locator("#source").fill("the dog sings")
        lists["To"].select_option("French")
        driver.wait_until("document.querySelector('.output').lang === 'fr'")
        assert driver.page.locator("#source").input_value() == "the dog sings"
        lists["From"].select_option("German")
        driver.wait_until("document.querySelector('.output').lang === 'en'")
        assert lists["To"].locator("option").all_inner_texts() == ["English"]


KINDS = {
    "translation": ("encoder", "decoder", "cross"),
    "classification": ("encoder",),
    "language-modeling": ("decoder",),
}


def changes_of(task: str, switched: str) -> dict[str, Any] | None:
    """Return changes in the form of a page's request; None for the unchanged model."""
    if switched == "mask":
        return {"mask": False}
    return {"heads": [f"{KINDS[task][-1]}.0.0"], "positions": False} if switched == "heads and positions" else None


BEAM, TARGET = INSPECTED[1:3]
CLASSIFIED, WRITTEN = INSPECTED[4:]
SWITCHED = [
    *((*case, "nothing") for case in INSPECTED[1:]),
    *((*case, "heads and positions") for case in (BEAM, CLASSIFIED)),
    *((*case, "mask") for case in (TARGET, WRITTEN)),
]


@pytest.mark.parametrize(("task", "body", "options", "switched"), SWITCHED)
def test_the_page_inspects_like_python(
    runs: dict[str, Path], open_run: Any, task: str, body: dict[str, Any], options: dict[str, Any], switched: str
) -> None:
    """Compare the inspection and the steps of every head."""
    page = open_run(task)
    loaded = load_for_inspection(runs[task], "cpu")
    changes = changes_of(task, switched)
    given = InspectOptions(run=runs[task].name, **options)
    with isolated_with_changes(loaded, Changes.from_json(changes)) as copied:
        assert [*attention_groups(copied.model)] == [*KINDS[task]]
        expected = inspect_loaded(copied, body["q"], given).packed_dict()
        heads = [
            to_json_values(inspect_head(copied, body["q"], HeadName(kind, layer, head), given), packed=True)
            for kind, modules in attention_groups(copied.model).items()
            for layer in range(len(modules))
            for head in range(2)
        ]
    found = answer(page, "api/inspect", **body, changes=changes or {})
    assert_near(found, {name: value for name, value in expected.items() if name in found})
    assert not expected.keys() - found.keys() - {"format", "version"}
    for steps in heads:
        name = {part: steps[part] for part in ("kind", "layer", "head")}
        assert_near(answer(page, "api/head", **body, **name, changes=changes or {}), steps, str(name))


@pytest.mark.parametrize("task", KINDS)
def test_a_head_or_a_mask_that_the_model_does_not_have_is_refused_like_in_python(
    runs: dict[str, Path], open_run: Any, task: str
) -> None:
    page = open_run(task)
    loaded = load_for_inspection(runs[task], "cpu")

    def refusal(**body: Any) -> str:
        with pytest.raises(Error) as error:
            answer(page, "api/head", q=TEXTS[0], **body)
        return str(error.value)

    for name in (HeadName("own", 0, 0), HeadName(KINDS[task][-1], 2, 0), HeadName(KINDS[task][-1], 0, 2)):
        with pytest.raises(UsageError) as expected:
            inspect_head(loaded, TEXTS[0], name)
        assert str(expected.value) in refusal(**name._asdict())
    if task == "classification":
        with pytest.raises(UsageError) as expected, isolated_with_changes(loaded, Changes(mask=False)):
            pass
        assert str(expected.value) in refusal(kind="encoder", changes={"mask": False})


@pytest.mark.parametrize("beam", [1, 3])
def test_the_page_translates_without_the_causal_mask_like_python(
    runs: dict[str, Path], open_run: Any, beam: int
) -> None:
    page = open_run("translation")
    loaded = Translator.load(runs["translation"])
    with isolated_with_changes(loaded, Changes(mask=False)) as copied:
        expected = copied.translate(TEXTS, beam_size=beam, n_best=beam, options=SearchOptions(alignment=False))
    for text, right in zip(TEXTS, expected, strict=True):
        found = answer(page, "api/translate", q=text, beam=beam, changes={"mask": False})
        assert_near(found["sentences"], [right.to_json()], text)
    masked = loaded.translate(TEXTS, beam_size=beam, n_best=beam)
    assert [right.score for right in expected] != within([right.score for right in masked], TOLERANCE)


def test_the_page_generates_without_the_causal_mask_like_python(runs: dict[str, Path], open_run: Any) -> None:
    """Compare greedy text also beyond the window of 16 tokens."""
    page = open_run("language-modeling")
    loaded, sampling = Generator.load(runs["language-modeling"]), Sampling(top_k=1)
    prompts = ["", "ANNA:\nWho go", "CLEO", "ANNA:\nWho goes there, at this hour of night?"]
    options = GenerateOptions(sampling, max_tokens=40)
    written = []
    with isolated_with_changes(loaded, Changes(mask=False)) as copied:
        for prompt in prompts:
            likeliest = asdict(next_tokens(copied, prompt, sampling))
            body = {"q": prompt, "top_k": 1, "changes": {"mask": False}}
            assert_near(answer(page, "api/next", **body), {**likeliest, "tokens": list(likeliest["tokens"])})
            (continuation,) = copied.generate([prompt], options)
            written.append(continuation.samples[0].text)
            assert answer(page, "api/next", **body, write=40)["text"] == written[-1]
    assert written != [generation.samples[0].text for generation in loaded.generate(prompts, options)]


PROMPTS = {"translation": TEXTS[0], "classification": "a really lovely film", "language-modeling": "ANNA:"}
# Every control that is shown and not disabled; a hint or a row that only scrolls needs no key of its own.
CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']"
SHOWN = (
    "all => all.filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.tabIndex >= 0)"
)


# Removes each focused element that is outlined from the set `missing`.
WATCH_FOCUS = """() => document.addEventListener("focusin", ({ target }) => {
  const around = [target, target.closest(".side")];
  if (around.some((part) => part && getComputedStyle(part).outlineStyle !== "none")) missing.delete(target);
})"""


def controls_without_a_key(reader: PageDriver) -> list[str]:
    """Press Tab through the page; return the controls that the focus did not reach or did not outline."""
    controls = reader.page.locator(CONTROLS)
    number = controls.evaluate_all(f"all => {{ window.missing = new Set(({SHOWN})(all)); return missing.size; }}")
    reader.page.evaluate("document.activeElement.blur()")
    for _ in range(number + 5):
        reader.page.keyboard.press("Tab")
    return list(reader.page.evaluate("[...missing].map((e) => e.outerHTML)"))


@pytest.mark.parametrize(("task", "language", "width", "scheme"), [
    ("translation", "en", 1280, "dark"),
    ("classification", "ko", 390, "light"),
    ("language-modeling", "ko", 1280, "dark"),
])  # fmt: skip
def test_every_view_of_an_exported_page_is_accessible_and_reached_by_keyboard(
    task: str, language: str, width: int, scheme: str, page_file: Any, browser: Browser
) -> None:
    """The views that all tasks share are opened in the page of a translator."""
    with driving(browser, page_file(task).as_uri(), language=language, width=width, scheme=scheme) as reader:
        reader.page.goto(f"{reader.address}?lang={language}")
        reader.page.evaluate(WATCH_FOCUS)
        tabs = reader.page.locator("[role=tab]")
        tabs.first.wait_for()
        link = reader.page.locator("footer a")
        assert (link.get_attribute("href"), link.inner_text()) == (PROJECT, PROJECT)
        views = [tab.removeprefix("tab-") for tab in tabs.evaluate_all("all => all.map((e) => e.id)")]
        shared = {"attention", "steps", "training", "model", "card"}
        assert {*views} >= shared
        for view in views if task == "translation" else [view for view in views if view not in shared]:
            reader.open(view, q=PROMPTS[task])
            # The other views are checked by all rules in the page that a server sends (tests/serving/test_page.py).
            reader.check(f"exported-{view}-{task}", rules=view == views[0])
            assert controls_without_a_key(reader) == [], view


def test_an_exported_page_opens_with_an_example_its_translation_and_its_attention(
    runs: dict[str, Path], page_file: Any, browser: Browser
) -> None:
    with driving(browser, page_file().as_uri()) as reader:
        reader.page.goto(f"{reader.address}?lang=en")
        reader.figure("translate.attention").locator(".matrix").wait_for()
        box, examples = reader.page.locator("#source"), examples_of(runs["translation"])
        assert box.input_value() == examples[0]
        assert reader.page.locator(".translation").inner_text()
        reader.page.get_by_text(re.compile("(low|medium|high) confidence")).wait_for()
        button = reader.page.get_by_role("button", name="Try an example")
        seen = {examples[0]}
        for _ in examples[1:]:
            button.click()
            seen.add(box.input_value())
        assert seen == set(examples), "a click shows another example"
        assert len(seen) > 1
        intro = reader.page.locator(".intro")
        assert "translates German into English runs inside this file" in intro.inner_text()
        assert reader.page.title() == "Translate: German → English – manyheads"
        head = reader.page.locator("meta[name=description]").get_attribute("content") or ""
        assert "a translator from German to English" in head
        icon = reader.page.locator("link[rel=icon]").get_attribute("href") or ""
        assert icon.startswith("data:image/svg+xml,")
        intro.get_by_role("button").click()
        reader.wait_for_view("card")


@pytest.mark.parametrize(
    ("task", "figure"), [("classification", "classify.label"), ("language-modeling", "continue.next")]
)
def test_an_exported_page_of_another_task_opens_with_a_validation_text_and_its_result(
    task: str, figure: str, runs: dict[str, Path], page_file: Any, browser: Browser
) -> None:
    examples = examples_of(runs[task])
    assert 0 < len(examples) <= 4
    with driving(browser, page_file(task).as_uri()) as reader:
        reader.page.goto(f"{reader.address}?lang=en")
        reader.figure(figure).wait_for()
        box, intro = reader.page.locator("#source"), reader.page.locator(".intro")
        assert box.input_value() == examples[0]
        assert intro.bounding_box()["y"] < box.bounding_box()["y"]
        reader.page.locator("#tab-whole").click()
        reader.figure("whole.model").wait_for()


@pytest.mark.parametrize(
    ("to", "address"), [("html", "javascript:alert(1)"), ("javascript", "https://example.org")]
)
def test_an_address_that_no_footer_can_show_is_refused(
    runs: dict[str, Path], tmp_path: Path, to: str, address: str
) -> None:
    with pytest.raises(UsageError, match=f"--project-url {re.escape(address)} is for --to html"):
        export_for_browsers(runs["translation"], tmp_path / "out", to, None, listener=NO_LISTENER, project=address)


# Open a view by its address, and wait until it is shown.
VIEW = """((view, state) => {
  location.hash = `#/${view}?${state}`;
  const all = [`#tab-${view}[aria-selected=true]`, "#panel[aria-busy=false]"];
  return new Promise((done) => {
    const wait = () => {
      if (all.every((part) => document.querySelector(part))) done(document.querySelector("#panel").innerText);
      else setTimeout(wait, 20);
    };
    setTimeout(wait, 20);
  });
})"""


def test_firefox_translates_and_shows_every_view_without_a_network(runs: dict[str, Path], page_file: Any) -> None:
    loaded = Translator.load(runs["translation"], device="cpu")
    (expected,) = loaded.translate([LONG], beam_size=3, options=SearchOptions(alignment=True))
    inspected = inspect_loaded(loaded, TEXTS[0], InspectOptions(run="de-en")).packed_dict()
    path = page_file("translation", "fp32")
    with open_firefox() as firefox:
        firefox.goto(f"{path.as_uri()}?lang=en")
        found = firefox.evaluate(f"window.manyheads.translate({json.dumps(LONG)}, {{ beam: 3 }})")
        assert_near(found, expected.to_json())
        found = firefox.evaluate(f"({ASK})({json.dumps(['api/inspect', {'q': TEXTS[0]}])})")
        assert_near(found["attention"], inspected["attention"])
        views = firefox.evaluate("[...document.querySelectorAll('[role=tab]')].map((e) => e.id.slice(4))")
        assert {"translate", "attention", "steps", "beam", "card"} <= {*views}
        for view in views:
            assert firefox.evaluate(f"{VIEW}({json.dumps(view)}, {json.dumps(urlencode({'q': TEXTS[0]}))})")
            assert firefox.evaluate("document.querySelectorAll('.notice.wrong').length") == 0
            wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert firefox.evaluate(wider) == 0
        assert not [address for address in firefox.requests if address[:5] not in ("file:", "blob:", "data:")]
        assert firefox.log == []


def test_a_slow_translation_is_announced_until_it_is_shown(page_file: Any, browser: Browser) -> None:
    with driving(browser, page_file().as_uri()) as reader:
        reader.open("translate", q=TEXTS[0])
        output, busy = reader.page.locator(".output"), reader.page.get_by_text("Translating", exact=True)
        first = output.inner_text()
        assert busy.count() == 0
        reader.page.evaluate("""() => {
          const { prototype } = Worker;
          const { postMessage } = prototype;
          const held = [];
          prototype.postMessage = function (message) { held.push(() => this.postMessage(message)); };
          window.go = () => {
            prototype.postMessage = postMessage;
            for (const send of held) send();
          };
        }""")
        reader.page.locator("#source").fill(TEXTS[1])
        busy.wait_for()
        assert (output.inner_text(), output.get_attribute("aria-busy")) == (first, "true")
        reader.page.evaluate("go()")
        busy.wait_for(state="detached")
        assert (output.inner_text() != first, output.get_attribute("aria-busy")) == (True, "false")


def test_a_worker_that_failed_is_started_again(page_file: Any, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(page_file().as_uri())
    translate = "(text) => window.manyheads.translate(text).then(({ translation }) => translation)"
    first = page.evaluate(translate, TEXTS[0])
    for _ in range(2):
        error = page.evaluate(
            """(text) => {
              const { prototype } = Worker;
              const { postMessage } = prototype;
              prototype.postMessage = function (message) {
                prototype.postMessage = postMessage;
                this.postMessage(null); // no message of the page: the worker throws, before it reads the next one
                this.postMessage(message);
              };
              return window.manyheads.translate(text).then(() => "", (error) => error.message);
            }""",
            LONG,
        )
        assert "null" in error
        assert page.evaluate(translate, TEXTS[0]) == first
    page.close()


def test_the_newest_inspection_replaces_those_before_it(open_run: Any) -> None:
    page = open_run("classification", "int8")
    page.evaluate("location.hash = '#/classify'")
    page.locator("#tab-classify[aria-selected=true]").wait_for()
    page.evaluate("""() => {
      window.sent = [];
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (message) {
        sent.push(message.cancel ? "cancel" : message.body?.q);
        postMessage.call(this, message);
      };
    }""")
    page.evaluate(
        """(texts) => {
          const box = document.querySelector("#source");
          for (const text of texts) {
            box.value = text;
            box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true }));
          }
        }""",
        TEXTS[:3],
    )
    wait_until(page, "sent.length === 5")
    assert page.evaluate("sent.splice(0)") == [TEXTS[0], "cancel", TEXTS[1], "cancel", TEXTS[2]]
    page.evaluate("(q) => { location.hash = `#/classify?positions=0&q=${encodeURIComponent(q)}`; }", TEXTS[5])
    page.locator("#effect .strong").wait_for()
    assert page.evaluate("sent") == [TEXTS[5]] * 2, "the model and its changed copy are shown side by side"


@pytest.mark.parametrize(
    ("name", "stored"),
    [("__proto__", "ko"), ("xx", "toString"), ("", "valueOf")],
)
def test_a_language_that_the_page_does_not_have_is_ignored(
    page_file: Any, browser: Browser, name: str, stored: str | None
) -> None:
    """The next valid choice counts: the stored one, then that of the browser; nothing invalid is stored."""
    with driving(browser, page_file().as_uri(), language=name) as reader:
        settings = {"language": stored, "theme": "hasOwnProperty"}
        reader.context.add_init_script(
            f"for (const [name, value] of Object.entries({json.dumps(settings)})) "
            "if (value !== null) localStorage.setItem(`manyheads-${name}`, value);"
        )
        reader.open("translate", q="der")
        assert reader.page.locator("html").get_attribute("lang") == ("ko" if stored == "ko" else "en")
        assert reader.page.locator("html").get_attribute("data-theme") == "auto"
        assert reader.page.evaluate("localStorage.getItem('manyheads-language')") in ("ko", "en")


def test_a_page_opens_without_storage_and_with_invalid_values_in_its_address(
    page_file: Any, browser: Browser
) -> None:
    with driving(browser, page_file().as_uri()) as reader:
        reader.context.add_init_script(
            "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } })"
        )
        numbers = ("sentence", "padding", "more", "at", "layer", "step", "checkpoint", "query", "stage", "mask")
        names = ("model", "kind", "head", "other", "symbol")
        for tab in ("translate", "words", "alignment", "attention", "steps", "beam", "model"):
            for first in (0, 1):
                values = itertools.cycle(("-7", "1e999", "0.5", "__proto__")[first:])
                reader.open(tab, q=TEXTS[0], **dict(zip((*numbers, *names), values, strict=False)))
                assert reader.page.locator(".wrong").all_inner_texts() == [], (tab, first)
        reader.page.goto(f"{page_file().as_uri()}?lang=en#/constructor?q=der&q=__proto__&%")
        reader.wait_for_view("translate")


def damaged(document: str, name: str) -> str:
    """Return a page in which the first letter of an element is another, or the last tensors are missing."""
    start = document.index(f'"manyheads-{name}"')
    if name == "tensors":
        return document[:start] + document[start:].replace('"manyheads-tensors"', '"lost"', 1)
    first = document.index(">", start) + 1
    return f"{document[:first]}{'A' if document[first] != 'A' else 'B'}{document[first + 1 :]}"


@pytest.mark.parametrize("name", ["worker", "model", "tensors"])
def test_a_page_with_a_damaged_model_shows_an_error(
    page_file: Any, browser: Browser, tmp_path: Path, name: str
) -> None:
    document = page_file().read_text("utf-8")
    path = tmp_path / "damaged.html"
    path.write_text(damaged(document, name), encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{path.as_uri()}?lang=en#/translate?q=der")
    page.get_by_text("The model in this page is damaged: get a new copy of the file.").wait_for()
    page.close()


DAMAGES: dict[str, Callable[[str], str]] = {
    **{
        part: lambda document, part=part: document.replace(part, part.replace(part[-3], "\t"))
        for part in ("function startWorker(", '"strings":', "</style>")
    },
    **{f"cut after {length} characters": itemgetter(slice(length)) for length in (1_500, 60_000)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_page_that_is_damaged_outside_its_model_shows_an_error(
    page_file: Any, browser: Browser, tmp_path: Path, damage: str
) -> None:
    document = page_file().read_text("utf-8")
    path = tmp_path / "damaged.html"
    path.write_text(DAMAGES[damage](document), encoding="utf-8")
    assert path.read_text("utf-8") != document
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("#tabs *").count() == 0  # drawn before the page counts as loaded
    assert page.get_by_text("If this text stays, the page is damaged").is_visible()
    page.close()


# --- the files of `manyheads export` ---


@pytest.mark.parametrize(
    ("task", "to", "formats"),
    [
        ("translation", "html", ["float32", None]),
        ("classification", "javascript", [None]),
        ("language-modeling", "html", [None]),
    ],
)
def test_an_export_is_compared_with_the_run_in_node(
    runs: dict[str, Path], tmp_path: Path, task: str, to: str, formats: list[str | None]
) -> None:
    """The fixture `modules` compares the other tasks in float32."""
    node()
    for numbers in formats:
        out = tmp_path / f"{numbers}.html" if to == "html" else tmp_path / f"{numbers}"
        done = export(runs[task], out, to, quantization=numbers)
        assert (done.quantization, done.scoring) == (numbers or "int8", "")
        assert done.parity.largest < (1e-4 if numbers else 0.5)
        assert done.bytes == sum(path.stat().st_size for path in [out, *out.rglob("*")] if path.is_file())
        assert done.lines()[1] == done.parity.line()
    with pytest.raises(RunError, match="exists"):
        export(runs[task], out, to)


def test_an_export_without_node_reports_that_it_was_not_compared(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_find_node", lambda: None)
    done = export(runs["translation"], tmp_path / "page.html", "html", quantization="float32")
    assert done.lines()[1:] == [
        "not compared: that needs Node.js 18 or newer, and torch",
        "verdict: not compared with the run",
    ]
    assert done.to_json()["parity"] is None


def test_float16_and_a_model_too_large_for_a_browser_are_refused(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="float16 does not go with --to html"):
        export(runs["translation"], tmp_path / "page.html", "html", quantization="float16")
    monkeypatch.setattr(html_export, "_MAX_TENSOR_BYTES", 1000)
    with pytest.raises(UsageError, match=r"page can hold 0 MiB\. With --quantization int8 they are a quarter"):
        export(runs["translation"], tmp_path / "page.html", "html", quantization="float32")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def modules(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a JavaScript module of each run, in float32, which computes what the run computes."""
    folder = tmp_path_factory.mktemp("modules")
    for task, run in runs.items():
        done = export(run, folder / task, "javascript", quantization="float32")
        assert done.parity is None or done.parity.largest < 1e-4, task
    return folder


def run_module(folder: Path, script: str) -> Any:
    """Return the result of a script that imports a module in Node.js."""
    text = f'import * as manyheads from "{(folder / "manyheads.js").as_uri()}";\n'
    text += f"console.log(JSON.stringify(await (async () => {{ {script} }})()));"
    command = [node(), "--input-type=module", "-e", text]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)


def test_a_module_computes_in_node_what_python_computes(runs: dict[str, Path], modules: Path) -> None:
    (expected,) = Translator.load(runs["translation"]).translate(
        [LONG], beam_size=3, n_best=2, options=SearchOptions(alignment=True)
    )
    script = f"return manyheads.translate({json.dumps(LONG)}, {{ beam: 3, nBest: 2 }});"
    assert_near(run_module(modules / "translation", script), expected.to_json())
    (classes,) = Classifier.load(runs["classification"]).classify(["a fine film"])
    found = run_module(modules / "classification", 'return manyheads.classify("a fine film");')
    assert {entry["label"]: entry["probability"] for entry in found} == within(classes.probabilities, TOLERANCE)
    assert found[0]["label"] == classes.label
    assert run_module(modules / "classification", 'return manyheads.classify(" ");') == []
    generator = Generator.load(runs["language-modeling"])
    (text,) = generator.generate(["der"], GenerateOptions(sampling=None, max_tokens=8))
    found = run_module(
        modules / "language-modeling", 'return manyheads.generate("der", { maxTokens: 8, temperature: 0 });'
    )
    assert found == text.samples[0].text
    script = (
        'const say = () => manyheads.generate("der", { maxTokens: 8, seed: 3 }); return [await say(), await say()];'
    )
    assert len(set(run_module(modules / "language-modeling", script))) == 1


def test_a_module_translates_in_each_direction(runs: dict[str, Path], modules: Path) -> None:
    script = """
      const model = await manyheads.load();
      const failed = (work) => work().then(() => "no error", (error) => error.message);
      const text = async (options) => (await model.translate("the dog", { beam: 1, ...options })).translation;
      return {
        directions: model.directions,
        texts: [await text({ target: "fr" }), await text({ source: "en", target: "de" })],
        errors: [await failed(() => text({})), await failed(() => text({ target: "it" }))],
      };
    """
    found, own = run_module(modules / "languages", script), Translator.load(runs["languages"])
    assert found["directions"] == [["en", "de"], ["de", "en"], ["en", "fr"]]
    texts = [own.translate(["the dog"], target=target, beam_size=1)[0].translation for target in ("fr", "de")]
    assert found["texts"] == texts
    assert found["errors"] == [
        "any to any is not one of the directions en-de, de-en, en-fr.",
        "any to it is not one of the directions en-de, de-en, en-fr.",
    ]


def test_a_module_reports_errors(modules: Path) -> None:
    tried = """
      const failed = (work) => work().then(() => "no error", (error) => error.message);
      const model = await manyheads.load();
      const signal = AbortSignal.abort();
      const found = [
        await failed(() => model.classify("x")),
        await failed(() => model.translate("der Hund", { signal })),
        await failed(() => model.translate("der Hund", { beam: 0 })),
        await failed(() => manyheads.load("missing.bin")),
        await failed(() => manyheads.load(new Uint8Array(4))),
        await failed(() => manyheads.load(new Uint8Array(40).fill(1))),
        await failed(() => manyheads.load(new Uint8Array(40))),
      ];
      model.close();
      return [...found, await failed(() => model.translate("der Hund"))];
    """
    messages = run_module(modules / "translation", tried)
    expected = [
        'this model is of the task "translation": call translate() instead of classify().',
        "cancelled",
        "beam = 0 must be a whole number from 1 on.",
        "missing.bin",
        "it ends too early",
        "it ends too early",
        "JSON",
        "the model was closed.",
    ]
    assert len(messages) == len(expected)
    for message, part in zip(messages, expected, strict=True):
        assert part in message


def test_the_card_of_a_module_shows_a_program_that_runs(modules: Path) -> None:
    for folder in sorted(modules.iterdir()):
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert "- Scores on " in card
        (program,) = re.findall(r"^```js\n(.*?)^```", card, re.MULTILINE | re.DOTALL)
        (folder / "program.mjs").write_text(program, encoding="utf-8")
        subprocess.run([node(), "program.mjs"], cwd=folder, check=True, timeout=60)


def test_a_page_shows_the_card_of_its_run(runs: dict[str, Path], browser: Browser, tmp_path: Path) -> None:
    export(runs["translation"], tmp_path / "page.html", "html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri() + "?lang=en#/card")
    card = page.locator("#panel")
    card.get_by_text("Scores on 6 sentences of its test set").wait_for()
    for text in ("none stated", "int8", "de to en", "Training: "):
        assert card.get_by_text(text).count() >= 1, text
    page.close()


def test_a_module_runs_in_a_page(browser: Browser, modules: Path, runs: dict[str, Path]) -> None:
    (expected,) = Translator.load(runs["translation"]).translate([TEXTS[0]])
    with serve_files(modules / "translation") as address:
        page = browser.new_page()
        page.goto(f"{address}/package.json")
        script = "text => import('/manyheads.js').then((module) => module.translate(text))"
        assert page.evaluate(script, TEXTS[0])["translation"] == expected.translation
        page.close()


# Built-in functions that came after Chrome 97, Firefox 104, Safari 16.4 and Node.js 18.
NEWER = """
  for (const [owner, names] of [
    [Array, "fromAsync"], [Object, "groupBy"], [Map, "groupBy"], [Promise, "withResolvers try"], [RegExp, "escape"],
    [String.prototype, "isWellFormed toWellFormed"], [Uint8Array, "fromBase64 fromHex"], [AbortSignal, "any"],
    [ArrayBuffer.prototype, "transfer transferToFixedLength"],
    [Array.prototype, "toSorted toReversed toSpliced with"],
    [Object.getPrototypeOf(Uint8Array.prototype), "toSorted toReversed with"],
    [Set.prototype, "union intersection difference isSubsetOf"],
    [Object.getPrototypeOf(Object.getPrototypeOf([].values())), "map filter take drop flatMap reduce toArray some"],
  ]) for (const name of names.split(" ")) delete owner[name];
"""


def test_a_module_needs_no_functions_that_the_oldest_supported_browsers_lack(modules: Path) -> None:
    calls = {
        "translation": f"translate({json.dumps(LONG)}, {{ beam: 3 }})",
        "classification": 'classify("a fine film")',
        "language-modeling": 'generate("der", { maxTokens: 8, seed: 3 })',
    }
    for task, call in calls.items():
        found = [run_module(modules / task, f"{older} return manyheads.{call};") for older in ("", NEWER)]
        assert found[0] == found[1]


def test_the_types_of_a_module_name_its_exports(modules: Path) -> None:
    found = run_module(modules / "translation", "return Object.keys(manyheads);")
    types = (modules / "translation" / "manyheads.d.ts").read_text(encoding="utf-8")
    assert sorted(found) == sorted(re.findall(r"^export function (\w+)", types, re.MULTILINE))
    own = "Object.getOwnPropertyNames(Object.getPrototypeOf(model))"
    script = f"const model = await manyheads.load(); return [...Object.keys(model), ...{own}];"
    found = run_module(modules / "translation", script)
    (model,) = re.findall(r"^export interface Model \{(.*?)^\}", types, re.MULTILINE | re.DOTALL)
    named = re.findall(r"^  (?:readonly )?(\w+)[?(:]", model, re.MULTILINE)
    assert set(found) - {"constructor"} == set(named)
