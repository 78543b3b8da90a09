"""Make a golden run of the present format: a corpus, a run stopped half-way, and its expected results.

    python -m tests.golden.make tests/golden/format-1

A golden run is made once for each format and never again: every later version must open it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
from pathlib import Path

import torch
from tests.runs.parts import Interrupting, make_config, metrics, write_corpus
from tests.training.parts import CollectingListener

from manyheads.config.schema import Config
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train

SOURCES = ["der Hund läuft", "eine Frau springt gern", "", "das Kind 漢 ☃"]
STOP, STEPS = 93, 100  # the last checkpoint before the stop is that of step 90


def config_of(corpus: Path) -> Config:
    """Return a configuration with every kind of state that a checkpoint can hold."""
    return make_config(
        corpus,
        tokenizer={"sampling": 0.2, "vocab_size": 310, "kind": "unigram"},
        model={"dropout": 0.1, "positions": "rotary"},
        training={
            "steps": STEPS, "save_every": 10, "log_every": 1, "accumulation": 2,
            "patience": 50, "optimizer": "muon", "ema": 0.9, "schedule": "plateau", "plateau_patience": 1,
        },
    )  # fmt: skip


def make(folder: Path) -> None:
    """Train and stop a run, and save its translations and the losses of an uninterrupted run."""
    torch.set_num_threads(1)
    corpus, run = write_corpus(folder / "corpus"), folder / "run"
    with contextlib.suppress(KeyboardInterrupt):
        train(config_of(corpus), run, listener=Interrupting(step=STOP))
    shutil.rmtree(run / "cache")
    uninterrupted = folder / "whole"
    train(config_of(corpus), uninterrupted, listener=CollectingListener())
    found = Translator.load(run).translate(SOURCES)
    expected = {
        "sources": SOURCES,
        "translations": [output.translation for output in found],
        "scores": [output.score for output in found],
        "losses": {record["step"]: record["loss"] for record in metrics(uninterrupted) if record["kind"] == "step"},
    }
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1), encoding="utf-8")
    shutil.rmtree(uninterrupted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    if folder.exists():
        parser.error(f"{folder} exists already, and a golden run is never made again")
    folder.mkdir(parents=True)
    make(folder)


if __name__ == "__main__":
    main()
