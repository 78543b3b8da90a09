"""Encoders in the style of BERT: a masked language model, and classes from the first token, a mean or a GRU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

PAD = 0


@dataclass
class BertConfig:
    vocab_size: int = 43
    hidden_size: int = 32
    num_hidden_layers: int = 3
    num_attention_heads: int = 4
    intermediate_size: int = 64
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    max_position_embeddings: int = 128
    type_vocab_size: int = 2
    pad_token_id: int = PAD
    num_labels: int = 4


@dataclass
class TokenOutput:
    logits: Tensor


class BertEmbeddings(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(0.1)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        positions = self.position_embeddings(torch.arange(input_ids.size(1), device=input_ids.device))
        x = self.word_embeddings(input_ids) + positions + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(x))


class BertAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.size = config.num_attention_heads, width // config.num_attention_heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.dense = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q = self.transpose_for_scores(self.query(x))
        k = self.transpose_for_scores(self.key(x))
        v = self.transpose_for_scores(self.value(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        scores = scores + mask
        probs = self.dropout(scores.softmax(dim=-1))
        context = (probs @ v).permute(0, 2, 1, 3).flatten(2)
        return self.dense(context)


class BertLayer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention = BertAttention(config)
        self.norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.intermediate = nn.Linear(width, config.intermediate_size)
        self.act = {"gelu": nn.GELU(), "relu": nn.ReLU()}[config.hidden_act]
        self.output = nn.Linear(config.intermediate_size, width)
        self.norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        attended = self.attention(x, mask)
        x = self.norm1(x + self.dropout(attended))
        fed = self.output(self.act(self.intermediate(x)))
        return self.norm2(x + self.dropout(fed))


class BertModel(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        keep = attention_mask[:, None, None, :].to(self.embeddings.LayerNorm.weight)
        extended = (1.0 - keep) * -10000.0
        x = self.embeddings(input_ids, token_type_ids)
        for layer in self.layer:
            x = layer(x, extended)
        return x


class BertForMaskedLM(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config, self.bert = config, BertModel(config)
        self.transform = nn.Sequential(nn.Linear(config.hidden_size, config.hidden_size), nn.GELU())
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.decoder.weight = self.bert.embeddings.word_embeddings.weight

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> TokenOutput:
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        x = self.bert(input_ids, attention_mask, token_type_ids)
        return TokenOutput(self.decoder(self.norm(self.transform(x))))


class BertForSequenceClassification(nn.Module):
    """A class; `pooling` says from what: "cls", "mean", "max" or "gru"."""

    def __init__(self, config: BertConfig, pooling: str) -> None:
        super().__init__()
        self.config, self.bert, self.pooling = config, BertModel(config), pooling
        self.pooler = nn.Sequential(nn.Linear(config.hidden_size, config.hidden_size), nn.Tanh())
        if pooling == "gru":
            self.gru = nn.GRU(config.hidden_size, config.hidden_size, batch_first=True)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        x = self.bert(input_ids, attention_mask)
        return self.classifier(self.pooler(self.pool(x, attention_mask)))

    def pool(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        weights = attention_mask[..., None].to(x)
        if self.pooling == "mean":
            return (x * weights).sum(1) / weights.sum(1)
        if self.pooling == "max":
            return x.masked_fill(weights == 0, torch.finfo(x.dtype).min).amax(1)
        if self.pooling == "gru":
            lengths, order = attention_mask.sum(1).sort(descending=True)
            packed = nn.utils.rnn.pack_padded_sequence(x[order], lengths.cpu(), batch_first=True)
            state = self.gru(packed)[1][-1]
            return state[order.argsort()]
        return x[:, 0]


def masked_lm(**options: Any) -> dict[str, Any]:
    config = BertConfig(**options)
    return {"model": BertForMaskedLM(config), "vocab_size": config.vocab_size, "pad": PAD, "kind": "encoder"}


def classifier(pooling: str, **options: Any) -> dict[str, Any]:
    config = BertConfig(**options)
    model = BertForSequenceClassification(config, pooling)
    return {"model": model, "vocab_size": config.vocab_size, "pad": PAD, "kind": "encoder"}
