"""Train with Eole's program, on the same tokens, with its own batching. Needs: pip install eole aiohttp.

Its Trainer calls `_train_step` with the batches of each update. A wrapper around it pauses the Trainer between
rounds, and counts the real target tokens in the tensors that it trains on. Two settings are not its defaults, and
both reduce its work: no dropout on attention weights, as in the other models, and no entropy of attention in its
log.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from eole.bin.main import main as eole  # type: ignore[import-not-found]
from eole.trainer import Trainer  # type: ignore[import-not-found]

from peers.measured_updates import MeasuredUpdates


def settings(folder: Path, precision: str) -> dict[str, Any]:
    """Return Eole's configuration of the model that all contenders train."""
    shared = json.loads((folder / "settings.json").read_text())
    model, training = shared["model"], shared["training"]
    return {
        "seed": training["seed"],
        "share_vocab": True,
        "src_vocab": str(folder / "vocabulary.txt"),
        "tgt_vocab": str(folder / "vocabulary.txt"),
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "data": {"corpus": {"path_src": str(folder / "train.de"), "path_tgt": str(folder / "train.en")}},
        "model": {
            "architecture": "transformer",
            "hidden_size": model["d_model"],
            "transformer_ff": model["d_ff"],
            "heads": model["num_heads"],
            "encoder": {"layers": model["num_encoder_layers"]},
            "decoder": {"layers": model["num_decoder_layers"]},
            "embeddings": {
                "word_vec_size": model["d_model"],
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_ffnbias": True,
        },
        "training": {
            "world_size": 0,
            "num_workers": 0,
            "model_path": str(folder / f"eole-{precision}"),
            "compute_dtype": precision,
            "train_steps": training["steps"],
            "save_checkpoint_steps": 0,
            "batch_type": "tokens",
            "batch_size": training["batch_tokens"],
            "bucket_size": len((folder / "train.en").read_text().splitlines()),
            "normalization": "tokens",
            "optim": "adam",
            "adam_beta2": training["betas"][1],
            "adam_eps": training["epsilon"],
            "learning_rate": training["learning_rate"],
            "max_grad_norm": training["clip_norm"],
            "label_smoothing": training["label_smoothing"],
            "dropout": [model["dropout"]],
            "attention_dropout": [model["attention_dropout"]],
            "param_init_method": "xavier_uniform",
            "log_attention_entropy": False,
        },
    }


def main() -> None:
    folder, precision = Path(sys.argv[1]), sys.argv[2]
    measured = MeasuredUpdates()
    original = Trainer._train_step

    def train_step(self: Any, batches: list[dict[str, Any]], *args: Any, **kwargs: Any) -> Any:
        pad = self.train_loss.padding_idx
        measured.before_update(sum(int(batch["tgt"][:, 1:].ne(pad).sum()) for batch in batches))
        return original(self, batches, *args, **kwargs)

    Trainer._train_step = train_step
    path = folder / f"eole-{precision}.yaml"
    path.write_text(json.dumps(settings(folder, precision)))  # JSON is YAML
    sys.argv = ["eole", "train", "-config", str(path)]
    eole()


if __name__ == "__main__":
    main()
