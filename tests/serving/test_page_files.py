"""The page of a server translates files that are chosen or dropped, and saves them with their report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route
from tests.serving.browser import PageDriver, driving
from tests.serving.process import GERMAN, Server, serving

from manyheads.serving.keys import KeyFile

HTML = f'<html lang="de"><body><p>{GERMAN[0]}</p><p>xyzzy qwfp zxcv</p><pre>{GERMAN[1]}</pre></body></html>'
DROP = """([name, text]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], name));
  document.body.dispatchEvent(
    new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def secret_server(translator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """Start a server that requires a key; yield it and the key."""
    keys = KeyFile(tmp_path_factory.mktemp("keys") / "keys.json")
    secret = keys.add("page")
    with serving(translator_run, "--keys", keys.path) as server:
        yield server, secret


@pytest.fixture
def driver(browser: Browser, secret_server: tuple[Server, str]) -> Iterator[PageDriver]:
    server, secret = secret_server
    with driving(browser, f"{server.url}/") as driver:
        driver.open("translate")
        assert driver.page.locator("#source").input_value() == "", "without a key, no example is translated"
        driver.page.get_by_label("API key").fill(secret)
        driver.page.get_by_label("API key").press("Tab")
        yield driver


def choose(driver: PageDriver, name: str, content: str) -> None:
    """Choose a file by keyboard."""
    with driver.page.expect_file_chooser() as chooser:
        driver.page.get_by_role("button", name="Translate a file").press("Enter")
    chooser.value.set_files({"name": name, "mimeType": "", "buffer": content.encode()})


def test_a_file_is_translated_with_progress_and_saved_with_its_report(
    driver: PageDriver, secret_server: tuple[Server, str]
) -> None:
    server, secret = secret_server
    with server.client(headers={"Authorization": f"Bearer {secret}"}) as client:
        form = {"source": "de", "target": "en"}
        answer = client.post("/translate_file", data=form, files={"file": ("a b.html", HTML)}).json()
        expected = client.get(answer["translatedFileUrl"]).text
    requests: list[Route] = []
    driver.page.route("**/translate_file", lambda route: requests.append(route))
    choose(driver, "a b.html", HTML)
    driver.page.get_by_role("progressbar", name="a b.html is being translated").wait_for()
    driver.page.get_by_text("1 s", exact=True).wait_for()
    driver.check("file-progress", rules=True)
    requests[0].continue_()
    driver.page.locator(".file").get_by_text("a b_en.html is ready: 2 texts").wait_for()
    driver.check("file-done", rules=True)
    with driver.page.expect_download() as download:
        driver.page.get_by_role("button", name="Save a b_en.html").press("Enter")
    assert download.value.suggested_filename == "a b_en.html"
    assert Path(download.value.path()).read_text(encoding="utf-8") == expected
    ((place, source, reasons),) = answer["report"]["doubtful"]
    cells = driver.page.get_by_role("region", name="Doubtful translations").locator("td").all_inner_texts()
    assert cells == [place, source, "; ".join(reasons)]
    driver.page.get_by_role("button", name="한국어").click()
    driver.page.locator(".file").get_by_text("a b_en.html 번역을 마쳤습니다. 텍스트 2개").wait_for()


def test_the_translation_of_a_file_can_be_cancelled(driver: PageDriver) -> None:
    requests: list[Route] = []
    driver.page.route("**/translate_file", lambda route: requests.append(route))
    choose(driver, "a.html", HTML)
    with driver.page.expect_event("requestfailed") as failed:
        driver.page.get_by_role("button", name="Cancel").press("Enter")
    assert failed.value.url.endswith("/translate_file")
    assert driver.page.locator("progress").count() == 0
    assert driver.focused("e.textContent") == "Translate a file"


def test_a_dropped_file_that_cannot_be_translated_shows_why(driver: PageDriver) -> None:
    driver.open("model")
    driver.page.evaluate(DROP, ["a.pdf", "%PDF-1.4"])
    driver.wait_for_view("translate")
    driver.page.get_by_role("alert").get_by_text("is PDF").wait_for()
    driver.expect_refused()
    driver.check("file-refused", rules=True)
