"""The interface of LibreTranslate, tested with plain requests to a real server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.serving.process import ENGLISH, GERMAN, Server, serving
from tests.tasks.documents import HTML_PARTS, PARTS, documents, word_translator

from manyheads.cli.main import run as manyheads
from manyheads.data.suggestions import SuggestionFile
from manyheads.documents.formats import SUFFIXES
from manyheads.inference.translation.confidence import ConfidenceModel
from manyheads.inference.translation.stages import Stage
from manyheads.inference.translation.translator import STAGES, Translation, Translator
from manyheads.search.options import SearchOptions
from manyheads.serving.batching import Batcher
from manyheads.serving.inspection_routes import _translate_sentences
from manyheads.serving.models import LanguageDetector, Models
from manyheads.serving.queue_items import RequestHandle
from manyheads.serving.settings import ServeSettings
from manyheads.serving.translation_routes import _TranslationRequest, _translations
from manyheads.text.languages import make_profile

SENTENCE = GERMAN[0]
GLOSSARY_FORM = "Invalid request: glossary parameter must be an object of texts or a list of pairs"
VALID = {"q": SENTENCE, "source": "de", "target": "en"}


def post(server: Server, path: str, body: Any, **options: Any) -> tuple[int, Any]:
    with server.client() as client:
        answer = client.post(path, json=body, **options)
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Invalid request: missing q parameter"),
        (VALID | {"q": ""}, "Invalid request: missing q parameter"),
        (VALID | {"q": []}, "Invalid request: missing q parameter"),
        ({"q": SENTENCE, "target": "en"}, "Invalid request: missing source parameter"),
        ({"q": SENTENCE, "source": "de"}, "Invalid request: missing target parameter"),
        (VALID | {"q": 5}, "Invalid request: q parameter must be text or a list of texts"),
        (VALID | {"q": [None]}, "Invalid request: q parameter must be text or a list of texts"),
        (VALID | {"source": 5}, "Invalid request: source parameter must be text"),
        (VALID | {"target": "zz"}, "zz is not supported"),
        (VALID | {"source": "zz"}, "zz is not supported"),
        (VALID | {"source": "en", "target": "de"},
         "German (de) is not available as a target language from English (en)"),
        (VALID | {"format": "pdf"}, "pdf format is not supported"),
        (VALID | {"alternatives": 11}, "Invalid request: alternatives parameter must be <= 10"),
        (VALID | {"alternatives": "many"}, "Invalid request: alternatives parameter must be a whole number"),
        (VALID | {"alternatives": True}, "Invalid request: alternatives parameter must be a whole number"),
        (VALID | {"q": "a" * 5001}, "Invalid request: request (5001) exceeds text limit (5000)"),
        (VALID | {"q": ["ab"] * 65}, "Invalid request: request (65) exceeds text limit (64)"),
        (VALID | {"q": ["a", "a" * 5001]}, "Invalid request: request (5001) exceeds text limit (5000)"),
        (VALID | {"q": ["a" * 5000] * 11}, "Invalid request: request (55000) exceeds text limit (50000)"),
        (VALID | {"glossary": 5}, GLOSSARY_FORM),
        (VALID | {"glossary": [["a"]]}, GLOSSARY_FORM),
        (VALID | {"glossary": {"a": 1}}, GLOSSARY_FORM),
        (VALID | {"glossary": "[[1"}, GLOSSARY_FORM),
        (VALID | {"glossary": [["a", "b"]] * 101}, "Invalid request: glossary (101) exceeds text limit (100)"),
        (VALID | {"glossary": {"a": "b" * 101}}, "Invalid request: glossary (101) exceeds text limit (100)"),
        (VALID | {"glossary": [["a", "b"], ["c", " "]]},
         "Invalid request: glossary, pair 2: the translation is empty. Give both, or leave the pair out."),
        (VALID | {"glossary": [["a", "b"], ["a", "c"]]},
         'Invalid request: glossary, pair 2: "a" has another translation, "b", in glossary, pair 1. Keep one.'),
        ([], "Invalid JSON format"),
        ("text", "Invalid JSON format"),
    ],
)  # fmt: skip
def test_an_invalid_request_is_refused_with_the_reason(server: Server, body: Any, message: str) -> None:
    assert post(server, "/translate", body) == (400, {"error": message})


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"\xff\xfe",
        b'{"q": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"q": 1' + b"0" * 5_000 + b"}",
        b"NaN",
    ],
)
def test_invalid_json_is_refused(server: Server, body: bytes) -> None:
    with server.client() as client:
        answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON format"})


def test_a_list_is_answered_with_a_list_and_the_language_of_each_text(server: Server) -> None:
    single = [post(server, "/translate", VALID | {"q": text})[1]["translatedText"] for text in GERMAN[:3]]
    status, found = post(server, "/translate", {"q": [*GERMAN[:3], ENGLISH[0]], "source": "auto", "target": "en"})
    assert status == 200
    assert found["translatedText"] == [*single, ENGLISH[0]]
    assert [detected["language"] for detected in found["detectedLanguage"]] == ["de", "de", "de", "en"]
    assert "alternatives" not in found


def test_the_limit_of_characters_holds_for_each_text_of_a_list(server: Server) -> None:
    _, found = post(server, "/translate", VALID | {"q": ["1" * 4_999] * 10})
    assert found["translatedText"] == ["1" * 4_999] * 10


@pytest.mark.parametrize("number", [-1, "-1", "", None, 0])
def test_no_alternatives_are_computed_for_a_number_below_one(server: Server, number: Any) -> None:
    assert post(server, "/translate", VALID | {"alternatives": number}) == post(server, "/translate", VALID)


def test_a_text_in_a_script_of_no_served_language_is_returned_unchanged(server: Server) -> None:
    texts = ["불을 끄는 소방관들", f"{SENTENCE} 강아지", "Hund 강아지가 눈밭을 뛰어다닌다"]
    status, found = post(server, "/translate", {"q": texts, "source": "auto", "target": "en"})
    assert status == 200
    assert [detected["language"] for detected in found["detectedLanguage"]] == ["en", "de", "en"]
    assert [detected["confidence"] == 0 for detected in found["detectedLanguage"]] == [True, False, True]
    assert [translation == text for translation, text in zip(found["translatedText"], texts, strict=True)] == [
        True,
        False,
        True,
    ]


def test_a_text_in_an_unknown_script_is_not_translated_from_the_language_that_the_answer_names() -> None:
    detector = LanguageDetector({"en": make_profile(ENGLISH), "de": make_profile(GERMAN)})
    models = Models(translators={("en", "de"): None}, detector=detector)  # type: ignore[dict-item]  # not called
    query = _TranslationRequest(["강아지"], is_list=False, source="auto", target="de", html=False, alternatives=0)
    found = _translations(SimpleNamespace(models=models), query, RequestHandle())  # type: ignore[arg-type]
    assert found == {"translatedText": "강아지", "detectedLanguage": {"confidence": 0.0, "language": "en"}}


@contextmanager
def service_of(translator: Translator) -> Iterator[Any]:
    """Yield what a route needs of a server with this translator."""
    batcher = Batcher(workers=1, max_tokens=10_000, max_wait=0.0)
    yield SimpleNamespace(
        models=Models(translators={("de", "en"): translator}),
        batcher=batcher,
        settings=ServeSettings(),
        metrics=SimpleNamespace(count_texts=lambda *counts: None),
    )
    batcher.close(5)


@pytest.mark.parametrize(("kind", "table"), [("text", PARTS), ("html", HTML_PARTS)])
def test_what_comes_out_of_300_documents_has_their_structure(kind: str, table: dict[str, list[str]]) -> None:
    """The model drops everything but words."""
    translator, texts = word_translator(), documents(table)
    query = _TranslationRequest(texts, is_list=True, source="de", target="en", html=kind == "html", alternatives=0)
    with service_of(translator) as service:
        assert _translations(service, query, RequestHandle())["translatedText"] == texts
    shown = [_translate_sentences(translator, text, 1, SearchOptions())["translation"] for text in texts]
    assert shown == [translation.translation for translation in translator.translate(texts)], (
        "the page divides a text as the server"
    )


class PartCounts(Stage):
    """A stage that says how many texts a document has."""

    @classmethod
    def answer_fields(cls, translator: Translator, translations: Sequence[Translation]) -> dict[str, Any]:
        """Return their number."""
        return {"parts": len(translations)}


def test_a_text_has_the_fields_of_all_stages_such_as_the_level_of_the_confidence_in_its_parts() -> None:
    """A long part that is sure outweighs a short one that is not; text that is copied has no level."""
    confidence = ConfidenceModel(0.5, (0.0, 0.0, 0.0, -0.2), 0.0, (0.4, 0.48))
    translator = replace(word_translator(), confidence=confidence, stages=(*STAGES, PartCounts))
    unsure = "a, , , , , , , , , , , b"
    texts = ["Ein Hund läuft", unsure, f"<p>{unsure}</p><p>{'Ein Hund läuft ' * 20}</p>", "12"]

    def answer(texts: list[str], *, is_list: bool) -> dict[str, Any]:
        query = _TranslationRequest(texts, is_list=is_list, source="de", target="en", html=True, alternatives=0)
        return _translations(service, query, RequestHandle())

    with service_of(translator) as service:
        found = answer(texts, is_list=True)
        assert found["confidenceLevel"] == ["high", "low", "high", None]
        assert found["parts"] == [1, 1, 2, 0]
        assert answer(texts[:1], is_list=False)["confidenceLevel"] == "high"
        assert "confidenceLevel" not in answer(texts[3:], is_list=False)


def test_alternatives_of_a_list_are_a_list_of_lists_without_the_first(server: Server) -> None:
    _, found = post(server, "/translate", VALID | {"q": GERMAN[:2], "alternatives": 2})
    assert "detectedLanguage" not in found
    for text, others in zip(found["translatedText"], found["alternatives"], strict=True):
        assert 1 <= len(others) <= 2
        assert len({text, *others}) == len(others) + 1


def test_the_server_and_the_command_line_give_the_same_text(
    server: Server, translator_run: Path, tmp_path: Path
) -> None:
    """Each line of a text, with white space around it, without a letter, of several sentences or too long."""
    long = " ".join(GERMAN)
    lines = [
        f"  {GERMAN[0]}", "", "***", "| --- | :-: |\u3164", f"\t{GERMAN[1]} {GERMAN[2]} ", "```", " 12:30", long,
        "3,50 €",
    ]  # fmt: skip
    (tmp_path / "in.txt").write_text("\n".join([*lines, "   ", ""]))
    assert (
        manyheads(["translate", str(translator_run), str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.txt")])
        == 0
    )
    translated = (tmp_path / "out.txt").read_text().split("\n")
    for index in (1, 2, 3, 5, 6, 8, 9):
        assert translated[index] == [*lines, "   "][index]
    for end in ("\n", "\r\n"):
        text = end.join([*lines, "   ", ""])
        answer = post(server, "/translate", VALID | {"q": text})[1]
        assert answer["translatedText"] == end.join(translated)
        assert set(answer["warnings"]) >= {"unlike-training", "sentence-cut"}  # of line 8
        assert post(server, "/api/translate", {"q": text, "model": "de-en"})[1]["translation"] == end.join(
            translated
        )
    html = "".join(f"<p>{line}</p>" for line in lines)
    expected = "".join(f"<p>{line}</p>" for line in translated[:-2])
    assert post(server, "/translate", VALID | {"q": html, "format": "html"})[1]["translatedText"] == expected


def test_each_line_and_each_block_of_html_has_the_end_mark_of_its_source(server: Server) -> None:
    texts = [f"{text.rstrip('.')}{mark}" for text, mark in zip(GERMAN, "?!:", strict=False)]
    plain = post(server, "/translate", VALID | {"q": "\n".join(texts)})[1]["translatedText"]
    assert [line[-1] for line in plain.split("\n")] == ["?", "!", ":"]
    html = "".join(f"<p><b>{text[:3]}</b>{text[3:]}</p>" for text in texts)
    found = post(server, "/translate", VALID | {"q": html, "format": "html"})[1]["translatedText"]
    assert re.sub("<[^p]*?>", "", found) == "".join(f"<p>{line}</p>" for line in plain.split("\n"))
    _, listed = post(server, "/translate", VALID | {"q": texts[0], "alternatives": 3})
    assert {text[-1] for text in (listed["translatedText"], *listed["alternatives"])} == {"?"}


def test_a_text_unlike_the_training_text_has_a_warning(server: Server) -> None:
    answer = post(server, "/translate", VALID | {"q": [SENTENCE, "asdf qwer zxcv"]})[1]
    assert ["unlike-training" in names for names in answer["warnings"]] == [False, True]


@pytest.mark.parametrize("text", ["🙂🙂", "12 / 7", "...", "  \n", "\u200b\u3164"])
def test_text_without_letters_is_returned_unchanged(server: Server, text: str) -> None:
    status, found = post(server, "/translate", {"q": text, "source": "auto", "target": "en"})
    assert (status, found["translatedText"]) == (200, text)
    assert found["detectedLanguage"]["confidence"] == 0


@pytest.mark.parametrize("text", ["a\u0000b", "\ud800", "ﷺ" * 50, "e" + "\u0301" * 300, "מה קורה", "a" * 5_000])
def test_unusual_text_is_translated_without_an_error(server: Server, text: str) -> None:
    body = json.dumps(VALID | {"q": text}).encode()
    with server.client() as client:
        answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert isinstance(answer.json()["translatedText"], str)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/languages", 405), ("POST", "/health", 405), ("GET", "/translate", 405),
        ("PUT", "/translate", 405), ("GET", "/nowhere", 404), ("GET", "/../etc/passwd", 404),
        ("GET", "/page/../settings.py", 404),
        ("GET", "/translate_file", 405), ("GET", "/download_file/a/../b", 404), ("POST", "/suggest", 403),
        ("GET", "/translate/", 404), ("GET", "/%00", 404),
    ],
)  # fmt: skip
def test_unknown_paths_and_methods_are_refused_in_one_format(
    server: Server, method: str, path: str, status: int
) -> None:
    with server.client() as client:
        answer = client.request(method, path)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]


def test_the_settings_list_the_features_of_the_server(server: Server) -> None:
    with server.client() as client:
        found = client.get("/frontend/settings").json()
    assert found == {
        "charLimit": 5000, "frontendTimeout": 500, "apiKeys": False, "keyRequired": False, "suggestions": False,
        "filesTranslation": True, "supportedFilesFormat": list(SUFFIXES),
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "en", "name": "English"},
        },
    }  # fmt: skip


def test_a_suggestion_is_stored_with_the_output_and_a_hash_of_the_key(
    translator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, path = tmp_path / "keys.json", tmp_path / "suggestions.jsonl"
    assert manyheads(["serve", "keys", "add", str(keys), "mastodon"]) == 0
    secret = capsys.readouterr().out.strip()
    body = {"q": SENTENCE, "s": "the man", "source": "DE", "target": "en", "api_key": secret}
    refused = [
        ({"s": ""}, 400, "missing s parameter"), ({"s": ["a", "b"]}, 400, "one text each"),
        ({"q": [SENTENCE]}, 400, "one text each"), ({"s": "a" * 5001}, 400, "exceeds text limit (5000)"),
        ({"source": "en", "target": "de"}, 400, "not available as a target"), ({"api_key": "x"}, 403, "Invalid"),
    ]  # fmt: skip
    with serving(translator_run, "--keys", keys, "--suggestions", path) as server:
        output = post(server, "/translate", body)[1]["translatedText"]
        for change, status, message in refused:
            answer = post(server, "/suggest", body | change)
            assert answer[0] == status
            assert message in answer[1]["error"]
        assert SuggestionFile(path).read() == ([], [])
        assert post(server, "/suggest", body) == (200, {"success": True})
        with server.client() as client:
            form = body | {"source": "auto", "s": "the\r\nman"}
            assert client.post("/suggest", data=form).json() == {"success": True}
            assert client.get("/frontend/settings").json()["suggestions"] is True
            assert "/suggest" in client.get("/spec").json()["paths"]
        found, damaged = SuggestionFile(path).read()
        path.unlink()
        path.mkdir()  # in place of a disk that fails
        assert post(server, "/suggest", body)[0] == 507
        assert post(server, "/translate", body)[0] == 200
        assert server.end() == 0
        assert "suggestion not stored" in server.text
        assert "the man" not in server.text
    digest = hashlib.sha256(secret.encode()).hexdigest()
    assert [(suggestion.correction, suggestion.key) for suggestion in found] == [
        ("the man", digest[:12]),
        ("the\nman", digest[:12]),
    ]
    assert {(suggestion.languages, suggestion.source, suggestion.output) for suggestion in found} == {
        (("de", "en"), SENTENCE, output)
    }
    assert damaged == []


def test_detection_is_sorted_by_confidence_and_has_no_answer_for_other_scripts(server: Server) -> None:
    _, found = post(server, "/detect", {"q": SENTENCE})
    assert [set(detected) for detected in found] == [{"confidence", "language"}] * len(found)
    confidences = [detected["confidence"] for detected in found]
    assert confidences == sorted(confidences, reverse=True)
    assert 50 < confidences[0] <= 100
    for text in ("안녕하세요", "12345"):
        assert post(server, "/detect", {"q": text}) == (200, [{"confidence": 0.0, "language": "en"}])
    refused = {"error": "Invalid request: q parameter must be text or a list of texts"}
    assert post(server, "/detect", {"q": 12345}) == (400, refused)


def test_html_keeps_tags_and_untranslatable_elements(server: Server) -> None:
    text = (
        f'<h1 class="a">{GERMAN[0]}</h1>\n<!-- nichts --><p>{GERMAN[1]}<br/>{GERMAN[2]} &lt;3</p>'
        "<pre>der  Hund</pre><p translate='no'>der Hund</p><script>der &lt; Hund</script>"
    )
    _, found = post(server, "/translate", VALID | {"q": text, "format": "html"})
    one, two, three = (
        post(server, "/translate", VALID | {"q": each})[1]["translatedText"]
        for each in (*GERMAN[:2], f"{GERMAN[2]} <3")
    )
    assert found["translatedText"] == (
        f'<h1 class="a">{one}</h1>\n<!-- nichts --><p>{two}<br/>{three.replace("<", "&lt;")}</p>'
        "<pre>der  Hund</pre><p translate='no'>der Hund</p><script>der &lt; Hund</script>"
    )
