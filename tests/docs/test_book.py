"""The English and the Korean documentation build without a warning, and load nothing from the network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus
from tests.serving.browser import Axe, open_browser, wait_until

from manyheads.runs.train import train
from manyheads.web.html_export import write_page

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")
pytest.importorskip("furo")
pytest.importorskip("sphinx_copybutton")
pytestmark = [pytest.mark.slow, pytest.mark.weekly]  # `make docs`, which runs for each change, has its warnings

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
# Elements that a browser fetches by itself, as opposed to links that a reader may follow.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*href=\"(?:https?:)?//"
)
STYLED = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")


def build_docs(arguments: list[str], trees: Path, html: Path) -> Path:
    """Build the documentation with Sphinx, and return its folder."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(trees), *arguments, str(html)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return html


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the English documentation, with a tiny model in place of the demo."""
    out = tmp_path_factory.mktemp("book")
    html = build_docs([str(DOCS)], out / "trees", out / "html")
    train(make_config(write_corpus(out / "corpus"), model={"num_decoder_layers": 2}), out / "demo-de-en")
    write_page(out / "demo-de-en", html / "demo-de-en.html")
    return html


@pytest.fixture(scope="module")
def korean_book(book: Path) -> Path:
    """Build the Korean documentation inside the English one, as `make docs` does."""
    arguments = ["-t", "ko", "-c", str(DOCS), str(DOCS / "ko")]
    return build_docs(arguments, book.parent / "trees-ko", book / "ko")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_no_page_fetches_anything_from_another_host(book: Path, korean_book: Path) -> None:
    pages = list(book.rglob("*.html"))
    assert len(pages) > 60
    assert not [page.name for page in pages if FETCHED.search(text_of(page))]
    assert not [page.name for page in book.rglob("*.css") if STYLED.search(text_of(page))]


def test_each_language_is_declared_and_links_to_the_other(book: Path, korean_book: Path) -> None:
    for folder, language, other in ((book, "en", "ko"), (korean_book, "ko", "en")):
        for page in (folder / "index.html", *folder.glob("*ing.html"), *folder.glob("tutorial/*.html")):
            text = text_of(page)
            assert f'<html class="no-js" lang="{language}"' in text
            link = re.search(rf'<a href="([^"]+)" lang="{other}"', text)
            assert link is not None
            assert (page.parent / unescape(link[1])).is_file(), (page, link[1])


def test_no_link_of_either_language_is_broken(book: Path, korean_book: Path) -> None:
    broken = []
    for page in book.rglob("*.html"):
        for link in re.findall(r'<a [^>]*href="([^"#?]+)[^"]*"', text_of(page)):
            if not re.match(r"[a-z]+:", link) and not (page.parent / unescape(link)).exists():
                broken.append((page.relative_to(book).as_posix(), link))
    assert not broken


def test_the_korean_documentation_has_a_korean_interface_and_search_index(korean_book: Path) -> None:
    page = text_of(korean_book / "doctor.html")
    assert "이 페이지에서" in page
    assert "On this page" not in page
    assert json.dumps("학습") in text_of(korean_book / "searchindex.js")


LIVE = {
    "tutorial/attention": "steps",
    "tutorial/masks": "attention",
    "tutorial/layers": "whole",
    "tutorial/loss": "words",
    "howto/python-api": "beam",
    "tutorial/train": "training",
    "ko/tutorial/attention": "steps",
    "ko/tutorial/positions": "attention",
    "ko/tutorial/search": "beam",
    "ko/tutorial/translator": "alignment",
}


def test_the_embedded_page_computes_in_the_browser_without_its_header(book: Path, korean_book: Path) -> None:
    with open_browser() as browser:
        for name, tab in LIVE.items():
            page = browser.new_page(viewport={"width": 390, "height": 800})
            faults: list[str] = []
            page.on("console", lambda message, faults=faults: faults.append(message.text))
            page.on("pageerror", lambda error, faults=faults: faults.append(str(error)))
            page.goto((book / f"{name}.html").as_uri())
            page.locator(".live").scroll_into_view_if_needed()
            frame = page.frame_locator(".live iframe")
            frame.locator(f"#tab-{tab}[aria-selected=true]").wait_for()
            frame.locator("#panel[aria-busy=false] .figure").first.wait_for()
            assert frame.locator("html").get_attribute("lang") == ("ko" if name.startswith("ko/") else "en")
            if tab not in ("whole", "training"):  # which show no text, or in the drawing
                assert "Was werden die müden Bauern" in frame.locator(".about-source").inner_text()
            assert frame.locator("header.top").is_hidden()
            wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            wait_until(page.frames[1], "document.documentElement.scrollHeight <= innerHeight")
            assert page.evaluate(wider) == frame.locator("html").evaluate(f"() => {wider}") == 0
            assert faults == []
            page.get_by_role("link", name=re.compile("Open the whole page|전체 페이지")).click()
            page.locator(f"#tab-{tab}[aria-selected=true]").wait_for()
            assert page.locator("header.top").is_visible()
            page.close()


def test_pages_of_the_book_keep_the_rules_of_accessibility(book: Path, korean_book: Path) -> None:
    """Leave out the empty corner of a table that compares, which is no mistake, and the frame, which has a test."""
    options = {"iframes": False, "resultTypes": ["violations"], "rules": {"empty-table-header": {"enabled": False}}}
    with open_browser() as browser:
        for name in ("index", "gallery", "tutorial/train", "ko/inspecting", "ko/tutorial/layers"):
            page = browser.new_page(viewport={"width": 390, "height": 800})
            page.goto((book / f"{name}.html").as_uri())
            found = Axe().run(page, options=options)
            assert found.violations_count == 0, found.generate_report()
            page.close()
