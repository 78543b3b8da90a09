"""Models of transformers state their kind, their sizes and their marks."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn

from specimens import peers
from transformer_doctor import examine
from transformer_doctor.errors import UsageError
from transformer_doctor.huggingface import _limit_of, _stated_kind, from_huggingface, huggingface_config


def test_a_masked_language_model_that_generates_is_an_encoder_unless_it_is_a_decoder() -> None:
    transformers: Any = pytest.importorskip("transformers")
    kinds = [
        _stated_kind(
            model := transformers.BertLMHeadModel(transformers.BertConfig(**peers.BERT, is_decoder=decoder)), {}
        )
        for decoder in (False, True)
    ]
    assert kinds == ["encoder", "decoder"]
    assert isinstance(model, nn.Module)


def test_an_unstated_padding_id_is_remarked() -> None:
    report = examine(peers.make("gpt2"))
    assert report.remarks[0] == "pad = 22: the configuration states none, and an attention mask hides it"


def test_unstated_vocabulary_sizes_are_those_of_the_embeddings() -> None:
    model = peers.make("marian")
    config = {name: value for name, value in (huggingface_config(model) or {}).items() if "vocab" not in name}
    assert from_huggingface(model, config, None, None).sizes == (23, 23)


@pytest.mark.parametrize("name", ["bart-classifier", "mt5-classifier"])
def test_an_encoder_decoder_classifier_reads_one_text_that_ends_with_eos(name: str) -> None:
    model = peers.make(name)
    rows: list[Tensor] = []
    model.register_forward_pre_hook(lambda module, args, given: rows.append(given["input_ids"]), with_kwargs=True)
    report = examine(model)
    assert report.names == []
    assert len(report.asked) > 10
    assert {int(count) for ids in rows for count in (ids == model.config.eos_token_id).sum(1)} == {1}


def test_a_model_without_token_ids_is_refused() -> None:
    transformers: Any = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=29, image_size=8, patch_size=4
    )
    with pytest.raises(UsageError, match=r"ViTModel takes .* and no input_ids"):
        examine(transformers.ViTModel(config))


def test_the_maximum_length_is_read_under_many_names() -> None:
    sizes = {"max_relative_positions": 32, "max_2d_position_embeddings": 16, "num_positions": 8}
    assert _limit_of(nn.Identity(), [{"max_source_positions": 1500}, {"max_target_positions": 448, **sizes}]) == 448
    assert _limit_of(nn.Identity(), [{"max_decoder_position_embeddings": 64, "n_positions": None}]) == 64
    assert _limit_of(nn.Identity(), [{"max_seq_len": 64}]) == 64
    assert _limit_of(nn.Identity(), [sizes]) is None
