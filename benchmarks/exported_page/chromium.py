"""Headless Chromium with an exported page: the page, its processes, and its memory."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FOLDER = Path(__file__).parent
TIMEOUT = 120_000  # milliseconds, enough for a page on a busy machine


def script(name: str) -> str:
    """Return the text of a script of this folder."""
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

    def resident(self) -> float:
        """Return the resident memory of all renderers in MiB."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.renderers())
        return pages * 4096 / 2**20


class Heaps:
    """The JavaScript heaps of a page and of its worker."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.answers: dict[int, Any] = {}
        self.worker, self.count = "", 0
        self.session.on("Target.attachedToTarget", self.attached)
        self.session.on("Target.receivedMessageFromTarget", self.received)
        options = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        self.session.send("Target.setAutoAttach", options)
        while not self.worker:
            page.wait_for_timeout(10)

    def attached(self, event: dict[str, Any]) -> None:
        """Store the session of the worker."""
        self.worker = event["sessionId"]

    def received(self, event: dict[str, Any]) -> None:
        """Store an answer of the worker by its id."""
        message = json.loads(event["message"])
        self.answers[message.get("id", 0)] = message.get("result")

    def ask_worker(self, method: str, **options: Any) -> Any:
        """Send a command of the DevTools protocol to the worker; return its result."""
        self.count += 1
        message = json.dumps({"id": self.count, "method": method, "params": options})
        self.session.send("Target.sendMessageToTarget", {"sessionId": self.worker, "message": message})
        while self.count not in self.answers:
            self.page.wait_for_timeout(10)
        return self.answers.pop(self.count)

    def sizes(self) -> dict[str, float]:
        """Collect garbage; return the MiB of the WebAssembly memory and of the heaps of worker and page."""
        self.session.send("HeapProfiler.collectGarbage")
        self.ask_worker("HeapProfiler.collectGarbage")
        heaps = [self.ask_worker("Runtime.getHeapUsage"), self.session.send("Runtime.getHeapUsage")]
        memory = self.ask_worker("Runtime.evaluate", expression="WebAssembly.Memory.prototype")["result"]
        found = self.ask_worker("Runtime.queryObjects", prototypeObjectId=memory["objectId"])["objects"]
        total = "function () { return this.reduce((sum, { buffer }) => sum + buffer.byteLength, 0); }"
        options = {"objectId": found["objectId"], "functionDeclaration": total, "returnByValue": True}
        wasm = self.ask_worker("Runtime.callFunctionOn", **options)["result"]["value"]
        worker, page = (heap["usedSize"] for heap in heaps)
        return {name: size / 2**20 for name, size in (("wasm", wasm), ("worker", worker), ("page", page))}
