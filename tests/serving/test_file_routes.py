"""Files are translated by the requests of LibreTranslate's clients, and downloaded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serving.process import GERMAN, Server, serving

from manyheads.cli.main import run as manyheads

PAGE = f'<html lang="de"><body><p>{GERMAN[0]}</p><pre>{GERMAN[1]}</pre></body></html>'
FORM = {"source": "de", "target": "en"}


def send(server: Server, data: bytes | str = PAGE, name: str = "ä b?#%.html", **fields: str) -> tuple[int, Any]:
    with server.client() as client:
        answer = client.post("/translate_file", data=FORM | fields, files={"file": (name, data)})
    return answer.status_code, answer.json()


def test_a_file_comes_back_in_the_other_language_and_can_be_downloaded_once(server: Server) -> None:
    status, found = send(server)
    assert status == 200
    assert found["report"]["units"] == 1
    with server.client() as client:
        answer = client.get(found["translatedFileUrl"])
        translated = client.post("/translate", json=FORM | {"q": PAGE, "format": "html"}).json()["translatedText"]
        assert client.get(found["translatedFileUrl"]).status_code == 404
    assert answer.text == translated.replace('lang="de"', 'lang="en"')
    assert GERMAN[1] in answer.text
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%A4%20b%3F%23%25_en.html"
    assert answer.headers["content-type"].startswith("text/html")


def test_plain_text_is_read_as_paragraphs_and_its_language_found(server: Server) -> None:
    status, found = send(server, f"{GERMAN[0]}\n", "a.txt", source="auto")
    assert status == 200
    with server.client() as client:
        assert client.get(found["translatedFileUrl"]).text.endswith("\n")


@pytest.mark.parametrize(
    ("data", "name", "fields", "message"),
    [
        (b"%PDF-1.4", "a.pdf", {}, "is PDF"),
        (b"\x89PNG\0", "a.png", {}, "is no text"),
        (b"<meta charset=punycode>a-b", "a.html", {}, "no encoding of files"),
        (b"PK\3\4" + b"x" * 50, "a.docx", {}, "Invalid request"),
        (b"\x00\x01", "a.zip", {"target": "zz"}, "zz is not supported"),
        (PAGE, "a.html", {"source": "en", "target": "de"}, "not available as a target language"),
    ],
)
def test_a_file_that_cannot_be_translated_is_refused(
    server: Server, data: bytes | str, name: str, fields: dict[str, str], message: str
) -> None:
    status, answer = send(server, data, name, **fields)
    assert status == 400
    assert message in answer["error"]


def test_a_file_without_letters_and_one_in_the_target_language_stay_as_they_are(server: Server) -> None:
    for data, fields in (("<p>1</p>", {"source": "auto"}), (PAGE, {"source": "en"})):
        status, found = send(server, data, **fields)
        assert status == 200
        with server.client() as client:
            assert client.get(found["translatedFileUrl"]).text == data


def test_a_request_without_a_file_is_refused(server: Server) -> None:
    with server.client() as client:
        answer = client.post("/translate_file", data=FORM)
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid request: missing file parameter"})


def test_a_download_needs_the_key_of_its_request_and_a_file_has_a_limit(
    translator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, secrets = tmp_path / "keys.json", []
    for name in ("one", "two"):
        assert manyheads(["serve", "keys", "add", str(keys), name]) == 0
        secrets.append(capsys.readouterr().out.strip())
    with serving(translator_run, "--keys", keys, "--file-limit", 1_000) as server:
        status, answer = send(server, PAGE, api_key=secrets[0])
        assert status == 200
        with server.client() as client:
            address = answer["translatedFileUrl"]
            assert client.get(address).status_code == 400
            assert client.get(f"{address}?api_key={secrets[1]}").status_code == 404
            assert client.get(address, headers={"Authorization": f"Bearer {secrets[0]}"}).status_code == 200
        status, answer = send(server, PAGE + " " * 1_000, api_key=secrets[0])
        assert (status, answer) == (413, {"error": "Invalid request: the file has more than 1000 bytes"})


def test_files_can_be_switched_off(translator_run: Path) -> None:
    with serving(translator_run, "--no-files") as server:
        assert send(server)[0] == 403
        with server.client() as client:
            settings = client.get("/frontend/settings").json()
            assert client.get("/api/models").json()["files"] == []
            assert "/translate_file" not in client.get("/spec").json()["paths"]
    assert (settings["filesTranslation"], settings["supportedFilesFormat"]) == (False, [])
