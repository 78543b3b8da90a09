"""Models that are called in unusual ways, for the tests of the adapter."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import PAD, VOCABULARY, D, Embedding, H, Transformer
from specimens.unusual_models import NanoGPT

E = D // H


class Attention(nn.Module):
    """Attention whose mask has one of three encodings."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(D, D) for _ in range(4))
        self.encoding = encoding

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        def heads(layer: nn.Module, x: Tensor) -> Tensor:
            return layer(x).unflatten(-1, (H, E)).transpose(1, 2)

        scores = heads(self.query, query) @ heads(self.key, memory).transpose(2, 3) / math.sqrt(E)
        if mask is not None:
            mask = mask[:, None] if mask.dim() == 3 else mask
            if self.encoding == "added":
                scores = scores + mask
            else:
                hidden = mask == 0 if self.encoding == "keep" else mask.bool()
                scores = scores.masked_fill(hidden, -torch.inf)
        return self.out((scores.softmax(-1) @ heads(self.value, memory)).transpose(1, 2).flatten(2))


class Masked(nn.Module):
    """Encoder and decoder that take masks as arguments; with `cross` False, cross-attention ignores its mask."""

    def __init__(self, encoding: str = "keep", *, cross: bool = True) -> None:
        super().__init__()
        self.source_embedding, self.target_embedding = (Embedding(VOCABULARY, frozenset()) for _ in range(2))
        self.encoder, self.decoder, self.cross_attention = (Attention(encoding) for _ in range(3))
        self.output, self.uses_cross_mask = nn.Linear(D, VOCABULARY), cross

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
        return self.decode_target(self.encode_source(src, src_mask), src_mask, tgt, tgt_mask)

    def encode_source(self, src: Tensor, src_mask: Tensor | None) -> Tensor:
        x = self.source_embedding(src)
        return x + self.encoder(x, x, src_mask)

    def decode_target(
        self, memory: Tensor, src_mask: Tensor | None, tgt: Tensor, tgt_mask: Tensor | None
    ) -> Tensor:
        y = self.target_embedding(tgt)
        y = y + self.decoder(y, y, tgt_mask)
        return self.output(y + self.cross_attention(y, memory, src_mask if self.uses_cross_mask else None))


class OptionalMasks(Masked):
    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None
    ) -> Tensor:
        return self.decode_target(self.encode_source(src, src_mask), src_mask, tgt, tgt_mask)


class ThreeMasks(Masked):
    """Masks of a port of TensorFlow's tutorial: `dec_padding_mask` hides keys of the source."""

    def forward(
        self,
        inp: Tensor,
        tar: Tensor,
        training: bool,
        enc_padding_mask: Tensor,
        look_ahead_mask: Tensor,
        dec_padding_mask: Tensor,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.decode_target(
            self.encode_source(inp, enc_padding_mask), dec_padding_mask, tar, look_ahead_mask
        ), {}


class EncodeDecode(nn.Module):
    """Model without forward, with encode and decode in the argument order of The Annotated Transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Masked()

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        return self.inner.encode_source(src, src_mask)

    def decode(self, memory: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor) -> Tensor:
        return self.inner.decode_target(memory, src_mask, tgt, tgt_mask)


class TorchTutorial(nn.Module):
    """nn.Transformer with the time first, as in PyTorch's tutorial on translation."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(D, H, 1, 1, 29)
        self.source, self.target = nn.Embedding(VOCABULARY, D), nn.Embedding(VOCABULARY, D)
        self.positions, self.output = nn.Parameter(torch.randn(100, 1, D)), nn.Linear(D, VOCABULARY)

    def forward(
        self,
        src: Tensor,
        trg: Tensor,
        src_mask: Tensor,
        tgt_mask: Tensor,
        src_padding_mask: Tensor,
        tgt_padding_mask: Tensor,
        memory_key_padding_mask: Tensor,
    ) -> Tensor:
        source = self.source(src) * 4 + self.positions[: len(src)]
        target = self.target(trg) * 4 + self.positions[: len(trg)]
        return self.output(
            self.transformer(
                source,
                target,
                src_mask,
                tgt_mask,
                None,
                src_padding_mask,
                tgt_padding_mask,
                memory_key_padding_mask,
            )
        )


class Wrapped(nn.Module):
    """A Transformer wrapped in another signature; its defects are numbers of the museum."""

    def __init__(self, *defects: int) -> None:
        super().__init__()
        self.inner = Transformer(*defects)


class InDictionary(Wrapped):
    def forward(self, batch: Any) -> dict[str, Tensor]:
        return {"loss": torch.tensor(1.0), "logits": self.inner(batch["src_ids"], batch["tgt_ids"])}


class InTuple(Wrapped):
    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        source, target = batch
        return self.inner(source, target), torch.tensor(1.0)


class ByName(Wrapped):
    def forward(self, *, tgt: Tensor, src: Tensor) -> Tensor:
        return self.inner(src, tgt)


class TimeFirst(Wrapped):
    def forward(self, src: Tensor, trg: Tensor) -> Tensor:
        return self.inner(src.t(), trg.t()).transpose(0, 1)


class LanguageModel(NanoGPT):
    """Scores the last position alone, unless labels are given, as nanoGPT does."""

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:  # type: ignore[override]
        scores = super().forward(idx)
        if targets is None:
            return scores[:, [-1]], None
        return scores, functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


class Segmented(nn.Module):
    """An encoder with segments, as in a much-copied BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.attention = Embedding(VOCABULARY, frozenset()), Attention("keep")
        self.segments, self.output = nn.Embedding(3, D, padding_idx=0), nn.Linear(D, VOCABULARY)

    def forward(self, x: Tensor, segment_info: Tensor) -> Tensor:
        mask = (x != PAD)[:, None, None]
        x = self.embedding(x) + self.segments(segment_info)
        return self.output(x + self.attention(x, x, mask))
