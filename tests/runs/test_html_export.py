"""The exported page computes what Python computes, in a real browser, without a server."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import SENTENCES, make_config, write_corpus
from tests.serving.browser import Reader, open_browser
from tests.serving.process import train_classifier

from manyheads.errors import UsageError
from manyheads.inspection.capture import attention_groups
from manyheads.inspection.codec import array_from_json, to_json_values
from manyheads.runs.html_export import html_document, pack_run
from manyheads.runs.inspect import inspect_loaded, load_for_inspection
from manyheads.runs.train import train
from manyheads.search.options import Sampling
from manyheads.tasks.inspecting import InspectOptions
from manyheads.tasks.inspecting.changes import Changes, HeadName
from manyheads.tasks.inspecting.head import inspect_head
from manyheads.tasks.inspecting.isolation import isolated_with_changes
from manyheads.tasks.inspecting.next_token import next_tokens
from manyheads.tasks.language_modeling import GenerateOptions, Generator
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.translation import Translator

TEXTS = [source for source, _ in SENTENCES][:8]
LONG = " ".join(TEXTS) + ". Haus! (der Hund) 17:45"
NEAR = 2e-3


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Decoders of two layers: with one, an output is the same without the causal mask."""
    folder, deep = tmp_path_factory.mktemp("html"), {"num_decoder_layers": 2}
    train(make_config(write_corpus(folder / "corpus"), model=deep), folder / "de-en")
    longer = {"steps": 150, "save_every": 150}  # until the text is no longer one letter
    train(make_language_config(write_play(folder / "play"), model=deep, training=longer), folder / "writer")
    return {
        "translation": folder / "de-en",
        "classification": train_classifier(folder),
        "language-modeling": folder / "writer",
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


KINDS = {
    "translation": ("encoder", "decoder", "cross"),
    "classification": ("encoder",),
    "language-modeling": ("decoder",),
}


def changes_of(task: str, switched: str) -> dict[str, Any] | None:
    """Changes as a page asks for them; None for the model as it was trained."""
    if switched == "mask":
        return {"mask": False}
    return {"heads": [f"{KINDS[task][-1]}.0.0"], "positions": False} if switched == "heads and positions" else None


SWITCHED = [
    (task, body, options, switched)
    for task, body, options in INSPECTED
    for switched in ("nothing", "heads and positions", "mask")
    if (task, switched) != ("classification", "mask")
]


@pytest.mark.parametrize(("task", "body", "options", "switched"), SWITCHED)
def test_the_page_looks_inside_as_python_does(
    runs: dict[str, Path], opened: Any, task: str, body: dict[str, Any], options: dict[str, Any], switched: str
) -> None:
    """The inspection, and the steps of every head."""
    page = opened(runs[task], "fp32")
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
def test_a_head_or_a_mask_that_the_model_does_not_have_is_refused_as_by_python(
    runs: dict[str, Path], opened: Any, task: str
) -> None:
    page = opened(runs[task], "fp32")
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
def test_the_page_translates_without_the_causal_mask_as_python_does(
    runs: dict[str, Path], opened: Any, beam: int
) -> None:
    page = opened(runs["translation"], "fp32")
    loaded = Translator.load(runs["translation"])
    with isolated_with_changes(loaded, Changes(mask=False)) as copied:
        assert isinstance(copied, Translator)
        expected = copied.translate(TEXTS, beam_size=beam, n_best=beam, options=TranslateOptions(alignment=False))
    for text, right in zip(TEXTS, expected, strict=True):
        found = answer(page, "api/translate", q=text, beam=beam, changes={"mask": False})
        assert_near(found["sentences"], [right.to_json()], text)
    masked = loaded.translate(TEXTS, beam_size=beam, n_best=beam)
    assert [right.score for right in expected] != pytest.approx([right.score for right in masked], abs=NEAR)


def test_the_page_writes_without_the_causal_mask_as_python_does(runs: dict[str, Path], opened: Any) -> None:
    """Also beyond the window of 16 tokens, with the likeliest token at each step."""
    page = opened(runs["language-modeling"], "fp32")
    loaded, sampling = Generator.load(runs["language-modeling"]), Sampling(top_k=1)
    prompts, options = ["", "ANNA:\nWho go", "CLEO"], GenerateOptions(sampling, max_tokens=40)
    written = []
    with isolated_with_changes(loaded, Changes(mask=False)) as copied:
        assert isinstance(copied, Generator)
        for prompt in prompts:
            likeliest = asdict(next_tokens(copied, prompt, sampling))
            body = {"q": prompt, "top_k": 1, "changes": {"mask": False}}
            assert_near(answer(page, "api/next", **body), {**likeliest, "tokens": list(likeliest["tokens"])})
            (continuation,) = copied.generate([prompt], options)
            written.append(continuation.samples[0].text)
            assert answer(page, "api/next", **body, write=40)["text"] == written[-1]
    assert written != [one.samples[0].text for one in loaded.generate(prompts, options)]


def test_a_head_is_shown_step_by_step_and_turned_by_the_keyboard(
    runs: dict[str, Path], browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "model.html"
    path.write_text(html_document(runs["translation"], pack_run(runs["translation"], "fp32")), encoding="utf-8")
    reader = Reader(browser, path.as_uri())
    loaded = load_for_inspection(runs["translation"], "cpu")
    lines = reader.page.locator(".strips tbody tr:has(button)")

    def column(index: int) -> list[float]:
        texts = [line.locator("td").nth(index).inner_text() for line in lines.all()]
        return [float(text.split()[-1].replace("−", "-").replace("-∞", "-inf")) for text in texts]

    try:
        for mask in (True, False):
            with isolated_with_changes(loaded, Changes(mask=mask)) as copied:
                right = inspect_head(copied, TEXTS[0], HeadName("decoder", 0, 1))
            reader.open("steps", q=TEXTS[0], kind="decoder", layer=0, head=1, query=2, mask=int(mask))
            reader.figure("steps.scores").wait_for()
            assert column(2) == pytest.approx(right.scores[2].tolist(), abs=0.006)
            lines.locator("button").first.focus()
            reader.page.keyboard.press("ArrowRight")
            assert column(1) == [0.0 if seen else -math.inf for seen in right.mask[2]]
            assert mask == (-math.inf in column(1))
            reader.page.keyboard.press("ArrowRight")
            assert column(2) == pytest.approx(right.weights[2].tolist(), abs=6e-4)
            reader.page.keyboard.press("ArrowRight")
            reader.figure("steps.output").wait_for()
            reader.page.keyboard.press("ArrowLeft")
            reader.figure("steps.softmax").wait_for()
        assert reader.faults == []
    finally:
        reader.context.close()
