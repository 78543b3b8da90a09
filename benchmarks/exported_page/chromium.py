"""Headless Chromium with an exported page: the page, and the processor time of its renderer."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FOLDER = Path(__file__).parent
TIMEOUT = 120_000  # milliseconds, enough for a page on a busy machine


def script(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@contextmanager
def open_chromium() -> Iterator[Chromium]:
    """Start Chromium; exit with a message if it is not installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        sys.exit("there is no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield Chromium(browser)
        finally:
            browser.close()


class Chromium:
    """A browser whose only page is the one opened last."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.processes = browser.new_browser_cdp_session()
        self.page: Page | None = None

    def open(self, address: str) -> Page:
        """Open an address in a renderer of its own."""
        if self.page is not None:
            self.page.context.close()
        context = self.browser.new_context()
        context.set_default_timeout(TIMEOUT)
        context.add_init_script(script("ready.js"))
        self.page = context.new_page()
        self.page.goto(address)
        return self.page

    def open_export(self, path: Path) -> tuple[Page, float]:
        """Open an exported page; return it and the milliseconds from navigation until its worker is ready."""
        page = self.open(path.as_uri())
        ready = page.evaluate("pageReady")
        if isinstance(ready, str):
            sys.exit(f"{path}: {ready}")
        return page, ready

    def renderers(self) -> dict[int, float]:
        """Return the processor seconds of each renderer by its process id."""
        processes = self.processes.send("SystemInfo.getProcessInfo")["processInfo"]
        return {process["id"]: process["cpuTime"] for process in processes if process["type"] == "renderer"}

    def processor_seconds(self, since: Mapping[int, float]) -> float:
        """Return the processor seconds of all renderers since an earlier call of `renderers`."""
        return sum(seconds - since.get(pid, 0) for pid, seconds in self.renderers().items())
