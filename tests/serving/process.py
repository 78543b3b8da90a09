"""A server in a separate process, started by its command, and tiny runs for it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import SENTENCES, make_config, write_corpus

from bitext.files import locked_beside
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.runs.train import train
from manyheads.text.interface import EOS
from manyheads.text.training import train_tokenizers

TIMEOUT = 60.0
METRICS = {"Authorization": "Bearer see-all"}  # where MANYHEADS_METRICS_TOKEN is "see-all"


class Server:
    """A server that has been started.

    Attributes:
        process: the process of the server.
        log: the lines of its stderr so far.
    """

    def __init__(self, arguments: Sequence[str], environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "manyheads", "serve", *arguments]
        variables = os.environ | {"PYTHONFAULTHANDLER": "1"} | (environment or {})
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=variables)
        self.log: list[str] = []
        self.ready, self.ended = threading.Event(), threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if "ready:" in line:
                self.ready.set()
        self.ready.set()

    def wait_until_ready(self) -> None:
        assert self.ready.wait(TIMEOUT)
        assert self.process.poll() is None, self.text

    @property
    def text(self) -> str:
        """Return the stderr of the server so far."""
        return "".join(self.log)

    @property
    def url(self) -> str:
        """Return the address that the server has printed."""
        found = re.search(r"ready: .* at (http://\S+)", self.text)
        assert found is not None, self.text
        return found[1]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, **options: Any) -> httpx.Client:
        # reading the certificates of this machine takes 50 ms, and no address is https
        return httpx.Client(base_url=self.url, timeout=TIMEOUT, trust_env=False, verify=False, **options)

    def abort(self) -> str:
        """Abort the server; return its stderr, which then ends with the stacks of all its threads."""
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(TIMEOUT)
        self.reader.join(TIMEOUT)
        return self.text

    def end(self, kill: bool = False) -> int:
        """Terminate or kill the server, and return its exit code."""
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        code = self.process.wait(TIMEOUT)
        self.close()
        return code

    def close(self) -> None:
        """Kill the server if it still runs, and close its stderr."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(TIMEOUT)
        self.reader.join(TIMEOUT)
        assert self.process.stderr is not None
        self.process.stderr.close()


def metric(client: httpx.Client, name: str) -> float:
    text = client.get("/metrics", headers=METRICS).text
    return float(next(line for line in text.split("\n") if line.startswith(f"manyheads_{name} ")).split()[1])


@contextmanager
def serving(*arguments: object, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """Start a server on a free port and wait until it is ready; kill it at the end if it still runs."""
    server = Server(["--port", "0", *map(str, arguments)], environment)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.close()


def train_once(factory: pytest.TempPathFactory, train: Callable[[Path], Path]) -> Path:
    """Return a copy of a run that the first worker of a test session has trained."""
    base = factory.getbasetemp()
    common = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / train.__name__
    done = common.with_suffix(".done")
    with locked_beside(common, RunError, wait=600):
        if not done.exists():
            common.mkdir()
            done.write_text(str(train(common)), encoding="utf-8")
    run = Path(done.read_text(encoding="utf-8"))
    return shutil.copytree(run, factory.mktemp("copy") / run.name)


def train_translator(folder: Path) -> Path:
    """Train a run de-en that has learnt most of its small corpus."""
    config = make_config(
        write_corpus(folder / "corpus"),
        model={"d_model": 32, "d_ff": 64, "dropout": 0.0, "positions": "rotary"},
        training={"steps": 200, "batch_tokens": 200, "save_every": 200, "log_every": 200},
    )
    train(config, folder / "de-en")
    return folder / "de-en"


def train_classifier(folder: Path) -> Path:
    train(labelled_config(write_labelled(folder / "labelled")), folder / "reviews")
    return folder / "reviews"


def train_language_model(folder: Path) -> Path:
    train(make_language_config(write_play(folder / "play")), folder / "writer")
    return folder / "writer"


def endless_translator(folder: Path, source: str = "en", target: str = "ko") -> Path:
    """Write a run whose outputs almost never end: each takes 900 steps."""
    config = Config.model_validate(
        {
            "data": {"source": source, "target": target},
            "tokenizer": {"kind": "characters"},
            "model": {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
            "search": {"beam_size": 4, "max_length_offset": 900},
        }
    )
    letters = ["".join(chr(code) for code in range(32, 127))]
    tokenizers = train_tokenizers(config.tokenizer, letters, letters, source, target)
    torch.manual_seed(1)
    model = EncoderDecoder(config.model, tokenizers.source.size, tokenizers.target.size)
    with torch.no_grad():
        model.output.bias[EOS] = -30.0
    run = RunDirectory(folder / f"{source}-{target}")
    run.begin(config, tokenizers, {})
    run.publish(dict(model.named_parameters()))
    return run.path


GERMAN = [german for german, _ in SENTENCES]
ENGLISH = [english for _, english in SENTENCES]


def run_of(server: Server, name: str) -> Path:
    """Return the run of this name that the server serves."""
    return next(Path(word) for word in server.process.args if Path(word).name == name)  # type: ignore[union-attr]
