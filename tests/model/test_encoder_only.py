"""Encoder-only models, compared with BERT of transformers, and the effect of padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.tolerances import assert_close
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_only import EncoderOnly, MaskedLanguageModel, TextClassifier

B, S, V, CLASSES, PAD = 5, 11, 37, 3, 1
SIZES = {"d_model": 28, "d_ff": 44, "num_heads": 7, "num_encoder_layers": 2}
LIKE_BERT = ModelConfig(
    **SIZES,
    dropout=0.0,
    norm="post",
    norm_epsilon=1e-12,
    positions="learned",
    max_positions=S + 2,
    activation="gelu",
    scale_embeddings=False,
    token_types=2,
    embedding_norm=True,
    pooling="cls",
)


@pytest.fixture
def ids() -> Tensor:
    torch.manual_seed(1)
    found = torch.randint(2, V, (B, S))
    for row, length in enumerate((11, 7, 3, 5, 1)):
        found[row, length:] = PAD
    return found


@pytest.fixture
def types(ids: Tensor) -> Tensor:
    return (torch.arange(S) >= 2).long().expand(B, S) * (ids != PAD)


def bert_config() -> BertConfig:
    return BertConfig(
        vocab_size=V,
        hidden_size=28,
        num_hidden_layers=2,
        num_attention_heads=7,
        intermediate_size=44,
        max_position_embeddings=S + 2,
        pad_token_id=PAD,
        num_labels=CLASSES,
    )


def copy_weights(model: EncoderOnly, theirs: dict[str, Tensor]) -> None:
    """Copy the weights of BERT's encoder, by a table that is independent of the importer."""
    embeddings, table = model.embedding, {}
    table[embeddings.tokens.weight] = "embeddings.word_embeddings.weight"
    table[embeddings.positions.table.weight] = "embeddings.position_embeddings.weight"  # type: ignore[union-attr]
    table[embeddings.types.weight] = "embeddings.token_type_embeddings.weight"  # type: ignore[union-attr]
    table |= norm(embeddings.norm, "embeddings.LayerNorm")
    for number, layer in enumerate(model.encoder_layers):
        name = f"encoder.layer.{number}"
        for kind in ("weight", "bias"):
            parts = [theirs[f"{name}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            getattr(layer.self_attention.project_in, kind).copy_(torch.cat(parts))
        table |= norm(layer.self_attention.project_out, f"{name}.attention.output.dense")
        table |= norm(layer.around_attention.norm, f"{name}.attention.output.LayerNorm")
        table |= norm(layer.feed_forward.expand, f"{name}.intermediate.dense")
        table |= norm(layer.feed_forward.contract, f"{name}.output.dense")
        table |= norm(layer.around_feed_forward.norm, f"{name}.output.LayerNorm")
    for ours, name in table.items():
        ours.copy_(theirs[name])


def norm(module: Any, name: str) -> dict[Tensor, str]:
    return {module.weight: f"{name}.weight", module.bias: f"{name}.bias"}


def encoder_of(theirs: torch.nn.Module) -> dict[str, Tensor]:
    return {name.removeprefix("bert."): tensor for name, tensor in theirs.state_dict().items()}


@torch.no_grad()
def test_a_classifier_with_the_weights_of_bert_gives_its_logits(ids: Tensor, types: Tensor) -> None:
    theirs = BertForSequenceClassification(bert_config()).eval()
    ours = TextClassifier(LIKE_BERT, V, CLASSES, pad=PAD).eval()
    copy_weights(ours, encoder_of(theirs))
    ours.pooler.load_state_dict(theirs.bert.pooler.dense.state_dict())
    ours.output.load_state_dict(theirs.classifier.state_dict())
    real = (ids != PAD).long()
    hidden = theirs.bert(ids, real, types).last_hidden_state
    found, _ = ours.encode(ids, types)
    assert_close(found[real.bool()], hidden[real.bool()])
    assert_close(ours(ids, types), theirs(ids, real, types).logits)


@torch.no_grad()
def test_a_masked_language_model_with_the_weights_of_bert_gives_its_logits(ids: Tensor, types: Tensor) -> None:
    theirs = BertForMaskedLM(bert_config()).eval()
    ours = MaskedLanguageModel(LIKE_BERT, V, pad=PAD).eval()
    copy_weights(ours, encoder_of(theirs))
    head = theirs.cls.predictions
    ours.transform.load_state_dict(head.transform.dense.state_dict())
    ours.transform_norm.load_state_dict(head.transform.LayerNorm.state_dict())
    ours.output.bias.copy_(head.bias)
    real = ids != PAD
    expected = theirs(ids, real.long(), types).logits
    assert_close(ours(ids, types)[real], expected[real])
    assert ours.output.weight is ours.embedding.tokens.weight


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@torch.no_grad()
def test_a_class_does_not_depend_on_padding_or_other_rows(ids: Tensor, pooling: str, positions: str) -> None:
    model = TextClassifier(ModelConfig(**SIZES, pooling=pooling, positions=positions), V, CLASSES, pad=PAD).eval()  # type: ignore[arg-type]
    together = model(ids)
    for row, logits in zip(ids, together, strict=True):
        alone = row[row != PAD][None]
        assert_close(model(alone)[0], logits)


@torch.no_grad()
def test_every_token_attends_to_the_last_token(ids: Tensor) -> None:
    model = EncoderOnly(ModelConfig(**SIZES), V, pad=PAD).eval()
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] - 1) % (V - 2) + 2
    before, after = model.encode(ids)[0], model.encode(changed)[0]
    assert ((before[0] - after[0]).abs().amax(-1) > 1e-4).all()
    torch.testing.assert_close(before[1:], after[1:])


@torch.no_grad()
def test_pooling_by_mean_leaves_out_padding_and_pooling_by_cls_takes_the_first_token(ids: Tensor) -> None:
    hidden = torch.randn(B, S, 28)
    mask = (ids != PAD)[:, None, None]
    for pooling in ("cls", "mean"):
        model = TextClassifier(ModelConfig(**SIZES, pooling=pooling), V, CLASSES, pad=PAD)  # type: ignore[arg-type]
        for row in range(B):
            real = hidden[row, ids[row] != PAD]
            expected = real[0] if pooling == "cls" else real.mean(0)
            torch.testing.assert_close(model.pool(hidden, mask)[row], expected)
