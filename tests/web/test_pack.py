"""A packed model: every tensor is stored once in the layout of the engine, and unsupported models are named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.model.samples import SOURCE_SIZE, TARGET_SIZE, make_config, scrambled_model
from tests.web.engine.node import make_run_config, pack

from manyheads.errors import UsageError
from manyheads.inference.native.weights import quantize_int8
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.web.pack import _PANEL_WIDTH, PackedModel


def tensor(packed: PackedModel, index: int) -> np.ndarray:
    """Read a tensor from the block by the header."""
    entry = packed.header["tensors"][index]
    count = int(np.prod(entry["shape"]))
    return np.frombuffer(packed.block(), entry["type"], count, entry["offset"]).reshape(entry["shape"])


def matrix(packed: PackedModel, linear: dict) -> np.ndarray:
    """Return the weights of a linear layer, unpacked from their panels: (O, I)."""
    panels = tensor(packed, linear["weight"])
    weight = panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])[: linear["outputs"]].astype(np.float32)
    if linear["scale"] is None:
        return weight
    return weight * tensor(packed, linear["scale"]).ravel()[: linear["outputs"], None]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_linear_layer_of_the_header_has_the_weights_of_the_model(precision) -> None:
    model = scrambled_model().float()
    packed = pack(model, precision)
    linear = packed.header["decoder"]["layers"][1]["self_qkv"]
    weight = model.decoder_layers[1].self_attention.project_in.weight.detach().numpy()
    if precision == "int8":
        integers, scale = quantize_int8(weight)
        weight = integers * scale[:, None]
    assert (linear["inputs"], linear["outputs"]) == (30, 90)
    assert np.array_equal(matrix(packed, linear), weight)
    bias = tensor(packed, linear["bias"])
    assert bias.shape == (-(-90 // _PANEL_WIDTH), 1, _PANEL_WIDTH)
    assert np.array_equal(
        bias.ravel()[:90], model.decoder_layers[1].self_attention.project_in.bias.detach().numpy()
    )


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(("tied", "matrices"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_a_tied_matrix_is_stored_once(tied, matrices, precision) -> None:
    packed = pack(scrambled_model(tied_embeddings=tied).float(), precision)
    header = packed.header
    indices = [
        header["encoder"]["embedding"],
        header["decoder"]["embedding"],
        header["decoder"]["output"]["weight"],
    ]
    assert len(set(indices)) == matrices
    assert ("scale" in header["tensors"][indices[0]]) == (precision == "int8")


def test_the_header_is_json_and_the_tensors_fill_the_block() -> None:
    packed = pack(scrambled_model(positions="learned", token_types=2).float(), "int8")
    header = json.loads(json.dumps(packed.header, allow_nan=False))
    assert header == packed.header
    ends = [entry["offset"] + array.nbytes for entry, array in zip(header["tensors"], packed.tensors, strict=True)]
    assert all(entry["offset"] % 16 == 0 for entry in header["tensors"])
    starts = [*(entry["offset"] for entry in header["tensors"][1:]), header["bytes"]]
    assert all(0 <= start - end < 16 for start, end in zip(starts, ends, strict=True))
    assert len(packed.block()) == header["bytes"]
    learned = tensor(packed, header["positions"]["decoder"]["learned"])
    assert learned.shape == (41, 30)
    assert header["special_ids"] == {"unk": 0, "pad": 1, "bos": 2, "eos": 3}


def test_int8_takes_a_quarter_of_the_bytes() -> None:
    model = scrambled_model(d_model=64, num_heads=4, d_ff=256).float()
    sizes = [pack(model, precision).header["bytes"] for precision in ("int8", "fp32")]
    assert sizes[0] < 0.3 * sizes[1]


def test_the_header_of_a_language_model_and_a_classifier_holds_their_own_parts() -> None:
    config = make_config()
    language_model = pack(DecoderOnly(config, TARGET_SIZE), task="language-modeling")
    assert language_model.header["decoder"]["layers"][0]["cross_query"] is None
    assert len(language_model.header["decoder"]["norms"]) == 2 * 3 + 1
    assert language_model.header["window"] == make_run_config(config).data.max_length
    assert "encoder" not in language_model.header
    classifier = pack(TextClassifier(config, SOURCE_SIZE, 5), task="classification")
    assert classifier.header["head"]["output"]["outputs"] == 5
    assert "decoder" not in classifier.header


@pytest.mark.parametrize(
    ("precision", "task", "search", "message"),
    [
        ("bf16", "translation", {}, 'precision "bf16". Use one of fp32, int8'),
        ("fp16", "translation", {}, 'no precision "fp16"'),
        ("int8", "masked-lm", {}, 'the task "masked-lm"'),
        ("int8", "translation", {"no_repeat_ngram": 3}, "search.no_repeat_ngram = 3"),
    ],
)
def test_models_and_options_that_a_page_does_not_support_are_refused_by_name(
    precision, task, search, message
) -> None:
    config = make_config()
    model = MaskedLanguageModel(config, TARGET_SIZE) if task == "masked-lm" else scrambled_model().float()
    with pytest.raises(UsageError, match=message):
        pack(model, precision, task, search=search)


def test_a_model_that_does_not_read_the_end_mark_is_refused() -> None:
    with pytest.raises(UsageError, match=r"model\.source_end_mark = false"):
        pack(scrambled_model(source_end_mark=False).float(), "int8")
