"""Run a line that starts a server: wait until it is ready, ask it what the page asks, and end it by a signal.

It runs in this process, on a free port; `tests/serving` starts servers as processes of their own.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Sequence
from io import BytesIO

from tests.docs.commands import Outcome, split, streams

from manyheads.cli.main import run as run_program

__all__ = ["serve"]

SECONDS = 60.0
READY = re.compile(r"ready: .* at (http://\S+)\n")
END = b"ready: nothing at http://nowhere\n"
ADDRESS = "http://127.0.0.1:5000"  # in the pages; here a free port is taken


def serve(text: str, asked: Sequence[str]) -> tuple[Outcome, list[Outcome]]:
    """Serve; returns what came of it and of the lines that ask it."""
    words, _ = split(text)
    answers: list[Outcome] = []
    faults: list[BaseException] = []
    with streams("") as (_, log):
        asking = threading.Thread(target=ask_and_end, args=(log, words, asked, answers, faults))
        asking.start()
        code = run_program([*words[1:], "--port", "0"])
        log.write(END)  # whoever still waits need not
        asking.join()
    if faults:
        raise faults[0]
    return Outcome(code, "", log.getvalue().decode()), answers


def ask_and_end(
    log: BytesIO, words: list[str], asked: Sequence[str], answers: list[Outcome], faults: list[BaseException]
) -> None:
    """Wait until a server says that it is ready, ask it, and send this process the signal that ends it."""
    end = time.monotonic() + SECONDS
    try:
        while not (found := READY.search(log.getvalue().decode())):
            assert time.monotonic() < end, log.getvalue().decode()
            time.sleep(0.01)
        if END in log.getvalue():
            return
        check_health(found[1], words)
        answers += [ask(line, found[1]) for line in asked]
    except BaseException as fault:
        faults.append(fault)
    if END in log.getvalue():
        return
    os.kill(os.getpid(), signal.SIGTERM)


def check_health(url: str, words: list[str]) -> None:
    """A server that is ready says so, under the name that it was given."""
    name = words[words.index("--host-name") + 1] if "--host-name" in words else "127.0.0.1"
    request = urllib.request.Request(f"{url.replace('0.0.0.0', '127.0.0.1')}/health", headers={"Host": name})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=SECONDS) as answer:
        assert answer.status == 200


def ask(line: str, url: str) -> Outcome:
    """Run a line of curl."""
    assert ADDRESS in line, line
    command = shlex.split(line.replace(ADDRESS, url))
    done = subprocess.run([*command, "--noproxy", "*"], capture_output=True, timeout=SECONDS, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stdout.decode())
