"""Measure what each technique for small data adds: train a recipe with and without it, with several seeds.

    python benchmarks/techniques.py --root data/multi30k [--seeds 1 2 3] [--only NAME ...] [--jobs 2] [--json]

The base is multi30k-en-de made smaller (width 128, 2+2 layers, 4,000 pieces) and trained for 5 epochs, so that a
run takes minutes on one core. All rows see the same number of epochs; R-Drop's updates take twice as long. The
table has scores of test_2016_flickr: sacreBLEU with beam 5 and perplexity, mean and standard deviation over the
seeds. Runs are kept under --out; finished runs are only scored again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import machine
from tiny import SMALLEST, write_pairs

BASE = (
    "model.d_model=128",
    "model.d_ff=512",
    "model.num_encoder_layers=2",
    "model.num_decoder_layers=2",
    "model.dropout=0.1",
    "tokenizer.vocab_size=4000",
    "training.max_minutes=none",
    "training.epochs=5",
    "training.save_every=180",
    "training.average_checkpoints=1",
    "training.warmup_steps=200",
)
ROWS = {
    "base: Muon, rotary, all tied, dropout 0.1": "",
    "Adam instead of Muon": "training.optimizer=adam training.learning_rate=4e-3",
    "sinusoids instead of rotary": "model.positions=sinusoidal",
    "no tying": "model.tied_embeddings=none",
    "no label smoothing": "training.label_smoothing=0",
    "dropout 0.2": "model.dropout=0.2",
    "R-Drop, alpha 5": "training.r_drop=5",
    "BPE dropout 0.1": "tokenizer.sampling=0.1",
    "word dropout 0.1": "model.word_dropout=0.1",
    "moving average 0.999": "training.ema=0.999",
    "mean of 5 checkpoints": "training.average_checkpoints=5",
}
FIGURES = ("beam BLEU", "perplexity")


def train_and_score(name: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train and score one row with one seed in a process of benchmarks/quality.py."""
    out = arguments.out / str(list(ROWS).index(name))
    changes = [*BASE, *ROWS[name].split(), *(SMALLEST if arguments.tiny else ())]
    settings = [part for setting in changes for part in ("--set", setting)]
    command = [sys.executable, str(Path(__file__).with_name("quality.py")), arguments.recipe, "--json"]
    command += ["--root", str(arguments.root), "--out", str(out), "--seeds", str(seed), *settings]
    completed = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(threads_per_run(arguments.jobs))},
    )
    row: dict[str, Any] = json.loads(completed.stdout)["rows"][0]
    print(
        f"{name}, seed {seed}: BLEU {row['beam BLEU']}, perplexity {row['perplexity']}", file=sys.stderr, flush=True
    )
    return row


def threads_per_run(jobs: int) -> int:
    """Return the number of threads of each run."""
    return max(1, (os.cpu_count() or 1) // jobs)


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--recipe", default="multi30k-en-de")
    parser.add_argument("--root")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2)")
    parser.add_argument("--out", type=Path, default=Path("runs/techniques"))
    tiny = {"only": list(ROWS)[:1], "seeds": [1], "jobs": 1}
    arguments = machine.parse(parser, tiny=tiny, required=["root"])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        if arguments.root is None:
            arguments.root, arguments.out = write_pairs(Path(folder), valid="val"), Path(folder)
        tasks = {
            name: [pool.submit(train_and_score, name, seed, arguments) for seed in arguments.seeds]
            for name in arguments.only
        }
        rows = {name: [task.result() for task in futures] for name, futures in tasks.items()}
    about = machine.about(threads=threads_per_run(arguments.jobs))
    if arguments.json:
        print(json.dumps({"unit": "BLEU", **about, "rows": rows}))
        return
    print(f"{machine.describe(about)}\n")
    print(f"| technique | {' | '.join(FIGURES)} |\n| --- | {' | '.join('---' for _ in FIGURES)} |")
    for name, rows_of_seeds in rows.items():
        cells = [[row[figure] for row in rows_of_seeds] for figure in FIGURES]
        spreads = [f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "" for values in cells]
        means = [f"{statistics.mean(values):.2f}" for values in cells]
        print(f"| {name} | {' | '.join(map(str.__add__, means, spreads))} |")


if __name__ == "__main__":
    main()
