"""A corpus of tiny texts with labels, and a configuration that trains on it within seconds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from manyheads.config.schema import Config

GOOD = ["fine", "lovely", "great"]
BAD = ["dull", "awful", "poor"]
OTHER = ["film", "the", "a", "plot", "was", "actor", "really", "so"]


def examples(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return (label, text) pairs: 1 for a text with a good word, 0 for one with a bad word; no text twice."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        label = len(found) % 2
        words = rng.choices(OTHER, k=rng.randint(2, 9))
        words.insert(rng.randint(0, len(words)), rng.choice(GOOD if label else BAD))
        found.setdefault(" ".join(words), str(label))
    return [(label, text) for text, label in found.items()]


def write_tsv(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_labelled(folder: Path, train: int = 60) -> Path:
    """Write a corpus of two classes with `train` training texts, 14 validation texts and 14 test texts."""
    rows: list[tuple[str, ...]] = [*examples(train + 28)]
    for split, part in (("train", rows[28:]), ("valid", rows[:14]), ("test", rows[14:28])):
        write_tsv(folder / f"{split}.tsv", part)
    return folder


def write_unlabelled(folder: Path, count: int = 60) -> Path:
    """Write `count` texts without labels to plain.txt."""
    lines = "".join(f"{text}\n" for _, text in examples(count, seed=9))
    (folder / "plain.txt").write_text(lines, encoding="utf-8")
    return folder


def labelled_config(root: Path, **sections: dict[str, Any]) -> Config:
    """Return a configuration of a classifier: D = 16, 1 layer, 12 steps, a checkpoint every 4."""
    values: dict[str, Any] = {
        "task": "classification",
        "data": {"root": str(root), "language": "en", "test": "test"},
        "tokenizer": {"kind": "bpe", "vocab_size": 60},
        "model": {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "dropout": 0.0},
        "training": {
            "steps": 12, "batch_sentences": 12, "learning_rate": 0.01, "warmup_steps": 3, "precision": "fp32",
            "device": "cpu", "save_every": 4, "log_every": 3, "metric": "accuracy",
        },
    }  # fmt: skip
    for name, section in sections.items():
        values[name] = values[name] | section
    return Config.model_validate(values)
