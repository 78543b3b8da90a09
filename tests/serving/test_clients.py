"""Client programs of LibreTranslate work unchanged with this server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runs.parts import SENTENCES, make_config, write_split
from tests.serving.process import ENGLISH, GERMAN, Server, serving

from manyheads.inference.translation.match_source import match_source
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train

libretranslatepy = pytest.importorskip("libretranslatepy")
deep_translator = pytest.importorskip("deep_translator")
apis = pytest.importorskip("argostranslate.apis")

SENTENCE = GERMAN[0]


@pytest.fixture(scope="module")
def expected(translator_run: Path) -> dict[str, str]:
    """Return the translation of each sentence by the run itself."""
    found = Translator.load(translator_run, device="cpu").translate(GERMAN)
    texts = {translation.source: translation.translation for translation in found}
    assert len(set(texts.values())) > len(texts) // 2
    return texts


def test_libretranslatepy_translates_detects_and_lists(server: Server, expected: dict[str, str]) -> None:
    client = libretranslatepy.LibreTranslateAPI(server.url)
    assert client.translate(SENTENCE, "de", "en") == expected[SENTENCE] != ""
    assert client.detect(SENTENCE)[0]["language"] == "de"
    assert client.detect(ENGLISH[0])[0]["language"] == "en"
    assert [(language["code"], language["name"], language["targets"]) for language in client.languages()] == [
        ("de", "German", ["de", "en"]),
        ("en", "English", ["en"]),
    ]


@pytest.mark.learning
def test_the_end_mark_and_the_small_first_letter_of_the_source_are_kept(tmp_path: Path, training_seed: int) -> None:
    """Train a translator that begins with a capital and mostly ends with a full stop, whatever the source."""
    pairs = [(f"{german.capitalize()}.", f"{english.capitalize()}.") for german, english in SENTENCES]
    for name, part in (("train", pairs[:40]), ("valid", pairs[40:44]), ("test", pairs[44:])):
        write_split(tmp_path / "corpus", name, part)
    training = {"steps": 100, "batch_tokens": 200, "save_every": 100, "log_every": 100, "learning_rate": 0.01}
    train(make_config(tmp_path / "corpus", training=training | {"seed": training_seed}), tmp_path / "de-en")
    text = GERMAN[0].capitalize()
    texts = [f"{text}?", f"{text}!", f"{text}.", text, text.lower()]
    found = {}
    for option in ("--match-source", "--no-match-source"):
        with serving(option, tmp_path / "de-en") as server:
            client = libretranslatepy.LibreTranslateAPI(server.url)
            found[option] = [client.translate(text, "de", "en") for text in texts]
    question, exclamation, sentence, label, small = found["--match-source"]
    assert (question[-1], exclamation[-1], sentence[-1]) == ("?", "!", ".")
    assert label[0].isupper()
    assert label[-1] != "."
    assert small[0].islower()
    assert not found["--no-match-source"][0].endswith("?"), "no translation of the training text has one"
    outputs = zip(found["--no-match-source"], texts, strict=True)
    assert found["--match-source"] == [match_source(output, source, ("de", "en")) for output, source in outputs]


def test_an_address_with_a_slash_at_its_end_is_the_same(server: Server, expected: dict[str, str]) -> None:
    client = libretranslatepy.LibreTranslateAPI(f"{server.url}/")
    client.url += "/"  # libretranslatepy appends a slash only where there is none
    assert client.translate(SENTENCE, "de", "en") == expected[SENTENCE]
    assert client.detect(SENTENCE)[0]["language"] == "de"
    assert [language["code"] for language in client.languages()] == ["de", "en"]
    with server.client() as discourse:  # endpoint + "/translate"
        form = {"q": SENTENCE, "source": "de", "target": "en"}
        assert discourse.post(f"{server.url}//translate", data=form).json() == {
            "translatedText": expected[SENTENCE]
        }
        assert discourse.get(f"{server.url}//page/page.css").status_code == 200
        assert discourse.get(f"{server.url}//").headers["content-type"].startswith("text/html")
        assert discourse.get(f"{server.url}//metrics").status_code == 401


def test_deep_translator_translates_one_and_many(server: Server, expected: dict[str, str]) -> None:
    client = deep_translator.LibreTranslator(
        source="de", target="en", api_key="none is asked for", custom_url=f"{server.url}/"
    )
    assert client.translate(SENTENCE) == expected[SENTENCE]
    assert client.translate_batch(GERMAN[:3]) == [expected[text] for text in GERMAN[:3]]


def test_argostranslate_translates_and_detects(server: Server, expected: dict[str, str]) -> None:
    client = apis.LibreTranslateAPI(server.url)
    assert client.translate(SENTENCE, "de", "en") == expected[SENTENCE]
    assert client.detect(SENTENCE)[0]["language"] == "de"
    with pytest.raises(Exception, match="405"):  # it sends POST, which LibreTranslate itself refuses
        client.languages()


def test_mastodon_sends_html_in_a_list_and_reads_the_language_of_each(
    server: Server, expected: dict[str, str]
) -> None:
    body = {
        "q": [f"<p>{SENTENCE}</p>", "", '<p><a href="https://e.x/@b" class="u-url mention">@b</a></p>'],
        "source": "auto",
        "target": "en",
        "format": "html",
        "api_key": None,
    }
    with server.client() as client:
        answer = client.post("/translate", content=json.dumps(body), headers={"Content-Type": "application/json"})
        languages = client.get("/languages").json()
    found = answer.json()
    assert answer.status_code == 200
    assert found["translatedText"] == [f"<p>{expected[SENTENCE]}</p>", *body["q"][1:]]
    assert [detected["language"] for detected in found["detectedLanguage"]] == ["de", "en", "en"]
    assert found["detectedLanguage"][0]["confidence"] > 50
    assert all(language["targets"] for language in languages)


def test_discourse_sends_forms_with_an_empty_key(server: Server, expected: dict[str, str]) -> None:
    with server.client() as client:
        found = client.post("/detect", data={"q": f"<p>{SENTENCE}</p>", "api_key": ""}).json()
        assert found[0]["language"] == "de"
        form = {"q": f"<p>{SENTENCE}</p>", "source": "de", "target": "en", "format": "html", "api_key": ""}
        assert client.post("/translate", data=form).json() == {"translatedText": f"<p>{expected[SENTENCE]}</p>"}


def test_weblate_requests_the_languages_and_sends_a_form(server: Server, expected: dict[str, str]) -> None:
    with server.client(headers={"User-Agent": "Weblate/5.13"}) as client:
        assert {language["code"] for language in client.get("/languages").json()} == {"de", "en"}
        form = {"api_key": "None", "q": SENTENCE, "source": "de", "target": "en"}
        assert client.post("/translate", data=form).json()["translatedText"] == expected[SENTENCE]


def test_the_page_of_libretranslate_sends_a_multipart_form(server: Server, translator_run: Path) -> None:
    parts: dict[str, Any] = {
        "q": SENTENCE, "source": "auto", "target": "en", "format": "text", "alternatives": "3", "api_key": "",
    }  # fmt: skip
    with server.client() as client:
        answer = client.post("/translate", files={name: (None, value) for name, value in parts.items()})
    found = answer.json()
    (expected,) = Translator.load(translator_run, device="cpu").translate([SENTENCE], n_best=4)
    assert found["detectedLanguage"]["language"] == "de"
    texts = [candidate.text for candidate in expected.hypotheses]
    assert [found["translatedText"], *found["alternatives"]] == list(dict.fromkeys(texts))
    assert len(found["alternatives"]) > 0
