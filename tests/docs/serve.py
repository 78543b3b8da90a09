"""Run a line that starts a server: wait until it is ready, send the requests of the page, and stop it by a signal.

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

TIMEOUT = 60.0
READY = re.compile(r"ready: .* at (http://\S+)\n")
END = b"ready: nothing at http://nowhere\n"
ADDRESS = "http://127.0.0.1:5000"  # in the pages; here a free port is taken


def serve(text: str, requests: Sequence[str]) -> tuple[Outcome, list[Outcome]]:
    """Run a server; return its outcome and those of the requests."""
    words, _ = split(text)
    answers: list[Outcome] = []
    faults: list[BaseException] = []
    with streams("") as (_, log):
        requesting = threading.Thread(target=send_requests_and_stop, args=(log, words, requests, answers, faults))
        requesting.start()
        code = run_program([*words[1:], "--port", "0"])
        log.write(END)  # ends the waiting of the other thread
        requesting.join()
    if faults:
        raise faults[0]
    return Outcome(code, "", log.getvalue().decode()), answers


def send_requests_and_stop(
    log: BytesIO, words: list[str], requests: Sequence[str], answers: list[Outcome], faults: list[BaseException]
) -> None:
    """Wait until a server is ready, send the requests, and send this process the signal that stops it."""
    end = time.monotonic() + TIMEOUT
    try:
        while not (found := READY.search(log.getvalue().decode())):
            assert time.monotonic() < end, log.getvalue().decode()
            time.sleep(0.01)
        if END in log.getvalue():
            return
        check_health(found[1], words)
        answers += [run_curl(line, found[1]) for line in requests]
    except BaseException as fault:
        faults.append(fault)
    if END in log.getvalue():
        return
    os.kill(os.getpid(), signal.SIGTERM)


def check_health(url: str, words: list[str]) -> None:
    """Check that the server answers its health route under the name that it was given."""
    name = words[words.index("--host-name") + 1] if "--host-name" in words else "127.0.0.1"
    request = urllib.request.Request(f"{url.replace('0.0.0.0', '127.0.0.1')}/health", headers={"Host": name})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=TIMEOUT) as answer:
        assert answer.status == 200


def run_curl(line: str, url: str) -> Outcome:
    """Run a line of curl."""
    assert ADDRESS in line, line
    command = shlex.split(line.replace(ADDRESS, url))
    done = subprocess.run([*command, "--noproxy", "*"], capture_output=True, timeout=TIMEOUT, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stdout.decode())
