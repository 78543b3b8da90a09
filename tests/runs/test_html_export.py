"""The exported page computes what Python computes, in a real browser, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.runs.parts import SENTENCES, make_config, write_corpus
from tests.serving.browser import open_browser
from tests.serving.process import train_classifier, train_language_model

from manyheads.inspection.codec import array_from_json
from manyheads.runs.html_export import html_document, pack_run
from manyheads.runs.inspect import inspect_loaded, load_for_inspection
from manyheads.runs.train import train
from manyheads.tasks.inspecting import InspectOptions
from manyheads.tasks.inspecting.changes import Changes, HeadName
from manyheads.tasks.inspecting.isolation import isolated_with_changes
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.translation import Translator

TEXTS = [source for source, _ in SENTENCES][:8]
LONG = " ".join(TEXTS) + ". Haus! (der Hund) 17:45"
NEAR = 2e-3


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("html")
    train(make_config(write_corpus(folder / "corpus")), folder / "de-en")
    return {
        "translation": folder / "de-en",
        "classification": train_classifier(folder),
        "language-modeling": train_language_model(folder),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens the exported page of a run, which may ask for nothing."""
    faults: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request", lambda request: faults.append(request.url) if request.url[:5] not in ("file:", "blob:") else None
    )

    def open_page(run: Path, precision: str) -> Page:
        path = tmp_path / "model.html"
        path.write_text(html_document(run, pack_run(run, precision)), encoding="utf-8")
        page.goto(path.as_uri())
        return page

    yield open_page
    assert faults == []
    page.close()


def answer(page: Page, path: str, **body: Any) -> Any:
    """Return what the model in the page answers to a request."""
    return page.evaluate("([path, body]) => computed(path, body)", [path, body])


def assert_near(found: Any, expected: Any, where: str = "") -> None:
    """Compare JSON values: numbers nearly, arrays by their numbers, all else exactly."""
    if isinstance(expected, dict) and "uint16" in expected:
        assert array_from_json(found) == pytest.approx(array_from_json(expected), abs=NEAR), where
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, value in expected.items():
            assert_near(found[name], value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            assert_near(found[number], value, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=NEAR, rel=NEAR), where
    else:
        assert found == expected, where


def test_the_page_translates_as_python_does(runs: dict[str, Path], opened: Any) -> None:
    page = opened(runs["translation"], "fp32")
    translator = Translator.load(runs["translation"])
    for beam in (1, 3):
        for text in ["", " ", *TEXTS, LONG]:
            (expected,) = translator.translate([text], beam_size=beam, options=TranslateOptions(alignment=True))
            found = page.evaluate("([text, beam]) => window.manyheads.translate(text, { beam })", [text, beam])
            assert_near(found, expected.to_json(), text)


def test_an_int8_page_translates_nearly_as_well(runs: dict[str, Path], opened: Any) -> None:
    page = opened(runs["translation"], "int8")
    translator = Translator.load(runs["translation"])
    for text in TEXTS:
        (expected,) = translator.translate([text], beam_size=1)
        found = page.evaluate("text => window.manyheads.translate(text, { beam: 1 })", text)
        assert found["score"] == pytest.approx(expected.score, abs=0.2)


INSPECTED = [
    ("translation", {"q": TEXTS[0]}, {}),
    ("translation", {"q": TEXTS[1], "beam": 3, "temperature": 2.0}, {"beam_size": 3, "temperature": 2.0}),
    ("translation", {"q": TEXTS[1], "target": "the dog"}, {"target": "the dog"}),
    ("translation", {"q": TEXTS[1], "beam": 2, "prefix": [5, 7]}, {"beam_size": 2, "prefix": (5, 7)}),
    ("classification", {"q": "a fine film"}, {}),
    ("language-modeling", {"q": "der", "max_tokens": 5}, {"max_tokens": 5}),
]


@pytest.mark.parametrize(("task", "body", "options"), INSPECTED)
@pytest.mark.parametrize("changes", [None, {"heads": ["last.0.0"], "positions": False}])
def test_the_page_looks_inside_as_python_does(
    runs: dict[str, Path], opened: Any, task: str, body: dict[str, Any], options: dict[str, Any], changes: Any
) -> None:
    page = opened(runs[task], "fp32")
    loaded = load_for_inspection(runs[task], "cpu")
    kind = {"translation": "cross", "classification": "encoder", "language-modeling": "decoder"}[task]
    asked = changes and {**changes, "heads": [f"{kind}.0.0"]}
    found = answer(page, "api/inspect", **body, **({"changes": asked} if asked else {}))
    wanted = Changes((HeadName(kind, 0, 0),), positions=False) if changes else Changes()
    with isolated_with_changes(loaded, wanted, lambda: ()) as copied:
        expected = inspect_loaded(copied, body["q"], InspectOptions(run=runs[task].name, **options)).packed_dict()
    assert_near(found, {name: value for name, value in expected.items() if name in found})
    assert not expected.keys() - found.keys() - {"format", "version"}


def damaged(document: str, name: str) -> str:
    """A page in which the first letter of an element is another, or its last tensors are missing."""
    start = document.index(f'"manyheads-{name}"')
    if name == "tensors":
        return document[:start] + document[start:].replace('"manyheads-tensors"', '"lost"', 1)
    first = document.index(">", start) + 1
    return f"{document[:first]}{'A' if document[first] != 'A' else 'B'}{document[first + 1 :]}"


@pytest.mark.parametrize("name", ["worker", "model", "tensors"])
def test_a_page_with_a_damaged_model_says_so(
    runs: dict[str, Path], browser: Browser, tmp_path: Path, name: str
) -> None:
    document = html_document(runs["translation"], pack_run(runs["translation"], "int8"), language="en")
    path = tmp_path / "damaged.html"
    path.write_text(damaged(document, name), encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{path.as_uri()}#/translate?q=der")
    page.get_by_text("The model in this page is damaged: get a new copy of the file.").wait_for()
    page.close()


@pytest.mark.parametrize("part", ["function startWorker(", '"strings":', 'id="manyheads-worker"'])
def test_a_page_that_is_damaged_elsewhere_says_so(
    runs: dict[str, Path], browser: Browser, tmp_path: Path, part: str
) -> None:
    document = html_document(runs["translation"], pack_run(runs["translation"], "int8"))
    assert document.count(part) == 1
    path = tmp_path / "damaged.html"
    path.write_text(document.replace(part, f"{part[:-1]} "), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("#tabs *").count() == 0  # drawn before the page counts as loaded
    assert page.get_by_text("If this text stays, the page is damaged").is_visible()
    page.close()
