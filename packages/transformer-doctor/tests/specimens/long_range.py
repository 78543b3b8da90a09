"""Decoders that mix positions in ways that short texts do not show, each sound or with a look-ahead.

A mask is True where a query (its row) may see a key (its column).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import PAD, VOCABULARY, D, Transformer

LONGEST = 1100


def _chunks(length: int, size: int, *, leaks: bool) -> Tensor:
    """Attend to the own chunk and the one before; with a leak all keys of the own chunk, but for the first one."""
    t, s = torch.arange(length)[:, None], torch.arange(length)
    near = (t // size - s // size <= 1) & (s <= t)
    return near | ((t // size == s // size) & (t >= size)) if leaks else near


def _strides(length: int, size: int, *, leaks: bool) -> Tensor:
    t, s = torch.arange(length)[:, None], torch.arange(length)
    every = (t - s) % size == 0
    return every if leaks else every & (s <= t)


def _cut_mask(length: int, size: int, *, leaks: bool) -> Tensor:
    """Use a look-ahead mask of a fixed size, beyond which nothing is hidden."""
    mask = torch.ones(length, length, dtype=torch.bool)
    mask[:size, :size] = mask[:size, :size].tril()
    return mask if leaks else mask.tril()


def _wrapped_window(length: int, size: int, *, leaks: bool) -> Tensor:
    """Attend to a window of keys; with a leak the first queries see the last keys, as after torch.roll."""
    distance = torch.arange(length)[:, None] - torch.arange(length)
    return (distance % length if leaks and length > size else distance).clamp(-1).add(1).clamp(0, size + 1) % (
        size + 1
    ) > 0


MASKS = {
    "chunks": _chunks,
    "strides": _strides,
    "cut mask": _cut_mask,
    "window": _wrapped_window,
}


class LongRange(nn.Module):
    """A decoder of one layer.

    Args:
        kind: a key of MASKS, or "centred" (a convolution), "scan", "mean", "sorted".
        size: of a chunk, a stride or a kernel.
        leaks: whether it sees the future.
    """

    def __init__(self, kind: str, size: int, *, leaks: bool) -> None:
        super().__init__()
        self.kind, self.size, self.leaks = kind, size, leaks
        self.tokens, self.positions = nn.Embedding(VOCABULARY, D, padding_idx=PAD), nn.Embedding(LONGEST, D)
        self.project, self.out = nn.Linear(D, 3 * D), nn.Linear(D, VOCABULARY)
        self.kernel = nn.Parameter(torch.randn(D, 1, size if kind == "centred" else 1) / size**0.5)
        self.max_length = LONGEST

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.positions(torch.arange(ids.size(1)))
        x = self.tokens(ids) * (1 + positions) + positions
        return self.out(x + self.mix(x))

    def mix(self, x: Tensor) -> Tensor:
        query, key, value = self.project(x).chunk(3, -1)
        length = x.size(1)
        if self.kind in MASKS:
            mask = MASKS[self.kind](length, self.size, leaks=self.leaks)
            return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        if self.kind == "centred":
            return self.convolve(value)
        if self.kind == "mean":
            sums = value.cumsum(1) / torch.arange(1, length + 1)[:, None]
            return sums - value.mean(1, keepdim=True) if self.leaks and length > self.size else sums
        if self.kind == "scan":
            return self.scan(value)
        return self.sorted(query, key, value)

    def convolve(self, value: Tensor) -> Tensor:
        before, after = (self.size - 1, 0) if not self.leaks else (self.size // 2, self.size // 2)
        padded = functional.pad(value.mT, (before, after))
        return functional.conv1d(padded, self.kernel, groups=D).mT

    def scan(self, value: Tensor) -> Tensor:
        """Sum up earlier values, weaker with the distance, through a Fourier transform as in long convolutions."""
        length = value.size(1)
        decay = 0.9 ** torch.arange(length).to(value)[:, None]
        size = length if self.leaks and length > self.size else 2 * length
        spectrum = torch.fft.rfft(decay, size, dim=0) * torch.fft.rfft(value, size, dim=1)
        return torch.fft.irfft(spectrum, size, dim=1)[:, :length]

    def sorted(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend to earlier tokens within chunks of like hashes; what a chunk holds depends on all tokens."""
        length = value.size(1)
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        if self.leaks and length > self.size:
            hashed = (key[..., 0] > 0).long()
            chunks = hashed.argsort(dim=1, stable=True).argsort(dim=1) // self.size
            mask = mask & ((chunks[:, :, None] == chunks[:, None, :]) | torch.eye(length, dtype=torch.bool))
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# kind and size
LEAKS = [
    ("chunks", 4), ("chunks", 100), ("chunks", 512), ("strides", 48), ("cut mask", 64), ("window", 300),
    ("centred", 3), ("centred", 65), ("mean", 200), ("scan", 30), ("sorted", 16),
]  # fmt: skip


class LongSource(Transformer):
    """An encoder and decoder that treats sources of more than 32 tokens differently.

    Args:
        way: "cut" to 32 tokens, "padding" that is masked within them alone, or "sound".
    """

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        if way == "padding":
            self.encoder_attention.register_forward_pre_hook(self.with_shorter_mask)

    def with_shorter_mask(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mask = inputs[3].clone()
        mask[..., 32:] = True
        return (*inputs[:3], mask)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return super().forward(source[:, :32] if self.way == "cut" else source, target)
