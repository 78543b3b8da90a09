"""Takes the pictures of docs/page.md: python docs/figures/page.py runs/demo-de-en.

Needs playwright, a Chromium and a Korean font.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
TEXT = "Was werden die müden Bauern am Freitag bauen?"
HEAD = {"q": TEXT, "kind": "cross", "layer": 1, "head": 0}
PICTURES = {
    "page-attention.png": ("en", "attention", HEAD, (1080, 1000)),
    "page-attention-ko.png": ("ko", "attention", HEAD, (1080, 1000)),
    "page-steps.png": ("en", "steps", HEAD | {"query": 2}, (1080, 1350)),
    "page-steps-ko.png": ("ko", "steps", HEAD | {"query": 2}, (1080, 1350)),
    "page-words-ko.png": ("ko", "words", {"q": TEXT, "at": 2}, (1080, 760)),
}


def main(run: str) -> None:
    """Serve the run, and take all pictures."""
    command = [sys.executable, "-m", "manyheads", "serve", run, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stderr is not None
        address = next(found[1] for line in server.stderr if (found := re.search(r"ready: .* at (\S+)", line)))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (language, view, state, (width, height)) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
            page.goto(f"{address}/?lang={language}#/{view}?{urlencode(state)}")
            page.locator("#panel[aria-busy=false] .figure").first.wait_for()
            page.screenshot(path=HERE / name)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
