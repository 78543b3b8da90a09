"""Decode with JoeyNMT's search and the weights of the run.

Needs a Python with: pip install joeynmt importlib_metadata safetensors.

Its model has no bias at the output, and another epsilon in its norms; both are set to the values of the run, so
that all contenders decode with the same model: post-norm, sinusoidal positions, all embeddings tied. Its special
symbols get the ids of manyheads.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch  # type: ignore[import-not-found]
from joeynmt.model import build_model  # type: ignore[import-not-found]
from joeynmt.search import search  # type: ignore[import-not-found]
from joeynmt.vocabulary import Vocabulary  # type: ignore[import-not-found]
from safetensors.torch import load_file
from torch import Tensor, nn

from decoders.measured_decoding import Rows, before, serve_torch

SPECIAL = SimpleNamespace(
    **{f"{name}_token": f"<{name}>" for name in ("unk", "pad", "bos", "eos")},
    **{f"{name}_id": number for number, name in enumerate(("unk", "pad", "bos", "eos"))},
    sep_token=None,
    lang_tags=[],
)
FEED_FORWARD = {  # the last norm of a layer belongs to its feed-forward module
    "around_feed_forward": "feed_forward.layer_norm",
    "feed_forward.expand": "feed_forward.pwff_layer.0",
    "feed_forward.contract": "feed_forward.pwff_layer.3",
}
NAMES = {
    "encoder": {**FEED_FORWARD, "around_attention": "layer_norm", "self_attention": "src_src_att"},
    "decoder": {
        **FEED_FORWARD,
        "around_self_attention": "x_layer_norm",
        "around_cross_attention": "dec_layer_norm",
        "self_attention": "trg_trg_att",
        "cross_attention": "src_trg_att",
    },
}


def main(folder: Path, run: Path, variant: str) -> None:
    model = open_model(run)

    def translate(rows: Rows, beam: int) -> Rows:
        max_length = max(map(len, rows)) + 1
        source = torch.full((len(rows), max_length), SPECIAL.pad_id)
        for row, ids in zip(source, rows, strict=True):
            row[: len(ids) + 1] = torch.tensor([*ids, SPECIAL.eos_id])
        batch = Batch(
            src=source,
            src_length=(source != SPECIAL.pad_id).sum(1),
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(rows)),
            device=source.device,
            pad_index=SPECIAL.pad_id,
            eos_index=SPECIAL.eos_id,
            is_train=False,
        )
        outputs, _, _ = search(
            model=model,
            batch=batch,
            max_output_length=2 * (max_length - 1) + 20,
            beam_size=beam,
            beam_alpha=1.0,
        )
        return [[i for i in before(SPECIAL.eos_id, row) if i != SPECIAL.pad_id] for row in outputs.tolist()]

    serve_torch(translate, folder)


def open_model(run: Path) -> nn.Module:
    config = json.loads((run / "config.json").read_text())["model"]
    if (config["norm"], config["positions"], config["tied_embeddings"]) != ("post", "sinusoidal", "all"):
        raise SystemExit("JoeyNMT can take over: norm = post, positions = sinusoidal, tied_embeddings = all")
    weights = load_file(run / "model.safetensors")
    vocabulary = Vocabulary([f"piece {i}" for i in range(4, len(weights["output.bias"]))], SPECIAL)
    ties = {"tied_embeddings": True, "tied_softmax": True}
    sides = {side: describe(config, config[f"num_{side}_layers"]) for side in NAMES}
    model: nn.Module = build_model({**ties, **sides}, vocabulary, vocabulary)
    model.decoder.output_layer.bias = nn.Parameter(torch.empty(len(vocabulary)))
    missing, unexpected = model.load_state_dict(renamed_weights(weights), strict=False)
    assert not unexpected
    assert all(name.endswith(".pe") for name in missing), missing  # the sinusoids, which are computed
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = config["norm_epsilon"]
    return model.eval()


def describe(settings: dict[str, Any], layers: int) -> dict[str, Any]:
    return {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": settings["num_heads"],
        "embeddings": {"embedding_dim": settings["d_model"], "scale": settings["scale_embeddings"]},
        "hidden_size": settings["d_model"],
        "ff_size": settings["d_ff"],
        "dropout": 0.0,
        "layer_norm": "post",
        "activation": settings["activation"],
    }


def renamed_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    embedding = weights["source_embedding.tokens.weight"]
    result = {f"{name}.lut.weight": embedding for name in ("src_embed", "trg_embed")}
    result |= {"decoder.output_layer.weight": embedding, "decoder.output_layer.bias": weights["output.bias"]}
    for name, tensor in weights.items():
        if match := re.match(r"(encoder|decoder)_layers\.(\d+)\.(\w+)\.(\w+)\.(weight|bias)", name):
            side, number, module, part, kind = match.groups()
            theirs = f"{side}.layers.{number}.{NAMES[side].get(module) or NAMES[side][f'{module}.{part}']}"
            if part == "project_in":
                names = [f"{theirs}.{letter}_layer.{kind}" for letter in "qkv"]
                result |= dict(zip(names, tensor.chunk(3), strict=True))
            else:
                result[f"{theirs}.output_layer.{kind}" if part == "project_out" else f"{theirs}.{kind}"] = tensor
    return result
