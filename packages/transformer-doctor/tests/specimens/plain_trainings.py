"""Small trainings in which one thing at a time is wrong, and sound ones that are easily mistaken for wrong.

A training is a function that returns the arguments of `examine`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from specimens import peers

PAD, BOS, EOS, V, D = 0, 1, 2, 31, 16
Rows = list[list[int]]
Arguments = dict[str, Any]


def fill(rows: Rows, left: bool = False, value: int = PAD) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[value] * (longest - len(row)) * left + row + [value] * (longest - len(row)) * (not left)
                         for row in rows])  # fmt: skip


class Translator(nn.Module):
    """torch's layers between embeddings with learned positions; masks and positions may be given."""

    def __init__(self, dropout: float = 0.1, tied: bool = False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(64, D)
        self.reader = nn.TransformerEncoderLayer(D, 2, 24, dropout, batch_first=True)
        self.writer = nn.TransformerDecoderLayer(D, 2, 24, dropout, batch_first=True)
        self.head = nn.Linear(D, V, bias=False)
        for part in (self.words, self.head, self.places):
            nn.init.normal_(part.weight, std=D**-0.5)
        with torch.no_grad():
            self.words.weight[PAD] = 0
        self.sources = self.words
        if tied:
            self.head.weight = self.words.weight

    def forward(self, src: Tensor, tgt: Tensor, causal: bool = True, positions: Tensor | None = None) -> Tensor:
        hidden, padded, length = self.sources(src), src == PAD, tgt.size(1)
        memory = self.reader(hidden + self.places(torch.arange(src.size(1))), src_key_padding_mask=padded)
        place = torch.arange(length) if positions is None else positions
        later = torch.full((length, length), -math.inf).triu(1) if causal else None
        hidden = self.writer(
            self.words(tgt) + self.places(place), memory, tgt_mask=later, memory_key_padding_mask=padded
        )
        return self.head(hidden)


class Writer(nn.Module):
    """A decoder-only language model; a mask of (B, T, T) may be given, True where a key is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(64, D)
        self.qkv, self.out, self.head = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Linear(D, V)
        self.drop, self.norm = nn.Dropout(0.1), nn.LayerNorm(D)
        nn.init.normal_(self.words.weight, std=0.1)

    def forward(self, ids: Tensor, seen: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        length = ids.size(1)
        x = self.words(ids) + self.places(torch.arange(length) if positions is None else positions)
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        mask = causal if seen is None else causal & seen[:, None]
        x = x + self.drop(
            self.out(functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2))
        )
        return self.head(x)


def nats(scores: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=PAD, **options)


def translation(defect: str = "") -> Arguments:
    """Return the arguments of a translator whose loop is written in one function."""
    model = Translator()
    rate = {"tiny rate": 1e-9, "bfloat16": 1e-5, "float16": 1e-3}.get(defect, 3e-3)
    if defect in ("bfloat16", "float16"):
        model.to(getattr(torch, defect))
    decay = 1.0 if defect == "weight decay of 1" else 0.01
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    calls = [0]

    def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
        if defect == "sources shifted":
            sources = sources[1:] + sources[:1]
        begin = [BOS, BOS] if defect == "two start symbols" else [BOS]
        return fill([[*row, EOS] for row in sources]), fill([[*begin, *row, EOS] for row in targets])

    def loss_of(src: Tensor, tgt: Tensor) -> Tensor:
        zeros = torch.zeros_like(tgt[:, :-1]) if defect == "positions zero" else None
        scores, labels = model(src, tgt[:, :-1], defect != "no causal mask", zeros).float(), tgt[:, 1:]
        if defect == "first rows only":
            scores, labels = scores[: len(labels) // 2], labels[: len(labels) // 2]
        if defect == "reshaped":
            return functional.cross_entropy(scores.reshape(len(labels), V, -1), labels, ignore_index=PAD)
        if defect == "raw scores":
            return functional.nll_loss(scores.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        return nats(scores, labels)

    def train_step(src: Tensor, tgt: Tensor) -> float:
        calls[0] += 1
        if defect != "evaluation mode kept":
            model.train(defect != "evaluation mode")
        if defect == "layer redrawn" and calls[0] % 5 == 0:
            nn.init.normal_(model.head.weight, std=0.2)
        rows = 2 if "two rows" in defect else len(src) // 2 if "micro" in defect else len(src)
        parts = [*zip(src.split(rows), tgt.split(rows), strict=True)]
        tokens = int((tgt[:, 1:] != PAD).sum())
        optimizer.zero_grad()
        total = 0.0
        for part in parts:
            if defect == "micro-batches cleared":
                optimizer.zero_grad()
            loss = loss_of(*part) / (len(part[0]) if defect == "micro-batches of two rows" else len(parts))
            if defect == "micro-batches of two rows, by tokens":
                loss = loss * len(parts) * (part[1][:, 1:] != PAD).sum() / tokens
            loss.backward()
            total += float(loss)
        if defect == "clipped to 1e-4":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-4)
        optimizer.step()
        if defect == "clipped after the step":
            clip_grad_norm_(model.parameters(), 1.0)
        if defect == "evaluation mode kept":
            model.eval()
        return total

    return {"model": model, "vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS, "collate": collate,
            "train_step": train_step, "longest": 32}  # fmt: skip


def writing(defect: str = "") -> Arguments:
    """Return the arguments of a language model, packed or padded at the left."""
    model = Writer()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def collate(sources: Rows, targets: Rows) -> tuple[Tensor]:
        marked = [[BOS, *row, EOS] for row in targets]
        if "packed" in defect:
            marked = [[*first, *second] for first, second in zip(marked[::2], marked[1::2], strict=True)]
        return (fill(marked, left="left" in defect),)

    def train_step(ids: Tensor) -> Tensor:
        model.train()
        rows = ids[:, :-1]
        labels = ids[:, 1:].masked_fill(rows == PAD, PAD)
        text = (rows == BOS).cumsum(1)
        seen = positions = None
        if "masked" in defect:
            seen = text[:, :, None] == text[:, None]
        if "left" in defect:
            seen = (rows != PAD)[:, None].expand(-1, rows.size(1), -1) | torch.eye(rows.size(1), dtype=torch.bool)
            counted = (rows != PAD).long().cumsum(1) - 1
            positions = counted.clamp(min=0) if "counted" in defect else None
        if defect == "last row only":
            loss = [nats(model(row[None]), label[None]) for row, label in zip(rows, labels, strict=True)][-1]
        else:
            loss = nats(model(rows, seen, positions), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return {"model": lambda ids: model(ids), "vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS,
            "kind": "decoder", "collate": collate, "train_step": train_step, "longest": 32}  # fmt: skip


def sound(style: str) -> Arguments:
    """Return the arguments of a sound training of a style; "combined" has all that one training may have."""
    given, combined = translation(), style == "combined"
    model: Translator = Translator(tied=combined)
    trained = (
        [*model.writer.parameters(), *model.head.parameters()] if style == "frozen base" else [*model.parameters()]
    )
    if style == "frozen base":
        model.requires_grad_(False)
        for parameter in trained:
            parameter.requires_grad_(True)
    if style == "frozen source":
        model.sources = copy.deepcopy(model.words).requires_grad_(False)
        model.reader.requires_grad_(False)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-3)
    if combined:
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 4000))
    scaler, average = torch.amp.GradScaler("cpu"), copy.deepcopy(model)

    def loss_of(src: Tensor, tgt: Tensor) -> Tensor:
        if style == "shuffled":
            order = torch.randperm(len(src))
            src, tgt = src[order], tgt[order]
        labels, fed = tgt[:, 1:], tgt[:, :-1]
        if style == "words dropped":
            fed = fed.masked_fill((torch.rand(fed.shape) < 0.15) & (fed > EOS), 3)
        if style == "own guesses":
            with torch.no_grad():
                guesses = torch.cat([fed[:, :1], model(src, fed).argmax(-1)[:, :-1]], 1)
            fed = torch.where((torch.rand(fed.shape) < 0.2) & (fed > EOS), guesses, fed)
        if style == "R-Drop":
            first, second = (model(src, tgt[:, :-1]).flatten(0, 1)[labels.flatten() != PAD] for _ in range(2))
            kept = labels.flatten()[labels.flatten() != PAD]
            apart = functional.kl_div(first.log_softmax(-1), second.log_softmax(-1), log_target=True,
                                      reduction="batchmean")  # fmt: skip
            return (functional.cross_entropy(first, kept) + functional.cross_entropy(second, kept)) / 2 + apart
        return nats(model(src, fed), labels, label_smoothing=0.1 * combined)

    def train_step(src: Tensor, tgt: Tensor) -> float:
        model.train()
        optimizer.zero_grad()
        if style == "accumulation":
            count, total = (tgt[:, 1:] != PAD).sum(), 0.0
            for rows, labels in zip(src.chunk(2), tgt.chunk(2), strict=True):
                part = nats(model(rows, labels[:, :-1]), labels[:, 1:], reduction="sum") / count
                part.backward()
                total += part.item()
            optimizer.step()
            return total
        with torch.autocast("cpu", torch.bfloat16, enabled=style == "autocast"):
            loss = loss_of(src, tgt)
        if combined:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            with torch.no_grad():
                for mean, value in zip(average.parameters(), model.parameters(), strict=True):
                    mean.lerp_(value, 0.01)
            return loss.item()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {**given, "model": model, "train_step": train_step}


def hugging_face(name: str) -> Arguments:
    """Return the arguments of a model of transformers whose step takes a batch as its collator makes it."""
    model = peers.make(name)
    update = peers.updating(model)
    return {"model": model, "train_step": lambda batch: update(**batch), "longest": 32}


PLANTED: dict[str, tuple[Callable[[], Arguments], str]] = {
    **{
        defect: (partial(translation, defect), name)
        for defect, name in {
            "no causal mask": "sees-the-future", "positions zero": "no-positions", "evaluation mode":
            "trained-in-evaluation-mode", "evaluation mode kept": "trained-in-evaluation-mode",
            "first rows only": "rows-left-out", "sources shifted": "sources-mixed-up",
            "reshaped": "wrong-labels", "raw scores": "loss-without-softmax", "tiny rate": "parameters-not-updated",
            "weight decay of 1": "weight-decay-too-high", "clipped to 1e-4": "clipped-wrongly",
            "clipped after the step": "clipped-wrongly", "micro-batches cleared": "gradients-lost",
            "micro-batches averaged": "micro-batches-averaged", "micro-batches of two rows":
            "accumulation-not-divided", "two start symbols": "starts-otherwise", "layer redrawn": "weights-redrawn",
            "bfloat16": "lost-in-half-precision", "float16": "lost-in-half-precision",
        }.items()
    },
    "packed": (partial(writing, "packed"), "packed-texts-mixed"),
    "last row only": (partial(writing, "last row only"), "rows-left-out"),
    "left padding": (partial(writing, "left"), "depends-on-left-padding"),
}  # fmt: skip
SOUND: dict[str, Callable[[], Arguments]] = {
    "plain": translation,
    "micro-batches of two rows, by tokens": partial(translation, "micro-batches of two rows, by tokens"),
    **{
        style: partial(sound, style)
        for style in (
            "combined", "frozen base", "R-Drop", "accumulation", "frozen source", "shuffled", "words dropped",
            "own guesses",
            "autocast",
        )
    },
    "packed, masked": partial(writing, "packed masked"),
    "left padding, counted": partial(writing, "left counted"),
    **{name: partial(hugging_face, name) for name in ("bart", "t5", "gpt2")},
}  # fmt: skip
