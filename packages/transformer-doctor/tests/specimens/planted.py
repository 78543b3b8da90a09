"""A Transformer in the style of tutorials, independent of manyheads, into which defects can be planted.

A defect is the number of an exhibit of the museum or the name of a finding, with the variant after a slash where
there are several: "sees-the-future/inverted".
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from transformer_doctor.catalogue import CATALOGUE

PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3
VOCABULARY = 23
MANY = 40_009  # for defect 4: Xavier draws the rows of a large matrix small
D, H = 16, 2
E = D // H
Defects = frozenset[int | str]


def as_defects(defects: Iterable[int | str]) -> Defects:
    """Return defects with the names of exhibits replaced by their numbers."""
    numbers = {name: known.exhibit for name, known in CATALOGUE.items() if known.exhibit is not None}
    aliases = {"pad-row-overwritten", "unseeded-split", "silent-cut", "last-batch-loss", "errors-swallowed",
               "teacher-forced-score", "unusual-scale", "starts-otherwise"}  # fmt: skip
    return frozenset(defect if defect in aliases else numbers.get(str(defect), defect) for defect in defects)


def variant_of(defects: Defects, name: str) -> str | None:
    """Return the variant in which a defect is planted: "" if it has only one, None if it is not planted."""
    ways = [str(defect).partition("/") for defect in defects]
    return next((way for found, _, way in ways if found == name), None)


def look_ahead_mask(length: int, way: str | None) -> Tensor:
    """Return the keys (T, T) that a query may see, True where it may, in a variant of the look-ahead mask."""
    allowed = torch.ones(length, length, dtype=torch.bool)
    if way == "absent":
        return allowed
    if way == "wide":
        return allowed.tril(1)
    if way in ("inverted", "axis"):
        return allowed.triu()
    return allowed.tril()


class Attention(nn.Module):
    def __init__(self, defects: Defects) -> None:
        super().__init__()
        width = E if 8 in defects else D
        self.queries, self.keys, self.values = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(D, D)
        self.defects, self.ahead = defects, False

    def heads(self, project: nn.Linear, x: Tensor) -> Tensor:
        if 8 in self.defects:
            return project(x.reshape(*x.shape[:2], H, E))
        return project(x).reshape(*x.shape[:2], H, E)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.heads(self.queries, query), self.heads(self.keys, key), self.heads(self.values, value)
        energy = torch.einsum("bqhe,bkhe->bhqk", q, k) / self.divisor()
        way = variant_of(self.defects, "sees-the-future") if self.ahead else None
        if mask is None or way in ("late", "bool-added", "multiplied"):
            pass
        else:
            energy = energy.masked_fill(mask == 0, -1e-12 if 17 in self.defects else torch.finfo(energy.dtype).min)
        if mask is not None and way == "bool-added":
            energy = energy + mask
        if mask is not None and way == "multiplied":
            energy = energy * mask
        weights = torch.softmax(energy, dim=-2 if "softmax-axis" in self.defects else -1)
        if mask is not None and way == "late":
            weights = weights * mask
        mixed = torch.einsum("bhqk,bkhe->bqhe", weights, v)
        return self.out(mixed.reshape(*query.shape[:2], D))

    def divisor(self) -> float:
        """Return the number that scores are divided by."""
        way = variant_of(self.defects, "unusual-scale")
        usual = math.sqrt(D if 7 in self.defects else E)
        return {"missing": 1.0, "inverted": 1 / usual}.get(way or "", usual)


class Sublayer(nn.Module):
    """The sum, the norm and the dropout around a sublayer."""

    def __init__(self, defects: Defects) -> None:
        super().__init__()
        self.norm, self.dropout, self.defects = nn.LayerNorm(D), nn.Dropout(0.1), defects

    def forward(self, x: Tensor, output: Tensor) -> Tensor:
        if 10 in self.defects:
            return self.dropout(self.norm(x + output))
        return self.norm(x + self.dropout(output))


def feed_forward() -> nn.Module:
    return nn.Sequential(nn.Linear(D, 29), nn.ReLU(), nn.Linear(29, D))


class Embedding(nn.Module):
    def __init__(self, size: int, defects: Defects) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size, D, padding_idx=None if "padding-row-trained" in defects else PAD)
        self.defects, self.first = defects, 0  # number of the first position
        self.positions = nn.Embedding(50, D) if 16 in defects else None
        self.scale = math.sqrt(D)
        if 4 in defects:
            nn.init.xavier_uniform_(self.tokens.weight)
            self.scale = 1.0
        else:
            nn.init.normal_(self.tokens.weight, std=D**-0.5)
            if "pad-row-overwritten" not in defects:
                nn.init.zeros_(self.tokens.weight[PAD])

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.arange(self.first, self.first + ids.size(1), device=ids.device)
        if "no-positions" in self.defects:
            return self.tokens(ids) * self.scale
        if self.positions is not None:
            return self.tokens(ids) * self.scale + self.positions(positions)
        twice = 2 if "wrong-sinusoids" in self.defects else 1
        angles = positions[:, None] / 10_000 ** (twice * torch.arange(0, D, 2) / D)
        table = torch.cat([angles.sin(), angles.cos()], -1)
        return self.tokens(ids) * self.scale + table.to(self.tokens.weight.dtype)


class Transformer(nn.Module):
    """Encoder and decoder of one layer each."""

    def __init__(self, *defects: int | str) -> None:
        super().__init__()
        self.defects = as_defects(defects)
        defects = self.defects
        self.source_size = MANY if 4 in defects else VOCABULARY
        self.source_embedding = Embedding(self.source_size, self.defects)
        self.target_embedding = Embedding(VOCABULARY, self.defects - {4})
        self.encoder_attention, self.decoder_attention, self.cross_attention = (
            Attention(self.defects) for _ in range(3)
        )
        self.decoder_attention.ahead = True
        self.encoder_feed_forward, self.decoder_feed_forward = feed_forward(), feed_forward()
        self.sublayers = nn.ModuleList(Sublayer(self.defects) for _ in range(5))
        self.output = nn.Linear(D, VOCABULARY)
        start_large(self.output, self.defects)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        way = variant_of(self.defects, "no-source-padding-mask")
        real_source = (source != PAD)[:, None, None, :]
        unmasked = 9 in self.defects or way == "encoder" or "padding-row-trained" in self.defects
        source_mask = None if unmasked else real_source
        cross_mask = None if 9 in self.defects or way == "cross" else real_source
        real = target != PAD
        target_mask = real[:, None, :, None] if 3 in self.defects else real[:, None, None, :]
        length = target.size(1)
        target_mask = target_mask & look_ahead_mask(length, variant_of(self.defects, "sees-the-future"))

        x = self.source_embedding(read_source(source, self.defects))
        x = self.sublayers[0](x, self.encoder_attention(x, x, x, source_mask))
        memory = self.sublayers[1](x, self.encoder_feed_forward(x))
        memory = changed_memory(memory, self.defects)

        y = self.target_embedding(target)
        y = self.sublayers[2](y, self.decoder_attention(y, y, y, target_mask))
        if 18 in self.defects:
            mask = (source != PAD)[:, :, None].expand(-1, -1, D).float()
            y = self.sublayers[3](y, self.cross_attention(y, memory, mask))
        else:
            y = self.sublayers[3](y, self.cross_attention(y, memory, memory, cross_mask))
        y = self.sublayers[4](y, self.decoder_feed_forward(y))
        return scores(y, self.output, self.target_embedding.tokens.weight, self.defects)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.source_size, VOCABULARY


def start_large(output: nn.Linear, defects: Defects) -> None:
    """Initialize an output layer with large weights."""
    if "first-loss-too-high" in defects:
        nn.init.normal_(output.weight, std=5.0)


def changed_memory(memory: Tensor, defects: Defects) -> Tensor:
    """Return the memory (B, S, D) with its planted defects."""
    if "parameters-without-gradient" in defects:
        memory = memory.detach()
    if "depends-on-the-batch" in defects:
        memory = memory - memory.mean(0, keepdim=True)
    return memory


def read_source(source: Tensor, defects: Defects) -> Tensor:
    """Return the source ids with their planted defects."""
    return source.clamp(max=3) if "source-not-read" in defects else source


def scores(hidden: Tensor, output: nn.Linear, embedding: Tensor, defects: Defects) -> Tensor:
    """Return the scores of the next tokens from the last layer's output (B, T, D)."""
    if "random-in-evaluation" in defects:
        hidden = functional.dropout(hidden, 0.1)
    if "tied-logits-scaled" in defects:
        return functional.linear(hidden, embedding) * math.sqrt(hidden.size(-1))
    logits = output(hidden)
    return logits.softmax(-1) if "scores-are-probabilities" in defects else logits


class TorchTransformer(nn.Module):
    """nn.Transformer between embeddings and an output layer of its own."""

    def __init__(
        self, *defects: int | str, norm_first: bool = False, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__()
        self.defects = as_defects(defects)
        defects = self.defects
        batch_first = batch_first and "rows-mixed" not in self.defects
        self.sizes = (MANY if 4 in defects else VOCABULARY, VOCABULARY)
        self.source_embedding = Embedding(self.sizes[0], self.defects)
        self.target_embedding = Embedding(VOCABULARY, self.defects - {4})
        self.transformer = nn.Transformer(D, H, 1, 1, 29, batch_first=batch_first, norm_first=norm_first, bias=bias)
        self.output = nn.Linear(D, VOCABULARY)
        start_large(self.output, self.defects)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        if "rows-mixed" in self.defects:
            hidden = self.transformer(self.source_embedding(source), self.target_embedding(target))
            return self.output(hidden)
        unmasked = {9, "padding-row-trained"} & self.defects
        length, padded = target.size(1), None if unmasked else source == PAD
        way = variant_of(self.defects, "sees-the-future")
        lacking = variant_of(self.defects, "no-source-padding-mask")
        later = ~look_ahead_mask(length, way)
        if way == "bool-added":
            later = (~later).float()
        if 17 in self.defects:
            later = torch.zeros(length, length).masked_fill(later, -1e-12)
        if 3 in self.defects:
            real = (target != PAD)[:, :, None].expand(-1, -1, length).repeat_interleave(H, 0)
            blind = ~real if later.dtype == torch.bool else torch.zeros(real.shape).masked_fill(~real, -1e-12)
            later = later | blind if later.dtype == torch.bool else torch.minimum(later, blind)
        target_padding = None if 3 in self.defects or 17 in self.defects else target == PAD
        hidden = self.transformer(
            changed_memory(self.source_embedding(read_source(source, self.defects)), self.defects),
            self.target_embedding(target),
            tgt_mask=later,
            src_key_padding_mask=None if lacking == "encoder" else padded,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=None if lacking == "cross" else padded,
        )
        return scores(hidden, self.output, self.target_embedding.tokens.weight, self.defects)


def padded(rows: list[list[int]]) -> Tensor:
    """Return rows of ids as a tensor, padded at the end."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


class Trainer:
    """Batches, training step, greedy decoding and score of a model, with planted defects."""

    def __init__(self, model: nn.Module, *defects: int | str, rate: float = 1e-2) -> None:
        self.model, self.defects = model, as_defects(defects)
        parameters = list(model.parameters())
        if "parameters-not-updated" in self.defects:
            parameters = parameters[: len(parameters) // 2]
        rate = 30.0 if "not-learned" in self.defects else rate
        self.optimizer = torch.optim.Adam(parameters, rate)

    def collate(self, sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
        start = [] if 1 in self.defects else [BOS]
        end = [] if "end-never-trained" in self.defects else [EOS]
        return padded([[*row, EOS] for row in sources]), padded([[*start, *row, *end] for row in targets])

    def inputs_and_labels(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the decoder inputs and the labels."""
        if 5 in self.defects or variant_of(self.defects, "target-not-shifted") is not None:
            return target, target
        if "wrong-labels" in self.defects:
            return target[:, :-2], target[:, 2:]
        if "end-fed-to-decoder" in self.defects:
            following = torch.cat([target[:, 1:], torch.full_like(target[:, :1], PAD)], 1)
            return target, following.masked_fill(target == EOS, EOS)
        return target[:, :-1], target[:, 1:]

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        inputs, labels = self.inputs_and_labels(target)
        if "ignored-label" in self.defects:
            labels = labels.masked_fill(labels == UNKNOWN, PAD)
        logits, labels = self.logits(source, inputs).flatten(0, 1), labels.flatten()
        if "padding-in-loss" in self.defects:
            return functional.cross_entropy(logits, labels)
        if "padding-in-mean" in self.defects:
            return functional.cross_entropy(logits, labels, ignore_index=PAD, reduction="none").mean()
        return functional.cross_entropy(logits, labels, ignore_index=PAD)

    def logits(self, source: Tensor, inputs: Tensor) -> Tensor:
        return self.model(source, inputs)

    def step(self, source: Tensor, target: Tensor) -> float:
        self.model.train()
        if "gradients-accumulated" not in self.defects:
            self.optimizer.zero_grad()
        if "accumulation-not-divided" in self.defects:
            losses = [self.loss(source[part], target[part]) for part in (slice(0, 2), slice(2, None))]
            for loss in losses:
                loss.backward()
            self.optimizer.step()
            return sum(loss.item() for loss in losses) / 2
        loss = self.loss(source, target)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def greedy(self, source: Tensor) -> Tensor:
        if "evaluates-in-training-mode" not in self.defects:
            self.model.eval()
        start = EOS if "starts-otherwise" in self.defects else PAD if 1 in self.defects else BOS
        target = torch.full((len(source), 1), start)
        for _ in range(8):
            last = slice(0, 1) if "decodes-otherwise" in self.defects else slice(-1, None)
            target = torch.cat([target, self.logits(source, target)[:, last].argmax(-1)], 1)
        return target

    @torch.no_grad()
    def score(self, source: Tensor, target: Tensor) -> float:
        if "evaluates-in-training-mode" not in self.defects:
            self.model.eval()
        forced = 13 in self.defects or "teacher-forced-score" in self.defects
        fed = target[:, :-1] if forced else self.greedy(source)[:, : target.size(1) - 1]
        output = self.logits(source, fed).argmax(-1)
        return float((output[:, : target.size(1) - 1] == target[:, 1 : output.size(1) + 1]).float().mean())
