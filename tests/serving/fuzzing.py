"""Malformed and unusual requests, which are the same for the same seed.

    PYTHONPATH=.:src python -m tests.serving.fuzzing RUN... --count 10000

starts a server of some runs, sends the requests, and exits with 1 if a request is answered with status 500 or
above, is not answered, or hangs.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from urllib.parse import urlencode

PATHS = ["/translate", "/detect", "/classify", "/v1/completions", "/languages", "/health", "/spec", "/suggest", "/"]
METHODS = ["POST"] * 8 + ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "X"]
KINDS = [
    *["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] * 3,
    *[
        "text/plain",
        "",
        "application/json; charset=latin-1",
        "multipart/form-data",
        "application/vnd.x+json",
        "a/b;;",
    ],
]
WORDS = [
    *["der Hund", "läuft", "<b>", "</b>", "<p translate=no>", "&amp;", "\u0000", "\ud800", "🙂", "안녕", "\r\n"],
    *["a" * 300, "<!--", "\u202e", "%ff", "\x1b[31m", "..", "' OR 1=1", "{{7*7}}", "e\u0301", "\ufeff", " "],
]
NAMES = [
    *["q", "source", "target", "format", "alternatives", "api_key", "model", "prompt", "max_tokens", "temperature"],
    *["n", "stop", "stream", "seed", "top_p", "echo", "__proto__", ""],
]
ADDRESSES = ["/%ff", "//", "/translate/../health", "/" + "a" * 5_000, "*", "http://x/translate", "/translate?%"]
HEADERS = [
    *["Content-Length: -1", "Content-Length: x", "Transfer-Encoding: gzip", "Expect: 100-continue", "Host: evil"],
    *["Content-Length: 99999999999", "Origin: null", "A b: c", "X: \x00"],
]
HANG_SECONDS = 20.0  # seconds without a byte that count as a hang


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request: its status (0 if the connection was closed), its duration, and the sent bytes."""

    status: int
    seconds: float
    sent: bytes


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(0, 6)))


def value(rng: random.Random, depth: int = 0) -> object:
    """Return a random JSON value."""
    kind = rng.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if kind == 8:
        return {rng.choice(NAMES): value(rng, depth + 1) for _ in range(rng.randint(0, 3))}
    return [text(rng), None, True, rng.randint(-5, 12), rng.uniform(-1e3, 1e3), 10**30, ""][kind]


def fields(rng: random.Random) -> dict[str, object]:
    """Return parameters, most of them valid, some invalid or missing."""
    parameters: dict[str, object] = {
        "q": rng.choice([text(rng), [text(rng) for _ in range(rng.randint(0, 4))]]),
        "source": rng.choice(["de", "en", "auto", "DE", "zz"]),
        "target": rng.choice(["en", "de", "en-US", "x" * 99]),
        "format": rng.choice(["text", "html", "pdf"]), "alternatives": rng.choice([0, 1, 3, 11, "2", -1]),
        "prompt": text(rng), "max_tokens": rng.choice([1, 5, 9]),
    }  # fmt: skip
    for _ in range(rng.choice([0, 0, 1, 2])):
        parameters[rng.choice(NAMES)] = value(rng)
    for name in rng.sample(list(parameters), rng.choice([0, 0, 0, 1, 3])):
        del parameters[name]
    return parameters


def body_of(rng: random.Random, kind: str) -> bytes:
    """Return a body of a content type; some are corrupt."""
    parameters = fields(rng)
    if "json" in kind:
        found = json.dumps(parameters, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    elif "multipart" in kind:
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in parameters.items()
        ]
        found = ("".join(parts) + "--x--\r\n").encode("utf-8", "surrogatepass")
    else:
        found = urlencode(
            {name: str(value).encode("utf-8", "surrogatepass") for name, value in parameters.items()}
        ).encode()
    if rng.random() < 0.25 and found:
        index = rng.randrange(len(found))
        found = rng.choice([
            found[:index], found[:index] + bytes(rng.randrange(256) for _ in range(5)) + found[index:],
            b"[" * 20_000, b'{"q":' * 20_000, b"\xff" * 50, b"", b"null", b"&".join([b"q=a"] * 500), found * 3,
        ])  # fmt: skip
    return found


def requests(seed: int, count: int) -> Iterator[bytes]:
    """Yield complete requests as bytes."""
    rng = random.Random(seed)
    for _ in range(count):
        kind, method, path = rng.choice(KINDS), rng.choice(METHODS), rng.choice(PATHS)
        content = body_of(rng, kind) if method not in ("GET", "HEAD") or rng.random() < 0.3 else b""
        if rng.random() < 0.2:
            pairs = [(name, str(value).encode("utf-8", "surrogatepass")) for name, value in fields(rng).items()]
            path += "?" + urlencode(pairs)
        elif rng.random() < 0.05:
            path = rng.choice(ADDRESSES)
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
        if kind:
            head.append(f"Content-Type: {kind}")
        size = len(content)
        if rng.random() < 0.03:
            head.append(rng.choice(HEADERS))
        else:
            head.append(f"Content-Length: {size}")
        yield "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + content


def send(port: int, sent: bytes) -> Outcome:
    """Send a request, and read the whole answer."""
    start = monotonic()
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as sock:
        try:
            sock.sendall(sent)
            while part := sock.recv(65_536):
                answer += part
        except ConnectionError:
            pass
    lines = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    status = int(lines[-1].split()[1]) if lines else 0
    return Outcome(status, monotonic() - start, sent)


def main() -> None:
    from tests.serving.process import serving

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with serving(*arguments.runs) as server, ThreadPoolExecutor(16) as pool:
        start = monotonic()
        found = list(pool.map(lambda sent: send(server.port, sent), requests(arguments.seed, arguments.count)))
        seconds = monotonic() - start
        with server.client() as client:
            alive = client.get("/health").status_code == 200
        code, faults = server.end(), server.text.count("fault ")
    wrong = [answer for answer in found if answer.status >= 500 or answer.status == 0]
    figures = {
        "requests": len(found),
        "seed": arguments.seed,
        "seconds": round(seconds, 1),
        "statuses": dict(sorted(Counter(answer.status for answer in found).items())),
        "slowest": round(max(answer.seconds for answer in found), 3),
        "faults in the log": faults,
        "healthy after it": alive,
        "exit code": code,
    }
    print(json.dumps(figures))
    for answer in wrong[:3]:
        print(answer.status, f"{answer.seconds:.1f} s", answer.sent[:2_000], file=sys.stderr)
    sys.exit(bool(wrong or faults or code or not alive))


if __name__ == "__main__":
    main()
