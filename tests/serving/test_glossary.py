"""A server has a glossary for its translator, and obeys further terms of a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.serving.process import Server
from tests.serving.test_translation_routes import SENTENCE, VALID, post

from manyheads.errors import UsageError
from manyheads.inference.translation.translator import Translator
from manyheads.serving.glossary import set_glossary

GOLDEN = Path(__file__).parent.parent / "golden/format-1/run"


def test_a_glossary_is_given_to_the_only_translator_and_refused_for_several(tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text('de\ten\n"Hund"\t"cat"\n', "utf-8")
    served = {("de", "en"): Translator.load(GOLDEN, device="cpu")}
    set_glossary(served, glossary)
    (result,) = served["de", "en"].translate(["Ein Hund läuft ."])
    assert "cat" in result.translation
    for translators in ({}, served | {("en", "de"): None}):
        with pytest.raises(UsageError, match=f"and {len(translators)} are served"):
            set_glossary(translators, glossary)  # type: ignore[arg-type]  # one is not opened


def test_the_glossary_of_a_request_is_obeyed_in_that_request_alone(server: Server) -> None:
    word = SENTENCE.split()[1]
    _, plain = post(server, "/translate", VALID)
    for glossary in ({word: "horse"}, [[word, "horse"]], json.dumps({word: "horse"})):
        status, answer = post(server, "/translate", VALID | {"glossary": glossary})
        assert status == 200
        assert "horse" in answer["translatedText"]
    assert post(server, "/translate", VALID | {"glossary": {"Nichts": "zebra"}}) == (200, plain)
    assert post(server, "/translate", VALID | {"glossary": {}}) == (200, plain)
    assert post(server, "/translate", VALID) == (200, plain)
