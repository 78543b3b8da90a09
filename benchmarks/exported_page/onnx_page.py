"""Translate with an ONNX export of a run in onnxruntime-web."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from exported_page.chromium import Chromium, script
from manyheads.interop.onnx.convert import write_onnx
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import EOS

Timed = tuple[float, str]  # milliseconds, translation
LOADED = {".onnx", ".wasm", ".mjs", ".js"}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve files without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class OnnxPage:
    """A page with onnxruntime-web, the two graphs, and a greedy loop."""

    def __init__(self, translator: Translator, folder: Path, library: Path) -> None:
        """Write the page into a folder; `library` is the folder in which npm installed onnxruntime-web."""
        self.translator, self.folder = translator, folder
        write_onnx(folder, translator.config, translator.tokenizers, translator.model)
        dist = next(library.rglob("onnxruntime-web/dist"))
        for name in ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"):
            (folder / name).write_bytes((dist / name).read_bytes())
        (folder / "onnx.js").write_text(script("onnx.js"), encoding="utf-8")
        page = '<script src="ort.wasm.min.js"></script><script src="onnx.js"></script>'
        (folder / "index.html").write_text(page, encoding="utf-8")
        self.version: str = json.loads((dist.parent / "package.json").read_text())["version"]
        self.megabytes = sum(path.stat().st_size for path in folder.iterdir() if path.suffix in LOADED) / 1e6

    @contextmanager
    def opened(self, chromium: Chromium, sentence: str) -> Iterator[tuple[float, Callable[[int], list[Timed]]]]:
        """Open the page; yield the milliseconds until it is ready, and a function that translates."""
        ids = self.translator.tokenizers.source.encode([sentence])[0]
        search = self.translator.config.search
        limit = int(search.max_length_ratio * len(ids)) + search.max_length_offset

        def translate(count: int) -> list[Timed]:
            outputs = page.evaluate("(values) => timeOnnx(...values)", [[*ids, EOS], limit, count])
            return [
                (milliseconds, self.translator.tokenizers.target.decode(output)) for milliseconds, output in outputs
            ]

        with serving(self.folder) as address:
            page = chromium.open(f"{address}/index.html")
            yield page.evaluate("startOnnx()"), translate
