"""Small models with tokenizers, in which every weight influences the output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.model.samples import VARIANTS, scramble

from manyheads.config.schema import Config
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.tokenizer import EOS, TokenizerPair
from manyheads.text.training import train_tokenizers

WORDS = ["haus", "baum", "hund", "katze", "vogel", "wasser", "feuer", "erde", "luft", "stein", "blume", "stern"]
Parts = tuple[Config, TokenizerPair, EncoderDecoder]


def sentences(count: int = 40, seed: int = 1) -> list[str]:
    """Return random sentences of two to seven words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(2, 8))) for _ in range(count)]


def make_parts(
    seed: int = 1, tokenizer: dict[str, Any] | None = None, end_bias: float = 1.0, **model: Any
) -> Parts:
    """Return a model in evaluation mode: D = 30 in 3 heads of 10, F = 37, 2 + 3 layers, subwords, float32."""
    config = Config.model_validate(
        {
            "data": {"source": "de", "target": "en", "root": "nowhere"},
            "tokenizer": {"kind": "bpe", "vocab_size": 60} | (tokenizer or {}),
            "model": {
                "d_model": 30,
                "d_ff": 37,
                "num_heads": 3,
                "num_encoder_layers": 2,
                "num_decoder_layers": 3,
                "dropout": 0.1,
                "max_positions": 41,
                "tied_embeddings": "none",
            }
            | model,
        }
    )
    texts = sentences(200)
    tokenizers = train_tokenizers(config.tokenizer, texts, [text.upper() for text in texts], "de", "en")
    torch.manual_seed(seed)
    network = EncoderDecoder(config.model, tokenizers.source.size, tokenizers.target.size).eval()
    scramble(network)
    with torch.no_grad():
        network.target_embedding.tokens.weight *= 1.5
        if config.model.tied_embeddings == "none":
            network.output.weight *= 1.5
    if network.output.bias is not None:
        with torch.no_grad():
            network.output.bias[EOS] += end_bias
    return config, tokenizers, network


def variant_parts(variant: str) -> Parts:
    """Return a model of a variant; where its embeddings are not tied, each side has a vocabulary of its own."""
    tied = VARIANTS[variant]["tied_embeddings"] == "all"
    return make_parts(tokenizer={} if tied else {"joint": False, "vocab_size": 40}, **VARIANTS[variant])


def change_settings(folder: Path, file: str = "config.json", **changes: Any) -> None:
    """Change settings in a file of a folder; None removes a setting."""
    path = folder / file
    content = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    kept = {name: value for name, value in content.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")
