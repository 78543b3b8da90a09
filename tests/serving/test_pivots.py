"""A translator of several languages is served in every direction, and directions meet in a pivot language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runs.parts import make_languages_config, write_languages
from tests.serving.process import Server, serving, train_once
from tests.serving.test_translation_routes import post

from manyheads.inference.translation.result import Candidate, Translation
from manyheads.runs.train import train
from manyheads.serving.pivots import find_pivots, join


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ("de-en en-fr", {"de-fr": "en"}),
        ("de-en en-de", {}),
        ("de-fr fr-it de-en en-it", {"de-it": "en"}),  # English before French
        ("de-fr fr-it de-it", {}),
        ("deu-eng en_US-fr", {"deu-fr": "eng"}),
        ("de-en en-fr fr-it", {"de-fr": "en", "en-it": "fr"}),  # one pivot, not two
    ],
)
def test_two_translators_that_meet_give_a_third_direction(served: str, expected: dict[str, str]) -> None:
    pairs = [(first, second) for first, _, second in (pair.partition("-") for pair in served.split())]
    found = find_pivots(pairs)
    assert {"-".join(pair): first[1] for pair, (first, _) in found.items()} == expected


def test_a_translation_by_way_of_another_language_joins_warnings_and_alignments() -> None:
    def translation(source: str, text: str, links: str | None, *warnings: str, cut: bool = False) -> Translation:
        return Translation(source, [Candidate(text, 0.0, [], [], 0.0)], cut, links, warnings=list(warnings))

    first = translation("a b c", "x y", "0-1 1-0 2-0", "repetition", cut=True)
    found = join(first, translation("x y", "u v", "0-0 0-1 1-1", "length-ratio", "repetition"))
    assert (found.source, found.translation, found.truncated) == ("a b c", "u v", True)
    assert found.alignment == "1-0 2-0 1-1 2-1 0-1"
    assert found.warnings == ["repetition", "length-ratio"]
    assert join(first, translation("x y", "u v", None)).alignment is None
    unsure, sure = replace(first, confidence=0.2, confidence_level="low"), replace(first, confidence=0.7)
    assert join(unsure, sure).confidence_level == join(sure, unsure).confidence_level == "low"
    assert join(first, unsure).confidence == 0.2
    assert join(first, first).confidence is None


# --- a server ---


def train_languages(folder: Path) -> Path:
    steps = {"steps": 120, "save_every": 60, "batch_tokens": 300, "warmup_steps": 20}
    train(make_languages_config(write_languages(folder / "corpus"), training=steps), folder / "languages")
    return folder / "languages"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(train_once(tmp_path_factory, train_languages)) as running:
        yield running
        assert running.end() == 0
        assert "fault" not in running.text


def body(text: str, source: str, target: str, **fields: Any) -> dict[str, Any]:
    return {"q": text, "source": source, "target": target, **fields}


def test_every_direction_and_its_pivot_are_listed(server: Server) -> None:
    with server.client() as client:
        listed = {
            language["code"]: (language["targets"], language.get("pivots"))
            for language in client.get("/languages").json()
        }
        names = [
            (model["name"], model["source"], model["target"])
            for model in client.get("/api/models").json()["models"]
        ]
    assert listed == {
        "en": (["de", "en", "fr"], None),
        "de": (["de", "en", "fr"], {"fr": "en"}),
        "fr": (["fr"], None),
    }
    assert names == [
        ("languages en-de", "en", "de"),
        ("languages de-en", "de", "en"),
        ("languages en-fr", "en", "fr"),
    ]


def test_a_request_is_translated_in_its_direction(server: Server) -> None:
    german, french = (post(server, "/translate", body("the dog sings", "en", target)) for target in ("de", "fr"))
    assert german[0] == french[0] == 200
    assert german[1]["translatedText"] != french[1]["translatedText"]
    assert "pivot" not in french[1]
    status, found = post(server, "/api/translate", {"q": "the dog sings", "model": "languages en-fr"})
    assert status == 200
    assert not any(piece.startswith("<to-") for piece in found["sentences"][0]["hypotheses"][0]["tokens"])


def test_the_page_inspects_an_output_with_its_language(server: Server) -> None:
    for fields in ({}, {"target": "eht god"}, {"prefix": []}):
        status, found = post(server, "/api/inspect", {"q": "the dog", "model": "languages en-fr", **fields})
        assert status == 200
        assert found["inputs"][1]["piece"] == "<to-fr>"


def test_a_direction_by_way_of_another_language_is_the_two_one_after_the_other(server: Server) -> None:
    _, middle = post(server, "/translate", body("der Hund singt", "de", "en"))
    _, last = post(server, "/translate", body(middle["translatedText"], "en", "fr"))
    status, found = post(server, "/translate", body("der Hund singt", "de", "fr"))
    assert status == 200
    assert (found["translatedText"], found["pivot"]) == (last["translatedText"], "en")
    status, found = post(server, "/translate", body("<p>der <b>Hund</b></p>", "de", "fr", format="html"))
    assert status == 200
    assert found["translatedText"].startswith("<p>")
    _, found = post(server, "/translate", body(["der Hund", "the dog"], "auto", "fr"))
    assert len(found["translatedText"]) == 2


def test_a_pivot_takes_no_glossary_and_an_unknown_direction_is_refused(server: Server) -> None:
    status, found = post(server, "/translate", body("der Hund", "de", "fr", glossary={"Hund": "a"}))
    assert (status, "a glossary is for a direct translation" in found["error"]) == (400, True)
    status, found = post(server, "/translate", body("eht god", "fr", "en"))
    assert status == 400
    assert found["error"] == "English (en) is not available as a target language from French (fr)"
