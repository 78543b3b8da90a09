"""Decode with JoeyNMT's search and the weights of the run.

Needs a Python with: pip install joeynmt importlib_metadata safetensors.

Its model has no bias at the output, and another epsilon in its norms; both are set to the values of the run, so
that all contenders decode with the same model: post-norm, sinusoidal positions, all embeddings tied. Its special
symbols get the ids of manyheads.
"""

from __future__ import annotations

import json
import sys
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
NORMS = {  # the last norm of a layer belongs to its feed-forward module
    "encoder": {"around_attention": "layer_norm"},
    "decoder": {"around_self_attention": "x_layer_norm", "around_cross_attention": "dec_layer_norm"},
}
ATTENTIONS = {
    "encoder": {"self_attention": "src_src_att"},
    "decoder": {"self_attention": "trg_trg_att", "cross_attention": "src_trg_att"},
}


def main() -> None:
    folder, run = Path(sys.argv[1]), Path(sys.argv[2])
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
    sides = {side: describe(config, config[f"num_{side}_layers"]) for side in NORMS}
    model: nn.Module = build_model({**ties, **sides}, vocabulary, vocabulary)
    model.decoder.output_layer.bias = nn.Parameter(torch.empty(len(vocabulary)))
    missing, unexpected = model.load_state_dict(renamed_weights(weights, config), strict=False)
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


def renamed_weights(weights: dict[str, Tensor], settings: dict[str, Any]) -> dict[str, Tensor]:
    embedding = weights["source_embedding.tokens.weight"]
    result = {f"{name}.lut.weight": embedding for name in ("src_embed", "trg_embed")}
    result["decoder.output_layer.weight"] = embedding
    result["decoder.output_layer.bias"] = weights["output.bias"]
    for side in NORMS:
        for number in range(settings[f"num_{side}_layers"]):
            for kind in ("weight", "bias"):
                layer = {
                    name.removeprefix(f"{side}_layers.{number}.").removesuffix(f".{kind}"): tensor
                    for name, tensor in weights.items()
                    if name.startswith(f"{side}_layers.{number}.") and name.endswith(kind)
                }
                result |= {f"{side}.layers.{number}.{k}.{kind}": v for k, v in renamed_layer(layer, side).items()}
    return result


def renamed_layer(layer: dict[str, Tensor], side: str) -> dict[str, Tensor]:
    result = {
        "feed_forward.layer_norm": layer["around_feed_forward.norm"],
        "feed_forward.pwff_layer.0": layer["feed_forward.expand"],
        "feed_forward.pwff_layer.3": layer["feed_forward.contract"],
    }
    for ours, theirs in NORMS[side].items():
        result[theirs] = layer[f"{ours}.norm"]
    for ours, theirs in ATTENTIONS[side].items():
        query, key, value = layer[f"{ours}.project_in"].chunk(3)
        result |= {f"{theirs}.q_layer": query, f"{theirs}.k_layer": key, f"{theirs}.v_layer": value}
        result[f"{theirs}.output_layer"] = layer[f"{ours}.project_out"]
    return result


if __name__ == "__main__":
    main()
