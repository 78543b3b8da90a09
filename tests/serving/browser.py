"""A real browser that opens the page, and a record of everything that a page must not do."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Frame, Locator, Page, sync_playwright

from manyheads.web.scripts import PAGE, WEB

# The folder of pictures of every checked view, for people: written where MANYHEADS_TESTS_SCREENSHOTS is set.
SCREENS = Path(__file__).parent.parent.parent / "test-artefacts" / "page"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
REQUIRED = "MANYHEADS_TESTS_NEED_BROWSER"
MILLISECONDS = 60_000  # a busy machine takes longer for a view
EXPECTED = "the server responded with a status of 400"
RULES = {
    "rules": {"label-content-name-mismatch": {"enabled": True}},  # WCAG 2.5.3, which old versions leave out
    "resultTypes": ["violations"],  # a selector for each of the thousand elements without one takes seconds
}
# Reports every violation of the content security policy to the console.
WATCH_POLICY = """
document.addEventListener("securitypolicyviolation",
  (event) => console.error("policy: " + event.violatedDirective + " " + event.blockedURI));
"""


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the Chromium of this machine; without one, skip the test, or fail if a browser is required."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = "there is no Chromium here: apt-get install chromium"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{reason}, or unset {REQUIRED}")
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


# Sends a request to the worker of an exported page, in the place of that of a translation; returns its answer.
ASK = """([path, body]) => {
  const { prototype } = Worker;
  const { postMessage } = prototype;
  prototype.postMessage = function (message) {
    prototype.postMessage = postMessage;
    this.postMessage({ ...message, path, body });
  };
  return window.manyheads.translate("");
}"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Do nothing."""


@contextmanager
def serve_files(folder: Path) -> Iterator[str]:
    """Serve the files of a folder inside the context; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def open_modules(browser: Browser) -> Iterator[Page]:
    """Open the empty page, with its style and its English texts, whose modules scripts can import."""
    with serve_files(WEB) as address:
        page = browser.new_page()
        page.goto(f"{address}/page/index.html")
        page.add_style_tag(path=PAGE / "page.css")
        page.evaluate("""async () => {
          const { mh } = await import("/page/state.js");
          mh.strings.en = await (await fetch("/page/en.json")).json();
        }""")
        yield page
        page.close()


class PathProxyHandler(QuietHandler):
    """Pass requests below a path on to a server, without the path, as nginx does for `location /translate/`."""

    server: PathProxy

    def do_GET(self) -> None:
        path = self.path.removeprefix(self.server.path)
        if path == self.path:
            self.send_error(404)
            return
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: self.headers[name] for name in ("Content-Type", "Origin") if name in self.headers}
        headers["Host"] = self.headers["Host"]
        answer = httpx.request(self.command, self.server.target + path, content=content, headers=headers)
        self.send_response(answer.status_code)
        for name in ("Content-Type", "Content-Security-Policy"):
            self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_POST = do_GET


class PathProxy(ThreadingHTTPServer):
    """A reverse proxy of one server below a path, such as `/translate`."""

    def __init__(self, target: str, path: str) -> None:
        super().__init__(("127.0.0.1", 0), PathProxyHandler)
        self.target, self.path = target.rstrip("/"), path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.path}/"


@contextmanager
def serve_below(target: str, path: str) -> Iterator[str]:
    """Serve the pages of a server below a path inside the context; yield the address."""
    with PathProxy(target, path) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield proxy.address
        finally:
            proxy.shutdown()
            thread.join()


def wait_until(page: Page | Frame, condition: str, *, seconds: float = MILLISECONDS / 1000) -> None:
    """Wait until a JavaScript condition holds, also where a page forbids `wait_for_function` to evaluate it."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


class PageDriver:
    """A driver of the page in a browser.

    Attributes:
        page: the page of Playwright.
        faults: messages of the console, errors of scripts, and requests to other hosts.
        refused: how many requests the server answered with status 400.
        open_requests: how many requests have no answer yet.
        name: the name of the screenshots.
    """

    def __init__(
        self, browser: Browser, address: str, *, language: str = "en", width: int = 1280, scheme: str = "light"
    ) -> None:
        self.address, self.language, self.width = address, language, width
        self.name = f"{language}-{width}"
        self.context = browser.new_context(
            viewport={"width": width, "height": 850},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            accept_downloads=True,
        )
        self.context.set_default_timeout(MILLISECONDS)
        self.context.add_init_script(WATCH_POLICY)
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", lambda message: self.record_message(message.type, message.text))
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.check_request(request.url))
        self.refused = self.open_requests = 0
        self.page.on("response", lambda response: self.count_refused(response.status))
        for event in ("requestfinished", "requestfailed"):
            self.page.on(event, lambda _: self.count_open(-1))

    def record_message(self, kind: str, text: str) -> None:
        if kind != "verbose":  # Chromium's advice, as that the field of a key should be in a form
            self.faults.append(f"{kind}: {text}")

    def count_open(self, change: int) -> None:
        self.open_requests += change

    def check_request(self, url: str) -> None:
        self.count_open(1)
        if not url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"outside: {url}")

    def count_refused(self, status: int) -> None:
        self.refused += status == 400

    def expect_refused(self) -> None:
        """Expect answers of status 400, and take Chromium's own message about each of them from the faults.

        A view asks for several things at once: other answers and messages may come after it shows the error.
        """
        end = time.monotonic() + MILLISECONDS / 1000
        while self.open_requests or not 0 < self.refused <= sum(EXPECTED in fault for fault in self.faults):
            assert time.monotonic() < end, (self.open_requests, self.refused, self.faults)
            self.page.wait_for_timeout(20)  # milliseconds; events arrive meanwhile
        self.faults = [fault for fault in self.faults if EXPECTED not in fault]
        self.refused = 0

    def open(self, tab: str, **state: object) -> Locator:
        """Go to a view by its address, and return its panel."""
        hash_ = f"#/{tab}?{urlencode(state)}" if state else f"#/{tab}"
        current = self.page.url.partition("#")[0]
        if current == f"{self.address}?lang={self.language}":
            self.page.evaluate(
                "(hash) => { location.hash = hash; return new Promise((done) => setTimeout(done)); }", hash_
            )
        else:
            self.page.goto(f"{self.address}?lang={self.language}{hash_}")
        return self.wait_for_view(tab)

    def wait_for_view(self, tab: str) -> Locator:
        """Wait until a view is selected and loaded, and return its panel."""
        self.page.locator(f"#tab-{tab}[aria-selected=true]").wait_for()
        self.page.locator("#panel[aria-busy=false]").wait_for()
        return self.page.locator("#panel")

    def figure(self, name: str) -> Locator:
        return self.page.locator(f'[data-figure="{name}"]')

    def focused(self, expression: str) -> Any:
        """Evaluate an expression about the focused element `e`."""
        return self.page.evaluate(f"(() => {{ const e = document.activeElement; return {expression}; }})()")

    def check(self, name: str, *, rules: bool = False) -> None:
        """Check that the page is not wider than the window, has no faults, and follows the accessibility rules."""
        wider = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if os.environ.get("MANYHEADS_TESTS_SCREENSHOTS"):
            SCREENS.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=SCREENS / f"{name}-{self.name}.png", full_page=True)
        assert wider == 0, f"{name}: {wider} pixels too wide"
        assert self.faults == []
        if rules:
            found = Axe().run(self.page, options=RULES)
            assert found.violations_count == 0, found.generate_report()

    def wait_until(self, condition: str, *, seconds: float = MILLISECONDS / 1000) -> None:
        """Wait until a JavaScript condition holds in the page."""
        wait_until(self.page, condition, seconds=seconds)

    def close(self) -> None:
        self.context.close()


@contextmanager
def driving(browser: Browser, address: str, **options: Any) -> Iterator[PageDriver]:
    """Drive a page that must report no fault."""
    driver = PageDriver(browser, address, **options)
    try:
        yield driver
        assert driver.faults == []
    finally:
        driver.close()
