"""Takes the pictures of docs/inspecting.md and of the README: python docs/figures/page.py runs/demo-de-en.

Needs playwright, a Chromium and a Korean font.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

from manyheads.runs.html_export import write_page

HERE = Path(__file__).parent
TEXT = "Was werden die müden Bauern am Freitag bauen?"
HEAD = {"q": TEXT, "kind": "cross", "layer": 1, "head": 0}
# Language, view, state, size.
Pictures = dict[str, tuple[str, str, dict[str, object], tuple[int, int]]]
PICTURES: Pictures = {
    "page-attention.png": ("en", "attention", HEAD, (1080, 1000)),
    "page-attention-ko.png": ("ko", "attention", HEAD, (1080, 1000)),
    "page-whole.png": ("en", "whole", {"q": TEXT, "part": 12, "at": 2}, (1180, 660)),
    "page-whole-ko.png": ("ko", "whole", {"q": TEXT, "part": 12, "at": 2}, (1180, 660)),
    "page-words-ko.png": ("ko", "words", {"q": TEXT, "at": 2}, (1080, 760)),
}
ALONE: Pictures = {  # of the page in one file
    "page-alone.png": ("en", "steps", HEAD | {"query": 2, "stage": 2}, (1080, 1000)),
    "page-alone-ko.png": ("ko", "steps", HEAD | {"query": 2, "stage": 2}, (1080, 1000)),
}


def take(browser: Browser, address: str, pictures: Pictures) -> None:
    """Take pictures of the page at an address."""
    for name, (language, view, state, (width, height)) in pictures.items():
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
        page.goto(f"{address}?lang={language}#/{view}?{urlencode(state)}")
        page.locator("#panel[aria-busy=false] .figure").first.wait_for()
        page.screenshot(path=HERE / name)


def main(run: str) -> None:
    """Serve the run, and take all pictures."""
    command = [sys.executable, "-m", "manyheads", "serve", run, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stderr is not None
        address = next(found[1] for line in server.stderr if (found := re.search(r"ready: .* at (\S+)", line)))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take(browser, f"{address}/", PICTURES)
        with TemporaryDirectory() as folder:
            alone = Path(folder, f"{Path(run).name}.html")
            write_page(Path(run), alone)
            take(browser, alone.as_uri(), ALONE)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
