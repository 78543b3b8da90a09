"""A Transformer as tutorials write it, none of ours, into which the defects of the museum can be planted."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, BOS, EOS = 0, 1, 2
VOCABULARY = 23
MANY = 40_009  # for defect 4: Xavier draws the rows of a large matrix small
D, H = 16, 2
E = D // H
INSIDE = (3, 4, 7, 8, 9, 10, 16, 17, 18)  # defects of the model itself


class Attention(nn.Module):
    def __init__(self, defects: frozenset[int]) -> None:
        super().__init__()
        width = E if 8 in defects else D
        self.queries, self.keys, self.values = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(D, D)
        self.defects = defects

    def heads(self, project: nn.Linear, x: Tensor) -> Tensor:
        if 8 in self.defects:
            return project(x.reshape(*x.shape[:2], H, E))
        return project(x).reshape(*x.shape[:2], H, E)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.heads(self.queries, query), self.heads(self.keys, key), self.heads(self.values, value)
        energy = torch.einsum("bqhe,bkhe->bhqk", q, k) / math.sqrt(D if 7 in self.defects else E)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e-12 if 17 in self.defects else torch.finfo(energy.dtype).min)
        mixed = torch.einsum("bhqk,bkhe->bqhe", torch.softmax(energy, dim=-1), v)
        return self.out(mixed.reshape(*query.shape[:2], D))


class Sublayer(nn.Module):
    """The sum, the norm and the dropout around a sublayer."""

    def __init__(self, defects: frozenset[int]) -> None:
        super().__init__()
        self.norm, self.dropout, self.defects = nn.LayerNorm(D), nn.Dropout(0.1), defects

    def forward(self, x: Tensor, output: Tensor) -> Tensor:
        if 10 in self.defects:
            return self.dropout(self.norm(x + output))
        return self.norm(x + self.dropout(output))


def feed_forward() -> nn.Module:
    return nn.Sequential(nn.Linear(D, 29), nn.ReLU(), nn.Linear(29, D))


class Embedding(nn.Module):
    def __init__(self, size: int, defects: frozenset[int]) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size, D, padding_idx=PAD)
        self.places = nn.Embedding(50, D) if 16 in defects else None
        self.scale = math.sqrt(D)
        if 4 in defects:
            nn.init.xavier_uniform_(self.tokens.weight)
            self.scale = 1.0
        else:
            nn.init.normal_(self.tokens.weight, std=D**-0.5)
            nn.init.zeros_(self.tokens.weight[PAD])

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.size(1), device=ids.device)
        if self.places is not None:
            return self.tokens(ids) * self.scale + self.places(places)
        angles = places[:, None] / 10_000 ** (torch.arange(0, D, 2) / D)
        return self.tokens(ids) * self.scale + torch.cat([angles.sin(), angles.cos()], -1)


class Transformer(nn.Module):
    """One layer each; `defects` are numbers of the museum."""

    def __init__(self, *defects: int) -> None:
        super().__init__()
        self.defects = frozenset(defects)
        self.source_size = MANY if 4 in defects else VOCABULARY
        self.source_embedding = Embedding(self.source_size, self.defects)
        self.target_embedding = Embedding(VOCABULARY, self.defects - {4})
        self.encoder_attention, self.decoder_attention, self.cross_attention = (
            Attention(self.defects) for _ in range(3)
        )
        self.encoder_feed_forward, self.decoder_feed_forward = feed_forward(), feed_forward()
        self.around = nn.ModuleList(Sublayer(self.defects) for _ in range(5))
        self.output = nn.Linear(D, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask = None if 9 in self.defects else (source != PAD)[:, None, None, :]
        real = target != PAD
        target_mask = real[:, None, :, None] if 3 in self.defects else real[:, None, None, :]
        length = target.size(1)
        target_mask = target_mask & torch.ones(length, length, dtype=torch.bool).tril()

        x = self.source_embedding(source)
        x = self.around[0](x, self.encoder_attention(x, x, x, source_mask))
        memory = self.around[1](x, self.encoder_feed_forward(x))

        y = self.target_embedding(target)
        y = self.around[2](y, self.decoder_attention(y, y, y, target_mask))
        if 18 in self.defects:
            mask = (source != PAD)[:, :, None].expand(-1, -1, D).float()
            y = self.around[3](y, self.cross_attention(y, memory, mask))
        else:
            y = self.around[3](y, self.cross_attention(y, memory, memory, source_mask))
        y = self.around[4](y, self.decoder_feed_forward(y))
        return self.output(y)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.source_size, VOCABULARY


class TorchTransformer(nn.Module):
    """nn.Transformer between somebody's embeddings and output layer; `defects` are numbers of the museum."""

    def __init__(
        self, *defects: int, norm_first: bool = False, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__()
        self.defects = frozenset(defects)
        self.sizes = (MANY if 4 in defects else VOCABULARY, VOCABULARY)
        self.source_embedding = Embedding(self.sizes[0], self.defects)
        self.target_embedding = Embedding(VOCABULARY, self.defects - {4})
        self.transformer = nn.Transformer(D, H, 1, 1, 29, batch_first=batch_first, norm_first=norm_first, bias=bias)
        self.output = nn.Linear(D, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        length, padded = target.size(1), None if 9 in self.defects else source == PAD
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        if 17 in self.defects:
            later = torch.zeros(length, length).masked_fill(later, -1e-12)
        if 3 in self.defects:
            real = (target != PAD)[:, :, None].expand(-1, -1, length).repeat_interleave(H, 0)
            blind = ~real if later.dtype == torch.bool else torch.zeros(real.shape).masked_fill(~real, -1e-12)
            later = later | blind if later.dtype == torch.bool else torch.minimum(later, blind)
        target_padding = None if 3 in self.defects or 17 in self.defects else target == PAD
        hidden = self.transformer(
            self.source_embedding(source),
            self.target_embedding(target),
            tgt_mask=later,
            src_key_padding_mask=padded,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=padded,
        )
        return self.output(hidden)


def padded(rows: list[list[int]]) -> Tensor:
    """Rows of ids, padded at the end."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


class Course:
    """Somebody's batches, training step, decode function and score around a model."""

    def __init__(self, model: nn.Module, *defects: int, rate: float = 1e-2) -> None:
        self.model, self.defects = model, defects
        self.optimizer = torch.optim.Adam(model.parameters(), rate)

    def collate(self, sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
        start = [] if 1 in self.defects else [BOS]
        return padded([[*row, EOS] for row in sources]), padded([[*start, *row, EOS] for row in targets])

    def step(self, source: Tensor, target: Tensor) -> float:
        inputs, labels = (target, target) if 5 in self.defects else (target[:, :-1], target[:, 1:])
        logits = self.model(source, inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def greedy(self, source: Tensor) -> Tensor:
        target = torch.full((len(source), 1), PAD if 1 in self.defects else BOS)
        for _ in range(8):
            target = torch.cat([target, self.model(source, target)[:, -1:].argmax(-1)], 1)
        return target

    def score(self, source: Tensor, target: Tensor) -> float:
        fed = target[:, :-1] if 13 in self.defects else self.greedy(source)[:, : target.size(1) - 1]
        output = self.model(source, fed).argmax(-1)
        return float((output[:, : target.size(1) - 1] == target[:, 1 : output.size(1) + 1]).float().mean())
