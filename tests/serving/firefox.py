"""Firefox of this machine, driven by WebDriver BiDi (w3.org/TR/webdriver-bidi) over its own WebSocket.

Playwright drives a Firefox of its own, and its channel "moz-firefox" sends commands that Firefox 153 lacks.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("firefox", "firefox-esr")
TIMEOUT = 120
EVENTS = ["network.beforeRequestSent", "log.entryAdded"]


class Firefox:
    """A tab of Firefox.

    Attributes:
        version: the version of Firefox.
        requests: the requested addresses.
        log: messages of the console, and errors of scripts.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = connection.makefile("rb")
        self.count = 0
        self.requests: list[str] = []
        self.log: list[str] = []
        host = "{}:{}".format(*connection.getpeername())
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall(
            f"GET /session HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert b" 101 " in self.received.readline()
        while self.received.readline().strip():
            pass
        self.version: str = self.command("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.tab: str = self.command("browsingContext.getTree")["contexts"][0]["context"]
        self.command("session.subscribe", events=EVENTS)

    def send(self, text: str) -> None:
        """Send a WebSocket message (RFC 6455, section 5.2), which clients must mask."""
        data = text.encode()
        assert len(data) < 1 << 16
        length = struct.pack(">BH", 0xFE, len(data)) if len(data) > 125 else bytes([0x80 | len(data)])
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.connection.sendall(b"\x81" + length + mask + masked)

    def receive(self) -> str:
        """Receive a WebSocket message, in one frame or several."""
        message = b""
        while True:
            first, second = self.received.read(2)
            form, length = {126: ">H", 127: ">Q"}.get(second), second
            if form:
                (length,) = struct.unpack(form, self.received.read(struct.calcsize(form)))
            message += self.received.read(length)
            if first & 0x80:
                return message.decode()

    def command(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result; earlier events are recorded."""
        self.count += 1
        self.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.receive())
            if answer["type"] == "event":
                values = answer["params"]
                if answer["method"] == "network.beforeRequestSent":
                    self.requests.append(values["request"]["url"])
                else:
                    self.log.append(values["text"])
            elif answer["id"] == self.count:
                assert answer["type"] == "success", answer
                return answer["result"]

    def goto(self, address: str) -> None:
        """Open an address; return when the page has loaded."""
        self.command("browsingContext.navigate", context=self.tab, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """Return the JSON value of an expression, or of the promise that it returns."""
        found = self.command(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))",
            target={"context": self.tab},
            awaitPromise=True,
        )
        assert found["type"] == "success", found["exceptionDetails"]["text"]
        return json.loads(found["result"]["value"])


@contextmanager
def open_firefox() -> Iterator[Firefox]:
    """Start Firefox without a window; without one the test is skipped."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Firefox here: apt-get install firefox-esr")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [program, "--headless", "--no-remote", "--profile", folder, "--remote-debugging-port", "0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            marked = next(line for line in process.stderr if "WebDriver BiDi listening on" in line)
            with socket.create_connection(("127.0.0.1", int(marked.rsplit(":", 1)[1])), TIMEOUT) as connection:
                yield Firefox(connection)
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT)
