"""A short play, and a configuration that trains a language model on it within seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyheads.config.schema import Config

SPEAKERS = ["ANNA", "BERT", "CLEO"]
SAYS = ["Who goes there?", "It is I, the moon.", "Be gone!\nBe gone, I say.", "  (aside)\tAlas."]
PLAY = "".join(f"{speaker}:\n{says}\n\n" for _ in range(3) for speaker in SPEAKERS for says in SAYS)


def write_play(folder: Path, text: str = PLAY) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "play.txt").write_text(text, encoding="utf-8")
    return folder


def make_language_config(root: Path, **sections: dict[str, Any]) -> Config:
    """Return a configuration: D = 16, 1 layer, blocks of 16 characters, 12 steps, a checkpoint every 4."""
    values: dict[str, Any] = {
        "task": "language-modeling",
        "data": {"root": str(root), "language": "en", "train": "play", "valid": 0.2, "max_length": 16},
        "tokenizer": {"kind": "characters"},
        "model": {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_decoder_layers": 1, "dropout": 0.0},
        "training": {
            "steps": 12, "batch_tokens": 80, "learning_rate": 0.01, "warmup_steps": 3, "precision": "fp32",
            "device": "cpu", "save_every": 4, "log_every": 3, "label_smoothing": 0.0,
        },
    }  # fmt: skip
    for name, section in sections.items():
        values[name] = values[name] | section if name in values else section
    return Config.model_validate(values)
