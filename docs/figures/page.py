"""Takes the pictures of docs/inspecting.md and of the README: python docs/figures/page.py runs/demo-de-en.

Needs playwright, a Chromium, Pillow and a Korean font.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from manyheads.web.html_export import write_page

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
MOVING = {"en": "page-moving.gif", "ko": "page-moving-ko.gif"}


def take(browser: Browser, address: str, pictures: Pictures) -> None:
    """Take pictures of the page at an address."""
    for name, (language, view, state, (width, height)) in pictures.items():
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
        page.goto(f"{address}?lang={language}#/{view}?{urlencode(state)}")
        page.locator("#panel[aria-busy=false] .figure").first.wait_for()
        page.screenshot(path=HERE / name)


def take_moving_picture(browser: Browser, address: str, language: str, name: str) -> None:
    """Take a moving picture of the whole model, step by step as the second token is written."""
    page = browser.new_page(viewport={"width": 1180, "height": 660}, reduced_motion="reduce")
    frames, part, last = [], 0, 0
    while part <= last:
        page.goto("about:blank")
        page.goto(f"{address}?lang={language}#/whole?{urlencode({'q': TEXT, 'part': part, 'at': 1})}")
        page.locator("#panel[aria-busy=false] .figure").first.wait_for()
        last = int(page.locator("input[type=range]").get_attribute("max") or 0)
        frames.append(
            Image.open(BytesIO(page.screenshot())).convert("RGB").resize((944, 528), Image.Resampling.LANCZOS)
        )
        part += 1
    palette = frames[-1].quantize(64)
    still = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    still[0].save(HERE / name, save_all=True, append_images=still[1:], duration=1_400, loop=0, optimize=True)


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
            for language, name in MOVING.items():
                take_moving_picture(browser, alone.as_uri(), language, name)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
