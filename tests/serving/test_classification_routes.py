"""Classifiers behind /classify."""

from __future__ import annotations

from tests.serving.process import Server, run_of
from tests.tolerances import approx

from manyheads.inference.classifier import Classifier

TEXTS = ["a lovely film", "the plot was dull", "", "so great the actor"]


def test_texts_are_classified_as_the_run_classifies_them(server: Server) -> None:
    expected = Classifier.load(run_of(server, "reviews"), device="cpu").classify(TEXTS)
    with server.client() as client:
        found = client.post("/classify", json={"q": TEXTS, "model": "reviews"}).json()
        single = client.post("/classify", data={"q": TEXTS[0]}).json()
    assert [result["label"] for result in found] == [result.label for result in expected]
    for document, other in zip(found, expected, strict=True):
        assert document["probabilities"] == approx(other.probabilities)
    assert single["label"] == found[0]["label"]
    assert single["probabilities"] == approx(found[0]["probabilities"])


def test_an_unknown_model_is_refused_with_the_known_models(server: Server) -> None:
    with server.client() as client:
        answer = client.post("/classify", json={"q": "a", "model": "writer"})
        assert (answer.status_code, answer.json()) == (404, {"error": "model must be one of: reviews"})
        answer = client.post("/v1/completions", json={"prompt": "a", "model": "reviews"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")
