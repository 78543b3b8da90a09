"""Decoders in the style of Llama, Mistral and Gemma: RMS norms, rotary halves, grouped heads, windows, a cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD = 0


@dataclass
class LlamaConfig:
    vocab_size: int = 47
    hidden_size: int = 32
    intermediate_size: int = 48
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 8
    max_position_embeddings: int = 256
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6
    sliding_window: int | None = None
    attn_logit_softcapping: float | None = None
    hidden_act: str = "silu"
    pad_token_id: int = PAD
    num_labels: int = 3


@dataclass
class CausalOutput:
    logits: Tensor
    hidden_states: Tensor | None = None


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class RotaryEmbedding(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.dim, self.base, self.limit = config.head_dim, config.rope_theta, config.max_position_embeddings
        self.register_buffer("inv_freq", self.frequencies(self.base), persistent=False)

    def frequencies(self, base: float) -> Tensor:
        return 1.0 / (base ** (torch.arange(0, self.dim, 2).float() / self.dim))

    def forward(self, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x: Tensor) -> Tensor:
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn x (B, H, T, E) by the angles of its positions, (B, T, E)."""
    return x * cos.unsqueeze(1).to(x) + rotate_half(x) * sin.unsqueeze(1).to(x)


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.groups = config.num_attention_heads // config.num_key_value_heads
        self.q_proj = nn.Linear(config.hidden_size, config.num_attention_heads * config.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * config.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * config.head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * config.head_dim, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        shape = (*x.shape[:2], -1, self.config.head_dim)
        q = self.q_proj(x).view(shape).transpose(1, 2)
        k = self.k_proj(x).view(shape).transpose(1, 2)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        k = k.repeat_interleave(self.groups, dim=1)
        v = v.repeat_interleave(self.groups, dim=1)
        scores = q @ k.transpose(2, 3) * self.config.head_dim**-0.5
        cap = self.config.attn_logit_softcapping
        if cap is not None:
            scores = cap * torch.tanh(scores / cap)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.act = {"silu": functional.silu, "gelu": functional.gelu}[config.hidden_act]

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(config), FeedForward(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary_emb = RotaryEmbedding(config)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Tensor:
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if position_ids is None:
            position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        time = torch.arange(input_ids.size(1), device=input_ids.device)
        seen = time[:, None] >= time
        if self.config.sliding_window is not None:
            seen = seen & (time[:, None] - time < self.config.sliding_window)
        mask = seen & attention_mask.bool()[:, None, None, :]
        cos, sin = self.rotary_emb(position_ids)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.norm(x)


class LlamaForCausalLM(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config, self.model = config, LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> CausalOutput:
        hidden = self.model(input_ids, attention_mask, position_ids)
        return CausalOutput(self.lm_head(hidden), hidden)


class LlamaForSequenceClassification(nn.Module):
    """A class from the state of the last token that is not padding."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config, self.model = config, LlamaModel(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        hidden = self.model(input_ids, attention_mask)
        time = torch.arange(input_ids.size(1), device=input_ids.device)
        last = (time * attention_mask).argmax(-1)
        return self.score(hidden[torch.arange(len(hidden)), last])


def causal(**options: Any) -> dict[str, Any]:
    """Return the arguments of a language model."""
    left_padding = options.pop("left_padding", False)
    config = LlamaConfig(**options)
    arguments = {"vocab_size": config.vocab_size, "pad": PAD, "kind": "decoder", "left_padding": left_padding}
    return {"model": LlamaForCausalLM(config), **arguments}


def classifier(**options: Any) -> dict[str, Any]:
    """Return the arguments of a classifier."""
    left_padding = options.pop("left_padding", False)
    config = LlamaConfig(**options)
    arguments = {"vocab_size": config.vocab_size, "pad": PAD, "kind": "encoder", "left_padding": left_padding}
    return {"model": LlamaForSequenceClassification(config), **arguments}
