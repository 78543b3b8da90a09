"""The book is built without a warning, and what is built asks nothing of the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")
pytest.importorskip("furo")
pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent.parent / "docs"
# What a browser fetches by itself: not links that a reader may follow.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*href=\"(?:https?:)?//"
)
STYLED = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book, built."""
    out = tmp_path_factory.mktemp("book")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(out / "trees"), str(DOCS)]
    done = subprocess.run([*command, str(out / "html")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return out / "html"


def test_no_page_fetches_anything_from_elsewhere(book: Path) -> None:
    pages = list(book.rglob("*.html"))
    assert len(pages) > 30
    assert not [page.name for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))]
    assert not [page.name for page in book.rglob("*.css") if STYLED.search(page.read_text(encoding="utf-8"))]


def test_formulas_are_drawn_by_the_browser_itself(book: Path) -> None:
    page = (book / "tutorial" / "part-by-part.html").read_text(encoding="utf-8")
    assert page.count("<math") >= 8
    assert not re.search(r"<script[^>]*mathjax", page, re.IGNORECASE)


def test_the_anchors_that_the_doctor_points_to_are_there(book: Path) -> None:
    from manyheads.doctor.catalogue import CATALOGUE

    pages = "".join(page.read_text(encoding="utf-8") for page in book.glob("doctor*.html"))
    assert not [name for name in CATALOGUE["model"] if f'id="{name}"' not in pages]
