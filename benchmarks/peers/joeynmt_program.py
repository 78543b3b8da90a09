"""Train with JoeyNMT's program, on the same tokens, with its own batching.

Needs: pip install joeynmt importlib_metadata.

Its TrainManager calls `_train_step` with the batch of each update. A wrapper around it pauses the TrainManager
between rounds; the batch counts its real target tokens itself. JoeyNMT has one rate of dropout, which also applies
to attention weights and inside the feed-forward layers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from joeynmt.__main__ import main as joeynmt  # type: ignore[import-not-found]
from joeynmt.training import TrainManager  # type: ignore[import-not-found]

from peers.measured_updates import MeasuredUpdates


def settings(folder: Path) -> dict[str, Any]:
    """Return JoeyNMT's configuration of the model that all contenders train."""
    shared = json.loads((folder / "settings.json").read_text())
    model, training = shared["model"], shared["training"]
    vocabulary = str(folder / "vocabulary.txt")

    def side(layers: int) -> dict[str, Any]:
        embeddings = {"embedding_dim": model["d_model"], "scale": True, "dropout": model["dropout"]}
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": model["num_heads"],
            "embeddings": embeddings,
            "hidden_size": model["d_model"],
            "ff_size": model["d_ff"],
            "dropout": model["dropout"],
            "layer_norm": "pre",
        }

    return {
        "name": "peers",
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "random_seed": training["seed"],
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "train"),  # required, but the program is stopped before its first validation
            "src": {"lang": "de", "level": "word", "voc_file": vocabulary},
            "trg": {"lang": "en", "level": "word", "voc_file": vocabulary},
        },
        "testing": {},
        "training": {
            "optimizer": "adam",
            "adam_betas": training["betas"],
            "learning_rate": training["learning_rate"],
            "learning_rate_min": 0.0,
            "learning_rate_warmup": training["warmup_steps"],
            "scheduling": "warmupinversesquareroot",
            "clip_grad_norm": training["clip_norm"],
            "label_smoothing": training["label_smoothing"],
            "normalization": "tokens",
            "batch_type": "token",
            "batch_size": training["batch_tokens"],
            "overwrite": True,
            "epochs": training["steps"],
            "validation_freq": training["steps"],
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side(model["num_encoder_layers"]),
            "decoder": side(model["num_decoder_layers"]),
        },
    }


def main() -> None:
    folder = Path(sys.argv[1])
    measured = MeasuredUpdates()
    original = TrainManager._train_step

    def train_step(self: Any, batch: Any) -> Any:
        measured.before_update(batch.ntokens)
        return original(self, batch)

    TrainManager._train_step = train_step
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(settings(folder)))  # JSON is YAML
    sys.argv = ["joeynmt", "train", str(path), "--skip-test"]
    joeynmt()


if __name__ == "__main__":
    main()
