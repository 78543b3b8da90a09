"""Sound models of other libraries, of torch and of tutorials; `PEERS` builds each with its options of `examine`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from benchmarks.doctor_trial.host_models import HOSTS
from torch import Tensor, nn

from specimens import peers
from specimens.planted import BOS, EOS, PAD, VOCABULARY, TorchTransformer
from transformer_doctor.small_models import call_model

MARKS = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 128}
Peer = tuple[nn.Module, dict[str, Any]]


def ids(length: int) -> Tensor:
    return torch.randint(3, VOCABULARY, (2, length))


@torch.no_grad()
def call_both(model: nn.Module) -> Any:
    return model(ids(7), ids(5))


@torch.no_grad()
def call_one(model: nn.Module) -> Any:
    return model(ids(7))


def translator(model: nn.Module, **options: Any) -> Peer:
    return model, {"call": call_both, **MARKS, **options}


def decoder(model: nn.Module, **options: Any) -> Peer:
    return model, {"call": call_one, **MARKS, "kind": "decoder", **options}


def encoder(model: nn.Module, **options: Any) -> Peer:
    return model, {"call": call_one, **MARKS, "kind": "encoder", **options}


class TransformerSubclass(nn.Transformer):
    """Subclass of nn.Transformer with embeddings and an output layer of its own."""

    def __init__(self) -> None:
        super().__init__(16, 2, 1, 1, 29, batch_first=True)
        self.embedding, self.positions = nn.Embedding(VOCABULARY, 16), nn.Embedding(200, 16)
        self.output = nn.Linear(16, VOCABULARY)

    def embedded(self, rows: Tensor) -> Tensor:
        return self.embedding(rows) + self.positions(torch.arange(rows.size(1)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        later = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        hidden = super().forward(
            self.embedded(source), self.embedded(target), tgt_mask=later, src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD, memory_key_padding_mask=source == PAD,
        )  # fmt: skip
        return self.output(hidden)


class TimeFirst(nn.Module):
    """nn.Transformer with ids (S, B) and (T, B)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCABULARY, 16), nn.Embedding(200, 16)
        self.transformer, self.output = nn.Transformer(16, 2, 1, 1, 29), nn.Linear(16, VOCABULARY)

    def embedded(self, rows: Tensor) -> Tensor:
        return self.embedding(rows) + self.positions(torch.arange(len(rows)))[:, None]

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        later = nn.Transformer.generate_square_subsequent_mask(len(target), dtype=self.output.weight.dtype)
        hidden = self.transformer(
            self.embedded(source), self.embedded(target), tgt_mask=later, src_key_padding_mask=(source == PAD).t(),
            memory_key_padding_mask=(source == PAD).t(),
        )  # fmt: skip
        return self.output(hidden)


class PooledEncoder(nn.Module):
    """nn.TransformerEncoder with a pooled classifier."""

    def __init__(self, norm_first: bool, pool: str) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCABULARY, 16, padding_idx=PAD), nn.Embedding(200, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 29, batch_first=True, norm_first=norm_first)
        self.encoder, self.output = nn.TransformerEncoder(layer, 2), nn.Linear(16, 5)
        self.pool = pool

    def forward(self, rows: Tensor) -> Tensor:
        x = self.embedding(rows) + self.positions(torch.arange(rows.size(1)))
        x = self.encoder(x, src_key_padding_mask=rows == PAD)
        if self.pool == "mean":
            real = (rows != PAD)[..., None]
            return self.output((x * real).sum(1) / real.sum(1))
        return self.output(x[:, 0] if self.pool == "first" else x)


class ImageBlocks(nn.Module):
    """Blocks of timm's vision transformer over embedded ids, as of patches: no id is padding."""

    def __init__(self) -> None:
        super().__init__()
        from timm.models.vision_transformer import Block

        self.embedding, self.positions = nn.Embedding(VOCABULARY, 16), nn.Parameter(torch.randn(1, 200, 16) * 0.02)
        self.blocks, self.head = nn.Sequential(*(Block(16, 2, qkv_bias=True) for _ in range(2))), nn.Linear(16, 5)

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.blocks(self.embedding(rows) + self.positions[:, : rows.size(1)]).mean(1))


def x_translator(**options: Any) -> Peer:
    from x_transformers import XTransformer

    model = XTransformer(
        dim=16, enc_num_tokens=VOCABULARY, enc_depth=1, enc_heads=2, enc_max_seq_len=200, dec_num_tokens=VOCABULARY,
        dec_depth=1, dec_heads=2, dec_max_seq_len=200, **options,
    )  # fmt: skip

    class EncoderDecoderNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            memory = self.inner.encoder(source, mask=source != PAD, return_embeddings=True)
            return self.inner.decoder.net(target, context=memory, context_mask=source != PAD)

    return translator(EncoderDecoderNet())


def x_decoder(**options: Any) -> Peer:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **options)
    return decoder(TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=200, attn_layers=layers))


def x_encoder() -> Peer:
    from x_transformers import Encoder, TransformerWrapper

    class Masked(TransformerWrapper):
        def forward(self, rows: Tensor) -> Tensor:
            return super().forward(rows, mask=rows != PAD)

    layers = Encoder(dim=16, depth=2, heads=2, attn_dim_head=8)
    return encoder(Masked(num_tokens=VOCABULARY, max_seq_len=200, attn_layers=layers))


TORCHTUNE = {
    "llama3": {},
    "gemma": {"head_dim": 8},
    "qwen2": {},
    "mistral": {},
    "gemma2": {
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "sliding_window_size": 8,
        "final_capping_value": 30.0,
        "hidden_capping_value": 50.0,
    },
    "phi3": {"num_kv_heads": 2},
}


def torchtune_decoder(family: str) -> Peer:
    shape = {"vocab_size": VOCABULARY, "num_layers": 2, "num_heads": 2, "embed_dim": 16, "max_seq_len": 200}
    make = vars(importlib.import_module(f"torchtune.models.{family}"))[family]
    return decoder(make(**{**shape, "num_kv_heads": 1, "intermediate_dim": 32, **TORCHTUNE[family]}))


def litgpt_decoder(**options: Any) -> Peer:
    from litgpt.model import GPT, Config

    shape = {"n_layer": 2, "n_head": 2, "n_embd": 16, "intermediate_size": 32, "rotary_percentage": 1.0}
    return decoder(GPT(Config(block_size=200, padded_vocab_size=VOCABULARY, **shape, **options)))


def local_decoder() -> Peer:
    from local_attention import LocalTransformer

    shape = {"dim": 16, "depth": 2, "heads": 2, "dim_head": 8, "local_attn_window_size": 8}
    return decoder(LocalTransformer(num_tokens=VOCABULARY, max_seq_len=200, causal=True, **shape))


def host(name: str) -> Peer:
    model = HOSTS[name][0]()
    if name == "annotated":
        return model, {"call": lambda model: call_annotated(model), **MARKS, "masks": model.masks}
    return decoder(model) if name == "decoder" else translator(model)


@torch.no_grad()
def call_annotated(model: Any) -> Any:
    source, target = ids(7), ids(5)
    return model(source, target, *model.masks(source, target))


def huggingface(name: str) -> Peer:
    return peers.make(name), {"call": call_model}


def ours(norm: str, positions: str) -> Peer:
    from manyheads.config.schema import ModelConfig
    from manyheads.model.encoder_decoder import EncoderDecoder

    shape = {"d_model": 16, "num_heads": 2, "d_ff": 29, "num_encoder_layers": 1, "num_decoder_layers": 1}
    config = ModelConfig(**shape, norm=norm, positions=positions)
    return translator(EncoderDecoder(config, VOCABULARY, VOCABULARY, pad=PAD))


PEERS: Mapping[str, Callable[[], Peer]] = {
    **{f"transformers {name}": lambda name=name: huggingface(name) for name in peers.NAMES},
    **{
        f"nn.Transformer {'pre' if first else 'post'}-norm{'' if bias else ' without bias'}":
        lambda first=first, bias=bias: translator(TorchTransformer(norm_first=first, bias=bias))
        for first in (True, False) for bias in (True, False)
    },
    "nn.Transformer time first": lambda: translator(TimeFirst(), time_first=True),
    "nn.Transformer subclass": lambda: translator(TransformerSubclass()),
    **{
        f"nn.TransformerEncoder {pool} {'pre' if first else 'post'}-norm":
        lambda first=first, pool=pool: encoder(PooledEncoder(first, pool))
        for first in (True, False) for pool in ("first", "mean", "all")
    },
    **{f"host {name}": lambda name=name: host(name) for name in HOSTS},
    **{
        f"manyheads {norm}-norm {positions}": lambda norm=norm, positions=positions: ours(norm, positions)
        for norm in ("pre", "post") for positions in ("sinusoidal", "learned", "rotary")
    },
    "x-transformers translator": x_translator,
    "x-transformers translator rotary": lambda: x_translator(enc_rotary_pos_emb=True, dec_rotary_pos_emb=True),
    "x-transformers encoder": x_encoder,
    "x-transformers decoder": x_decoder,
    "x-transformers decoder rotary": lambda: x_decoder(rotary_pos_emb=True),
    "x-transformers decoder alibi": lambda: x_decoder(alibi_pos_bias=True),
    "x-transformers decoder t5": lambda: x_decoder(rel_pos_bias=True),
    "x-transformers decoder qk-norm": lambda: x_decoder(attn_qk_norm=True),
    "x-transformers decoder talking-heads": lambda: x_decoder(attn_pre_talking_heads=True),
    "x-transformers decoder flash": lambda: x_decoder(attn_flash=True, use_rmsnorm=True, ff_glu=True),
    **{f"torchtune {name}": lambda name=name: torchtune_decoder(name) for name in TORCHTUNE},
    "litgpt": litgpt_decoder,
    "litgpt grouped queries": lambda: litgpt_decoder(n_query_groups=1),
    "litgpt sequential": lambda: litgpt_decoder(parallel_residual=False, bias=False, norm_class_name="RMSNorm"),
    "local-attention decoder": local_decoder,
    "timm blocks": lambda: encoder(ImageBlocks(), pad=None),
}  # fmt: skip
