"""Transformers whose attention is written in different ways, each with the defects that are planted into it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import PAD, VOCABULARY

D, H = 32, 4
E = D // H


@dataclass(frozen=True)
class Plan:
    """Planted defects: one name for each part, empty where the part is sound.

    look_ahead, padding: absent, inverted, wide, late, multiplied, added; queries (padding only). Any host has the
    masks of `with_defect`; the use of a mask, the scale and the axis of the softmax have a defect in some hosts:
    test_diagnosis.py has a case of each. scale: missing, twice, width. axis: queries, heads. positions: see
    `sinusoids`. tied: up, down, t5.
    """

    look_ahead: str = ""
    padding: str = ""
    scale: str = ""
    axis: str = ""
    positions: str = ""
    tied: str = ""


def with_defect(hide: Tensor, defect: str) -> Tensor:
    """Return a mask (B or 1, T, S), True = hide, with a defect of the mask itself."""
    if defect == "absent":
        return torch.zeros_like(hide)
    if defect == "inverted":
        return ~hide
    if defect == "wide":
        return functional.pad(hide, (1, -1))
    if defect == "queries":
        return hide[:, :1].transpose(1, 2).expand(hide.size(0), hide.size(2), hide.size(2))
    return hide


def split(x: Tensor) -> Tensor:
    return x.unflatten(-1, (H, E)).transpose(1, 2)


def join(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Projections; subclasses write `attend` from (B, T, D), (B, S, D) and a mask (B or 1, T, S), True = hide."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        if hide is not None and defect == "queries" and hide.size(1) != hide.size(2):
            defect = "absent"
        hide = None if hide is None else with_defect(hide, defect)
        return self.o(self.attend(x, memory, hide, defect))

    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        raise NotImplementedError


class Einsum(Attention):
    """Attention of many tutorials: einsum of lists, masked_fill with a large number."""

    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        q, k, v = (f(t).reshape(*t.shape[:2], H, E) for f, t in ((self.q, x), (self.k, memory), (self.v, memory)))
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        if self.plan.scale != "missing":
            energy = energy / math.sqrt(E)
        mask = None if hide is None else ~hide[:, None]
        if mask is not None and defect == "multiplied":
            energy = energy * mask
        elif mask is not None and defect != "late":
            energy = energy.masked_fill(mask == 0, torch.finfo(energy.dtype).min)
        attention = torch.softmax(energy, dim={"": 3, "queries": 2}[self.plan.axis])
        if mask is not None and defect == "late":
            attention = attention.masked_fill(mask == 0, 0)
        return torch.einsum("nhql,nlhd->nqhd", [attention, v]).reshape(x.size(0), -1, D)


class HeadModules(Attention):
    """A module for each head in a ModuleList, as in lectures; masks by a tril buffer's values."""

    class Head(nn.Module):
        def __init__(self, plan: Plan) -> None:
            super().__init__()
            self.plan = plan
            self.key, self.query, self.value = (nn.Linear(D, E, bias=False) for _ in range(3))

        def forward(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
            q, k = self.query(x), self.key(memory)
            if self.plan.scale == "twice":
                q = q * E**-0.5
            wei = q @ k.transpose(-2, -1) * E**-0.5
            if hide is not None:
                allowed = (~hide).to(wei.dtype)
                if defect == "multiplied":
                    wei = wei * allowed
                else:
                    wei = wei.masked_fill(allowed == 0, torch.finfo(wei.dtype).min)
            wei = functional.softmax(wei, dim=1 if self.plan.axis else -1)
            return wei @ self.value(memory)

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.heads = nn.ModuleList(self.Head(plan) for _ in range(H))

    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        return torch.cat([head(x, memory, hide, defect) for head in self.heads], dim=-1)


class Torch(Attention):
    """nn.MultiheadAttention with additive float masks of (B * H, T, S)."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)

    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        mask = None
        if hide is not None:
            hide = hide.expand(x.size(0), -1, -1).repeat_interleave(H, 0)
            mask = hide.to(x.dtype) * torch.finfo(x.dtype).min
        return self.attention(x, memory, memory, attn_mask=mask, need_weights=False)[0]


class Fused(Attention):
    """scaled_dot_product_attention of rotated queries and keys from one layer, one key head for two of queries."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.kv = nn.Linear(D, D, bias=False)

    @staticmethod
    def rotate(x: Tensor) -> Tensor:
        angles = torch.arange(x.size(-2))[:, None] / 10_000 ** (torch.arange(0, E, 2) / E)
        cos, sin = (torch.cat([part, part], -1).to(x.dtype) for part in (angles.cos(), angles.sin()))
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        q = split(self.q(x))
        k, v = self.kv(memory).unflatten(-1, (2, H // 2, E)).permute(2, 0, 3, 1, 4)
        q, k = self.rotate(q), self.rotate(k)
        k, v = (part.repeat_interleave(2, dim=1) for part in (k, v))
        mask = None
        if hide is not None:
            bias = torch.zeros(hide.shape, dtype=x.dtype).masked_fill_(hide, torch.finfo(x.dtype).min)
            mask = (hide.to(x.dtype) if defect == "added" else bias)[:, None]
        return join(functional.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class Folded(Attention):
    """baddbmm of heads folded into the batch, heads first, with an additive mask."""

    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        q, k, v = (
            torch.cat(torch.chunk(f(t), H, dim=2), dim=0)
            for f, t in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = torch.zeros(q.size(0), q.size(1), k.size(1), dtype=x.dtype)
        if hide is not None:
            hide = hide.expand(x.size(0), -1, -1).repeat(H, 1, 1)
            if defect != "late":
                scores = hide.to(x.dtype) * -30_000.0
        alpha = {"": E**-0.5, "missing": 1.0}[self.plan.scale]
        scores = torch.baddbmm(scores, q, k.transpose(1, 2), beta=1, alpha=alpha)
        weights = scores.softmax({"": 2, "heads": 0}[self.plan.axis])
        if hide is not None and defect == "late":
            weights = torch.where(hide, torch.zeros_like(weights), weights)
        return torch.cat(torch.chunk(torch.bmm(weights, v), H, dim=0), dim=2)


def attention_by_hand(q: Tensor, k: Tensor, v: Tensor, hide: Tensor | None, defect: str, plan: Plan) -> Tensor:
    """Compute attention as keys times queries, with in-place assignments and a softmax written out."""
    scores = torch.matmul(k, q.mT).mT
    scores.div_(math.sqrt(D if plan.scale == "width" else E))
    if hide is not None:
        hide = hide[:, None].expand_as(scores)
        if defect == "added":
            scores = scores - hide.float()
        else:
            scores[hide] = torch.finfo(scores.dtype).min
    axis = {"": -1, "queries": -2}[plan.axis]
    weights = (scores - scores.amax(axis, keepdim=True)).exp()
    return weights / weights.sum(axis, keepdim=True) @ v


class ByHand(Attention):
    def attend(self, x: Tensor, memory: Tensor, hide: Tensor | None, defect: str) -> Tensor:
        q, k, v = (split(f(t)) for f, t in ((self.q, x), (self.k, memory), (self.v, memory)))
        return join(attention_by_hand(q, k, v, hide, defect, self.plan).to(x.dtype))


class Layer(nn.Module):
    def __init__(self, attention: type[Attention], plan: Plan, *, cross: bool) -> None:
        super().__init__()
        self.self_attention = attention(plan)
        self.cross_attention = attention(plan) if cross else None
        self.feed_forward = nn.Sequential(nn.Linear(D, 29), nn.ReLU(), nn.Linear(29, D))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))

    def forward(
        self, x: Tensor, hide: Tensor | None, defect: str, memory: Tensor | None = None,
        padded: Tensor | None = None, padding: str = "",
    ) -> Tensor:  # fmt: skip
        y = self.norms[0](x)
        x = x + self.self_attention(y, y, hide, defect)
        if self.cross_attention is not None and memory is not None:
            x = x + self.cross_attention(self.norms[1](x), memory, padded, padding)
        return x + self.feed_forward(self.norms[2](x))


def sinusoids(length: int, kind: str) -> Tensor:
    """Return a table (length, D) of the paper's sinusoids in one of three orders, or a wrong one."""
    time, pairs = torch.arange(length)[:, None].double(), torch.arange(0, D, 2).double()
    exponents = {
        "exponent": 2 * pairs / D,
        "tensor2tensor": torch.arange(D // 2).double() / (D // 2 - 1),
        "sign": -pairs / D,
    }.get(kind, pairs / D)
    angles = time / 10_000**exponents
    if kind == "one frequency each":  # as in a well-known tutorial
        odd = time / 10_000 ** (2 * (pairs + 1) / D)
        return torch.stack([(time / 10_000 ** (2 * pairs / D)).sin(), odd.cos()], -1).flatten(1).float()
    if kind in ("halves", "tensor2tensor"):
        return torch.cat([angles.sin(), angles.cos()], -1).float()
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


class Host(nn.Module):
    """Encoder and decoder of one layer each, norm first, sinusoids, tied matrix."""

    def __init__(self, attention: type[Attention], plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.embedding = nn.Embedding(VOCABULARY, D)
        nn.init.normal_(self.embedding.weight, std=1.0 if plan.tied == "t5" else D**-0.5)
        self.register_buffer("table", sinusoids(600, plan.positions), persistent=False)
        self.encoder, self.decoder = Layer(attention, plan, cross=False), Layer(attention, plan, cross=True)
        self.norm = nn.LayerNorm(D)

    def embed(self, ids: Tensor) -> Tensor:
        scale = 1.0 if self.plan.tied == "t5" else math.sqrt(D)
        return self.embedding(ids) * scale + self.table[: ids.size(1)].to(self.embedding.weight.dtype)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padded, later = source == PAD, torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        x, y, plan = self.embed(source), self.embed(target), self.plan
        on_source = padded[:, None, :].expand(-1, source.size(1), -1)
        x = self.encoder(x, on_source, plan.padding)
        across = padded[:, None, :].expand(-1, target.size(1), -1)
        y = self.decoder(y, later[None], plan.look_ahead, x, across, plan.padding)
        y = self.norm(y) * {"": 1.0, "up": D**0.5, "down": D**-0.5, "t5": D**-0.5}[plan.tied]
        return functional.linear(y, self.embedding.weight)


STYLES: dict[str, type[Attention]] = {
    "einsum": Einsum,
    "heads": HeadModules,
    "torch": Torch,
    "fused": Fused,
    "folded": Folded,
    "by hand": ByHand,
}
