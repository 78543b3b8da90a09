"""Models of transformers and of other packages, built small."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from transformer_doctor.small_models import VOCABULARY, NotBuilt, build, call_model, kind_of, make


@pytest.mark.parametrize("name", ["ForCausalLM llama", "ForConditionalGeneration marian", "ForMaskedLM roberta"])
def test_models_of_the_library_are_made_small(name: str) -> None:
    pytest.importorskip("transformers")
    model = make(name)
    assert sum(parameter.numel() for parameter in model.parameters()) < 20_000
    assert call_model(model).logits.size(-1) == VOCABULARY


def test_models_that_read_more_than_text_are_left_out() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(NotBuilt, match="more than text"):
        make("ForConditionalGeneration qwen2_audio")


class Told(nn.Module):
    """Keeps the arguments that it was built with."""

    def __init__(
        self,
        src_vocab: int,
        dim: int,
        n_layers: int,
        n_heads=8,
        *,
        dropout: float,
        bias: bool,
        seq_len=4096,
        **more: Any,
    ) -> None:
        super().__init__()
        self.told = [src_vocab, dim, n_layers, n_heads, dropout, bias, seq_len, more]


class Unclear(nn.Module):
    """Has an argument whose name says nothing."""

    def __init__(self, dim: int, flavour: int) -> None:
        super().__init__()


class Whole(nn.Module):
    """Holds another module of the package."""

    def __init__(self, inner: Told, hidden_size: int) -> None:
        super().__init__()
        self.inner, self.width = inner, hidden_size


def test_arguments_get_small_values_by_their_names_and_types() -> None:
    assert build(Told, 1).told == [VOCABULARY, 16, 2, 2, 0.0, False, 64, {}]
    assert build(Told, 4).told[:2] == [VOCABULARY, 64]
    whole = build(Whole, 1)
    assert (whole.inner.told[0], whole.width) == (VOCABULARY, 16)
    with pytest.raises(NotBuilt, match="needs flavour"):
        build(Unclear, 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ForCausalLM bert", None),
        ("ForMaskedLM bert", "encoder"),
        ("p.m:GPT", "decoder"),
        ("p.m:EncoderDecoder", None),
        ("p.m:DecoderOnly", "decoder"),
        ("p.m:MaskedLanguageModel", "encoder"),
        ("p.m:TextClassifier", "encoder"),
        ("p.m:Transformer", None),
    ],
)
def test_a_name_tells_the_kind_of_a_model(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind
