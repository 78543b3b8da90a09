"""Control the decoding processes of the contenders from the measuring process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from decoders.measured_decoding import DecodingRequest, Rows
from peers.contender_process import ContenderProcess, version


@dataclass(frozen=True)
class Decoder:
    """A program that decodes.

    Attributes:
        module: the module of `decoders` that runs in the contender's process.
        package: the package whose version is reported.
        variant: the argument of the module: a precision.
        needs: a required package that manyheads does not require.
        export: the folder of the export that it reads, if any.
        settings: workers x threads to try in mode "file".
        beams: whether it has a beam search.
        own_python: whether it needs a Python of its own, named by the option of its name.
    """

    module: str
    package: str
    variant: str = ""
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


class Contender(ContenderProcess):
    """A contender that waits for requests.

    Attributes:
        version: version of the package.
        mebibytes: largest resident size so far.
    """

    def __init__(self, name: str, folder: Path, run: Path, threads: int, python: str | None) -> None:
        """Start the process."""
        self.decoder = DECODERS[name]
        self.threads = threads
        self.version = version(self.decoder.package, python)
        self.mebibytes = 0.0
        arguments = [f"decoders.{self.decoder.module}", str(folder), str(run), self.decoder.variant]
        log = folder / f"{name.replace(':', '-')}.log"
        super().__init__(name, log, arguments, threads=threads, python=python)

    def settings(self, mode: str) -> list[str]:
        """Return the workers x threads to try in a mode."""
        several = [setting.format(threads=self.threads) for setting in self.decoder.settings]
        return several if mode == "file" else sorted({"1x1", f"1x{self.threads}"})

    def decode(self, request: DecodingRequest) -> tuple[float, Rows]:
        """Decode once; return seconds and outputs."""
        self.send(json.dumps(asdict(request)))
        answer = self.receive()
        self.mebibytes = answer["mebibytes"]
        return answer["seconds"], answer["outputs"]
