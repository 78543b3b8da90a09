"""The measuring side: a contender in a process of its own, told what to decode."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from decoders.orders import Order, Rows
from peers.companion import Companion, version


@dataclass(frozen=True)
class Decoder:
    """A program that decodes.

    Attributes:
        module: what runs in the contender's process.
        package: whose version says what was measured.
        kind: what the module is told.
        needs: a package that it needs beside those of manyheads.
        export: the export that it reads, if any.
        settings: workers x threads that it is tried with where there are many sentences in a call.
        beams: whether it has a beam search.
        own_python: whether it runs with a Python of its own, which the option of its name gives.
    """

    module: str
    package: str
    kind: str = ""
    needs: str | None = None
    export: str | None = None
    settings: tuple[str, ...] = ("1x{threads}",)
    beams: bool = True
    own_python: bool = False


SIDE_BY_SIDE = ("1x{threads}", "{threads}x1")
DECODERS = {
    "manyheads:fp32": Decoder("manyheads_engine", "manyheads", "fp32"),
    "manyheads:bf16": Decoder("manyheads_engine", "manyheads", "bf16"),
    "manyheads:int8": Decoder("manyheads_engine", "manyheads", "int8"),
    "manyheads:ctranslate2": Decoder(
        "manyheads_engine", "ctranslate2", "ctranslate2", needs="ctranslate2", export="ctranslate2-float32"
    ),
    "ctranslate2:float32": Decoder(
        "ctranslate2_library", "ctranslate2", "float32", "ctranslate2", "ctranslate2-float32", SIDE_BY_SIDE
    ),
    "ctranslate2:int8": Decoder(
        "ctranslate2_library", "ctranslate2", "int8", "ctranslate2", "ctranslate2-int8", SIDE_BY_SIDE
    ),
    "hugging-face": Decoder("hugging_face", "transformers", needs="transformers", export="huggingface"),
    "joeynmt": Decoder("joeynmt_search", "joeynmt", own_python=True),
    "no-cache": Decoder("no_cache", "torch", beams=False),
}


class Contender(Companion):
    """One of them, waiting for orders.

    Attributes:
        version: of the package.
        mebibytes: its largest resident size so far.
    """

    def __init__(self, name: str, folder: Path, run: Path, threads: int, python: str | None) -> None:
        """Start it."""
        self.decoder = DECODERS[name]
        self.threads = threads
        self.version = version(self.decoder.package, python)
        self.mebibytes = 0.0
        arguments = [f"decoders.{self.decoder.module}", str(folder), str(run), self.decoder.kind]
        log = folder / f"{name.replace(':', '-')}.log"
        super().__init__(name, log, arguments, threads=threads, python=python)

    def settings(self, mode: str) -> list[str]:
        """The workers x threads to be tried in a mode."""
        several = [setting.format(threads=self.threads) for setting in self.decoder.settings]
        return several if mode == "file" else sorted({"1x1", f"1x{self.threads}"})

    def decode(self, order: Order) -> tuple[float, Rows]:
        """Seconds, and the outputs."""
        self.send(json.dumps(asdict(order)))
        found = self.receive()
        self.mebibytes = found["mebibytes"]
        return found["seconds"], found["outputs"]
