"""The JavaScript and HTML of the documentation run unchanged, beside an exported module."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.docs.book import DOCS
from tests.docs.console import fences
from tests.runs.parts import SENTENCES, make_config, write_corpus

from manyheads.inference.translation.translator import Translator
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.web.check import _find_node

PAGE = DOCS / "exporting.md"
NAME = re.compile(r"(?://|<!--) ([\w.-]+)")  # first line of a block: the name of its file


def files() -> dict[str, str]:
    """Return the blocks of JavaScript and HTML of the page by file name."""
    found = {}
    for block in fences(PAGE):
        if block.language in ("js", "html"):
            name = NAME.match(block.text)
            assert name is not None, f"{PAGE.name}:{block.line} does not begin with the name of a file"
            found[name[1]] = block.text
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a translator, and return its run."""
    folder = tmp_path_factory.mktemp("javascript")
    train(make_config(write_corpus(folder / "corpus")), folder / "de-en")
    return folder / "de-en"


@pytest.fixture(scope="module")
def module(run: Path) -> Path:
    """Export the translator as a module, beside the files of the page."""
    folder = run.parent / "module"
    export(run, folder, "javascript", quantization="float32")
    for name, content in files().items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_the_program_for_node_translates(module: Path) -> None:
    node = _find_node()
    if node is None:
        pytest.skip("Node.js is not installed")
    done = subprocess.run([node, "program.mjs"], cwd=module, capture_output=True, timeout=60, check=False)
    assert not done.stderr, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 2
    assert all(re.search(r" -\d+\.\d+$", line) for line in lines)


def test_the_pages_translate_the_typed_text(module: Path, run: Path) -> None:
    pytest.importorskip("playwright")
    from tests.serving.browser import open_browser, serve_files

    pages = [name for name in files() if name.endswith(".html")]
    assert len(pages) == 2
    found = Translator.load(run).translate([source for source, _ in SENTENCES])
    expected = next(result for result in found if result.translation.strip())  # after 12 updates, some are blank
    with open_browser() as browser, serve_files(module) as address:
        for name in pages:
            faults: list[str] = []
            page = browser.new_page()
            page.on("pageerror", lambda error, faults=faults: faults.append(str(error)))
            page.goto(f"{address}/{name}")
            page.locator("#source").fill(expected.source)
            page.locator("#source").blur()
            page.locator("#target", has_text=expected.translation).wait_for(timeout=60_000)
            assert not faults, name
            page.close()
