"""Models of transformers, built small."""

from __future__ import annotations

import pytest

from transformer_doctor.small_models import VOCABULARY, NotBuilt, call_model, make

pytest.importorskip("transformers")


@pytest.mark.parametrize("name", ["ForCausalLM llama", "ForConditionalGeneration marian", "ForMaskedLM roberta"])
def test_models_of_the_library_are_made_small(name: str) -> None:
    model = make(name)
    assert sum(parameter.numel() for parameter in model.parameters()) < 20_000
    assert call_model(model).logits.size(-1) == VOCABULARY


def test_a_small_model_has_a_layer_of_each_type_and_fewer_heads_of_keys_where_it_had_fewer() -> None:
    config = make("ForCausalLM gemma3_text").config
    assert config.layer_types == ["sliding_attention"] * 4
    assert (config.num_attention_heads, config.num_key_value_heads) == (2, 1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("ForConditionalGeneration qwen2_audio", "more than text"), ("ForCausalLM no-such-type", "KeyError")],
)
def test_what_cannot_be_built_says_why(name: str, reason: str) -> None:
    with pytest.raises(NotBuilt, match=reason):
        make(name)
