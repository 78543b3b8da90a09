"""The routes of the web page return the results of the package."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.serving.process import GERMAN, Server
from tests.tolerances import approx, sampled, within

from manyheads.inference.inspect import inspect, inspect_loaded
from manyheads.inference.inspect_options import Changes, InspectOptions
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.isolation import isolated_with_changes
from manyheads.views.codec import from_json_values
from manyheads.views.documents import ClassificationInspection, Inspection, TranslationInspection
from manyheads.views.parts import HeadSteps


@pytest.fixture(scope="module")
def client(server: Server) -> Any:
    with server.client() as found:
        yield found


def post(client: httpx.Client, path: str, **body: object) -> Any:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def inspect_translation(client: httpx.Client, **body: object) -> TranslationInspection:
    found = Inspection.from_dict(post(client, "inspect", model="de-en", **body))
    assert isinstance(found, TranslationInspection)
    return found


def test_the_models_are_listed_with_the_facts_that_the_page_needs(client: httpx.Client) -> None:
    document = client.get("/api/models").json()
    assert [(model["name"], model["task"]) for model in document["models"]] == [
        ("de-en", "translation"), ("reviews", "classification"), ("writer", "language-modeling"),
    ]  # fmt: skip
    translator = document["models"][0]
    assert (translator["source"], translator["target"], translator["beam"]) == ("de", "en", 2)
    assert translator["examples"]
    assert set(translator["examples"]) <= set(GERMAN)
    assert document["char_limit"] == 5_000
    assert document["key_required"] is False
    assert document["suggestions"] is False
    assert ".html" in document["files"]


def test_an_inspection_is_that_of_the_package(client: httpx.Client, translator_run: Path) -> None:
    sentence = GERMAN[3]
    found, own = (
        inspect_translation(client, q=sentence, beam=3, padding=2),
        inspect(translator_run, sentence, InspectOptions(beam_size=3, padding=2)),
    )
    assert isinstance(own, TranslationInspection)
    assert found.target == own.target
    assert [hypothesis.text for hypothesis in found.hypotheses] == [
        hypothesis.text for hypothesis in own.hypotheses
    ]
    for attention, other in zip(found.attention, own.attention, strict=True):
        assert attention.weights == within(other.weights, 2e-5)
        np.testing.assert_array_equal(attention.mask, other.mask)
    assert found.beam is not None
    assert own.beam is not None
    assert [node.state for node in found.beam.nodes] == [node.state for node in own.beam.nodes]
    assert found.score == approx(own.score)


def test_a_prefix_is_continued_and_a_given_target_is_inspected(client: httpx.Client) -> None:
    first = inspect_translation(client, q=GERMAN[0])
    alternative = first.predictions[0].alternatives[0]
    other = inspect_translation(client, q=GERMAN[0], prefix=[alternative.id])
    assert other.target.tokens[0].id == alternative.id
    assert [prediction.forced for prediction in other.predictions][:2] == [True, False]
    assert other.beam is not None
    read = inspect_translation(client, q=GERMAN[0], target="the cat sings")
    assert (read.target.text, read.forced, read.beam) == ("the cat sings", True, None)


def test_a_changed_model_translates_and_is_inspected(client: httpx.Client, translator_run: Path) -> None:
    heads = [f"cross.{layer}.{head}" for layer in range(1) for head in range(2)]
    text = f"{GERMAN[0]}. {GERMAN[9]}."
    before = post(client, "translate", model="de-en", q=text)
    after = post(client, "translate", model="de-en", q=text, beam=3, changes={"heads": heads})
    assert after["sentences"][0]["source"] == before["sentences"][0]["source"]
    assert after["translation"] != before["translation"]
    assert len(after["sentences"][0]["hypotheses"]) == 3
    assert post(client, "translate", model="de-en", q=text)["translation"] == before["translation"]
    for changes in ({"heads": heads}, {"mask": False}, {"positions": False}):
        sentence = post(client, "translate", model="de-en", q=GERMAN[3], changes=changes)["sentences"][0]
        found = inspect_translation(client, q=GERMAN[3], changes=changes)
        assert found.target.text == sentence["translation"]
        assert found.score == approx(sentence["score"])
    assert inspect_translation(client, q=GERMAN[3], occlusion=False).occlusion is None


def test_a_head_is_described_step_by_step(client: httpx.Client) -> None:
    asked = {"q": GERMAN[3], "padding": 2, "changes": {"positions": False}}
    inspected = inspect_translation(client, **asked)
    for index, attention in enumerate(inspected.attention):
        document = post(client, "head", model="de-en", kind=attention.kind, layer=0, head=1, **asked)
        found = from_json_values(HeadSteps, document, "head")
        assert (found.kind, found.layer, found.head) == (attention.kind, 0, 1)
        assert found.weights == within(attention.weights[0, 1], 5e-5)
        np.testing.assert_array_equal(found.mask, inspected.attention[index].mask)
        assert found.outputs == within(found.weights @ found.values, 2e-3)
    for model, kind in (("reviews", "encoder"), ("writer", "decoder")):
        assert post(client, "head", model=model, q="a fine film", kind=kind)["weights"]["shape"][0] > 2


def test_the_next_tokens_are_those_of_the_changed_model(client: httpx.Client) -> None:
    asked = {"model": "writer", "q": "ANNA: no"}
    plain = post(client, "next", **asked)["tokens"]
    for changes in ({"positions": False}, {"heads": ["decoder.0.0"]}):
        tokens = post(client, "next", **asked, changes=changes)["tokens"]
        assert tokens != plain
        written = post(client, "next", **asked, changes=changes, top_k=1, write=1)["text"]
        assert written == tokens[0]["text"]


def test_sentences_are_translated_separately_and_joined(client: httpx.Client, translator_run: Path) -> None:
    text = f"  {GERMAN[0]}.\n\n\t{GERMAN[9]}! "
    found = post(client, "translate", model="de-en", q=text, beam=4)
    translator = Translator.load(translator_run)
    own = translator.translate([f"{GERMAN[0]}.", f"{GERMAN[9]}!"], beam_size=4, n_best=4)
    assert [sentence["source"] for sentence in found["sentences"]] == [f"{GERMAN[0]}.", f"{GERMAN[9]}!"]
    assert found["translation"] == f"  {own[0].translation}\n\n\t{own[1].translation} "
    for sentence, other in zip(found["sentences"], own, strict=True):
        assert [line["text"] for line in sentence["hypotheses"]] == [line.text for line in other.hypotheses]
        scores = [line["score"] for line in sentence["hypotheses"]]
        assert scores == approx([line.score for line in other.hypotheses])
        assert scores == sorted(scores, reverse=True)


def test_sampling_probabilities_follow_temperature_and_top_k(client: httpx.Client) -> None:
    plain = post(client, "next", model="writer", q="ANNA:")
    assert sum(token["probability"] for token in plain["tokens"]) <= 1 + 1e-9
    cold = post(client, "next", model="writer", q="ANNA:", temperature=0.5, top_k=3)
    assert (cold["kept"], [token["share"] > 0 for token in cold["tokens"]][:4]) == (3, [True, True, True, False])
    assert sum(token["share"] for token in cold["tokens"]) == pytest.approx(1)
    first, second = cold["tokens"][:2]
    squared = (first["probability"] / second["probability"]) ** 2
    assert first["share"] / second["share"] == pytest.approx(squared)
    assert all(token["text"] == token["piece"] for token in plain["tokens"] if token["piece"].isalnum())


def test_the_generated_text_is_sampled_with_these_probabilities(client: httpx.Client) -> None:
    document = post(client, "next", model="writer", q="ANNA:", top_k=2)
    asked = {"model": "writer", "q": "ANNA:", "top_k": 2, "write": 1}
    drawn = [post(client, "next", **asked, seed=seed)["text"] for seed in range(60)]
    expected = {token["text"]: token["share"] for token in document["tokens"][:2]}
    assert set(drawn) <= set(expected)
    for text, share in expected.items():
        assert drawn.count(text) / len(drawn) == sampled(share, len(drawn))


def test_the_model_is_described_with_its_source_code(client: httpx.Client, translator_run: Path) -> None:
    found = client.get("/api/model", params={"model": "de-en"}).json()
    own = inspect(translator_run)
    assert [row["name"] for row in found["model"]["tensors"]] == [row.name for row in own.tensors]  # type: ignore[attr-defined]
    for symbol in found["model"]["symbols"]:
        code = found["sources"][symbol["source"]]
        assert code["text"].lstrip().startswith(("def ", "class ", "@"))
        assert symbol["source"].endswith(f":{code['line']}")


def test_curves_are_read_again_for_each_request(client: httpx.Client, translator_run: Path) -> None:
    (run,) = client.get("/api/curves", params={"model": "de-en"}).json()["runs"]
    assert run["steps"] == 200
    assert {"train_loss", "valid_loss"} <= {curve["name"] for curve in run["series"]}
    content = (translator_run / "metrics.jsonl").read_bytes()
    try:
        (translator_run / "metrics.jsonl").unlink()
        assert client.get("/api/curves", params={"model": "de-en"}).json() == {"runs": []}
    finally:
        (translator_run / "metrics.jsonl").write_bytes(content)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("inspect", {"q": "a"}, 400, "model must be one of: de-en, reviews, writer"),
        ("inspect", {"q": "a", "model": "no"}, 404, "model must be one of"),
        ("inspect", {"q": "", "model": "de-en"}, 400, "the sentence is empty"),
        ("inspect", {"q": "x" * 5_001, "model": "de-en"}, 400, "exceeds text limit (5000)"),
        ("inspect", {"q": "x", "target": "y" * 5_001, "model": "de-en"}, 400, "exceeds text limit (5000)"),
        (
            "inspect",
            {"q": "a", "model": "de-en", "prefix": "a"},
            400,
            "prefix parameter must be a list",
        ),
        ("inspect", {"q": "a", "model": "de-en", "prefix": [True]}, 400, "prefix parameter must be a list"),
        ("inspect", {"q": "a", "model": "de-en", "beam": 17}, 400, "beam parameter must be <= 16"),
        ("inspect", {"q": "a", "model": "de-en", "temperature": 9}, 400, "temperature = 9.0 must be 0.1 to 3"),
        ("inspect", {"q": "a", "model": "de-en", "occlusion": 1}, 400, "occlusion parameter must be true or false"),
        ("translate", {"q": "a", "model": "de-en", "changes": {"heads": ["cross.9.0"]}}, 400, "no head cross.9.0"),
        ("head", {"q": "a", "model": "de-en"}, 400, "missing kind"),
        ("head", {"q": "a", "model": "writer", "kind": "cross"}, 400, 'no attention of kind "cross"'),
        ("translate", {"model": "de-en"}, 400, "missing q"),
        ("translate", {"q": "a", "model": "writer"}, 400, "writer does not translate"),
        ("next", {"q": "a", "model": "de-en"}, 400, "de-en is no language model"),
        ("next", {"q": "a", "model": "writer", "temperature": 0}, 400, "temperature"),
        ("next", {"q": "a", "model": "writer", "write": 257}, 400, "write parameter must be <= 256"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(
    client: httpx.Client, path: str, body: dict[str, Any], status: int, message: str
) -> None:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == status
    assert message in answer.json()["error"]


def test_inspections_at_the_same_time_are_independent(client: httpx.Client, server: Server) -> None:
    texts = [" ".join(["a fine film"] * length) for length in range(1, 9)]

    def inspect_text(text: str) -> tuple[int, ...]:
        post(client, "translate", model="de-en", q=GERMAN[len(text) % 7])
        client.post("/classify", json={"q": text, "model": "reviews"})
        found = Inspection.from_dict(post(client, "inspect", model="reviews", q=text))
        assert isinstance(found, ClassificationInspection)
        return found.attention[0].weights.shape

    separate = [inspect_text(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(inspect_text, texts * 3)) == separate * 3


def test_an_isolated_model_shares_the_weights_but_not_the_observers(translator_run: Path) -> None:
    translator = Translator.load(translator_run)
    with isolated_with_changes(translator, Changes()) as isolated:
        assert isinstance(isolated, Translator)
        own, shared = ([*map(id, found.model.parameters())] for found in (isolated, translator))
        assert own == shared
        own, others = ({*map(id, found.model.modules())} for found in (isolated, translator))
        assert not own & others
        expected = replace(translator, engine=translator.torch_engine).translate(GERMAN[:3])
        assert isolated.translate(GERMAN[:3]) == expected


def test_a_cancelled_inspection_ends_at_its_next_step(translator_run: Path) -> None:
    translator = Translator.load(translator_run)
    asked: list[int] = []

    def cancelled() -> list[int]:
        asked.append(len(asked))
        return [0] if len(asked) > 2 else []

    with isolated_with_changes(translator, Changes(), cancelled) as isolated:
        found = inspect_loaded(isolated, GERMAN[0], InspectOptions(occlusion=False))
    assert isinstance(found, TranslationInspection)
    whole = inspect_loaded(translator, GERMAN[0], InspectOptions(occlusion=False))
    assert isinstance(whole, TranslationInspection)
    assert 1 < len(found.target.tokens) <= 4 < len(whole.target.tokens)
    with isolated_with_changes(translator, Changes(), lambda: [0]) as isolated:
        assert isinstance(isolated, Translator)
        assert [translation.translation for translation in isolated.translate(GERMAN[:3])] == ["", "", ""]
