"""What manyheads does not have is refused by name, all of it at once; positions are recognised by their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyheads.errors import RunError
from manyheads.interop.ctranslate2.binary import read_model
from manyheads.interop.ctranslate2.settings import read_settings

pytest.importorskip("ctranslate2")
from tests.interop.converted import WIDTH, rewrite, write_opennmt_py

SIDES = ("encoder", "decoder")
ONE, ATTENTION = np.int8(1), "encoder/layer_1/self_attention"
MATRIX = np.ones((WIDTH, WIDTH), dtype=np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_opennmt_py(tmp_path_factory.mktemp("settings") / "package")


@pytest.fixture
def path(folder: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "model.bin"
    copy.write_bytes((folder / "model.bin").read_bytes())
    return copy


REFUSED: dict[str, dict[str, Any]] = {
    "relative positions": {f"{ATTENTION}/relative_position_keys": MATRIX},
    "relative attention bias": {f"{ATTENTION}/relative_attention_bias": MATRIX},
    "rotary positions of another kind": {f"{ATTENTION}/rotary_dim": np.int32(4)},
    "share keys and values": {f"{ATTENTION}/num_heads_kv": np.int32(1)},
    "source factors": {"encoder/embeddings_1/weight": MATRIX},
    "gated feed-forward": {"encoder/layer_0/ffn/linear_0_noact/weight": MATRIX},
    "ALiBi": {"decoder/alibi": ONE},
    "sigmoid-gelu": {"encoder/activation": np.int8(4), "decoder/activation": np.int8(4)},
    "places of norms of encoder and decoder differ": {"encoder/pre_norm": np.int8(0)},
    "4 heads, which do not divide its width 30": {
        "encoder/num_heads": np.int16(4),
        "decoder/num_heads": np.int16(4),
    },
    "embeddings times 2": {f"{side}/scale_embeddings": np.float32(2) for side in SIDES},
    "another width than the layers": {"decoder/project_in/weight": MATRIX},
    "unknown variable decoder/other": {"decoder/other": MATRIX},
    "AWQ": {"decoder/layer_0/ffn/linear_0/weight_zero": MATRIX},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_variant_is_refused_by_its_name(path: Path, reason: str) -> None:
    rewrite(path, more=REFUSED[reason])
    with pytest.raises(RunError, match="cannot be a model of ours") as error:
        read_settings(read_model(path), [])
    assert reason in str(error.value)


def test_all_reasons_are_named_at_once(path: Path) -> None:
    names = ["relative positions", "ALiBi", "sigmoid-gelu", "source factors"]
    rewrite(path, more={name: value for reason in names for name, value in REFUSED[reason].items()})
    with pytest.raises(RunError) as error:
        read_settings(read_model(path), ["one more"])
    assert all(reason in str(error.value) for reason in [*names, "one more"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "WhisperSpec"}, "is a WhisperSpec; only encoder-decoders"),
        ({"revision": 8}, "has the revision 8"),
        ({"revision": 1}, "has the revision 1"),
        ({"without": "decoder/layer_1/ffn/linear_0/weight"}, "ffn/linear_0/weight is missing"),
        ({"more": {"encoder/layer_1/ffn/linear_0/weight": MATRIX}}, "has the shape .30, 30., not .37, 30."),
        ({"without": "beta"}, "RMS norms"),
        ({"more": {"encoder/layer_5/ffn/linear_0/weight": MATRIX}}, "not numbered from 0 on"),
        ({"more": {"encoder/num_heads": np.float32("nan")}}, "num_heads is nan"),
        ({"more": {"decoder/alignment_layer": np.int16(-5)}}, "alignments of layer -5, 1 heads, do not exist"),
        ({"more": {"decoder/layer_norm/gamma": np.ones(WIDTH, dtype=np.int8)}}, "gamma is int8"),
    ],
)
def test_other_kinds_and_damaged_models_are_refused(path: Path, changes: dict[str, Any], message: str) -> None:
    rewrite(path, **changes)
    with pytest.raises(RunError, match=message):
        read_settings(read_model(path), [])


def test_positions_that_no_table_holds_are_those_that_ctranslate2_computes(path: Path) -> None:
    rewrite(path, without="encodings")
    settings = read_settings(read_model(path), [])
    assert settings.values["positions"] == "learned"
    assert settings.values["max_positions"] == 500
