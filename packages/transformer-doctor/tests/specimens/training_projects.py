"""Training code in styles of public projects, with planted defects: a translator, a language model, a classifier.

Each project returns its arguments of `examine`. A defect has the name of its finding, and is planted in the project
that test_updates.py names; the empty name plants none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers
from specimens.planted import BOS, EOS, PAD, D
from specimens.planted import VOCABULARY as V
from specimens.planted import padded as pad_rows
from specimens.unusual_models import NanoGPT

Rows = list[list[int]]


def positions(length: int) -> Tensor:
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, D, 2) / D)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Seq2Seq(nn.Module):
    """nn.Transformer between embeddings and a generator that is called separately."""

    def __init__(self, defect: str) -> None:
        super().__init__()
        self.defect = defect
        self.source_embedding, self.target_embedding = nn.Embedding(V, D), nn.Embedding(V, D)
        self.transformer = nn.Transformer(D, 2, 1, 1, 31, batch_first=True)
        self.generator = nn.Linear(D, V, bias=False)
        nn.init.normal_(self.source_embedding.weight, std=D**-0.5)
        nn.init.normal_(self.target_embedding.weight, std=D**-0.5)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        return table(ids) * math.sqrt(D) + positions(ids.size(1)).to(table.weight)

    def encode(self, source: Tensor, padded: Tensor) -> Tensor:
        memory = self.transformer.encoder(self.embed(self.source_embedding, source), src_key_padding_mask=padded)
        return memory.detach() if self.defect == "parameters-without-gradient" else memory

    def hidden(self, source: Tensor, target: Tensor) -> Tensor:
        padded, length = source == PAD, target.size(1)
        return self.transformer.decoder(
            self.embed(self.target_embedding, target),
            self.encode(source, padded),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            memory_key_padding_mask=padded,
        )


class LabelSmoothing(nn.Module):
    """KLDivLoss against smoothed labels, as in The Annotated Transformer."""

    def __init__(self, smoothing: float, defect: str) -> None:
        super().__init__()
        self.smoothing, self.defect = smoothing, defect

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        wanted = torch.full_like(x, self.smoothing / (V - 2))
        wanted.scatter_(1, labels[:, None], 1 - self.smoothing)
        wanted[:, PAD] = 0
        if self.defect == "padding-in-loss":
            wanted[labels == PAD, PAD] = 1.0
        elif self.defect != "padding-in-mean":
            wanted[labels == PAD] = 0
        if self.defect == "ignored-label":
            wanted[labels == 5] = 0
        return functional.kl_div(x, wanted, reduction="sum")


class Annotated:
    """A separate generator, a criterion with label smoothing, and a loss divided by the number of tokens."""

    def __init__(self, defect: str) -> None:
        self.defect = defect
        self.model = Seq2Seq(defect)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3, betas=(0.9, 0.98), eps=1e-9)
        rate = torch.optim.lr_scheduler.LambdaLR
        self.scheduler = rate(self.optimizer, lambda step: D**-0.5 * min(max(step, 1) ** -0.5, step * 20**-1.5))
        self.criterion = LabelSmoothing(0.1, defect)

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model.generator(self.model.hidden(source, target))

    def loss_compute(self, hidden: Tensor, labels: Tensor, norm: int) -> Tensor:
        x = functional.log_softmax(self.model.generator(hidden), dim=-1)
        return self.criterion(x.reshape(-1, V), labels.reshape(-1)) / norm

    def train_step(self, source: Tensor, target: Tensor) -> Tensor:
        inputs, labels = target[:, :-1], target[:, 1:]
        if self.defect == "end-fed-to-decoder":
            inputs, labels = target, target.roll(-1, 1)
        loss = self.loss_compute(self.model.hidden(source, inputs), labels, int((labels != PAD).sum()))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.scheduler.step()
        return loss.detach()

    def arguments(self) -> dict[str, Any]:
        return {
            "model": self.scores, "vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS,
            "train_step": self.train_step, "longest": 32,
        }  # fmt: skip


class GPT(NanoGPT):
    """A language model with tied embeddings that computes its loss in forward, as nanoGPT does."""

    def __init__(self, defect: str) -> None:
        super().__init__("tied")
        self.ignored = EOS if defect == "end-never-trained" else -1

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:  # type: ignore[override]
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = functional.cross_entropy(logits.view(-1, V), targets.reshape(-1), ignore_index=self.ignored)
        return logits, loss


class MicroBatches:
    """Gradient accumulation over micro-batches of a language model; rows of one length, without padding."""

    def __init__(self, defect: str) -> None:
        self.defect = defect
        self.model = GPT(defect)
        trained = self.model.blocks if defect == "parameters-not-updated" else self.model
        self.optimizer = torch.optim.AdamW(trained.parameters(), 1e-3)

    def collate(self, sources: Rows, targets: Rows) -> tuple[Tensor]:
        return (pad_rows([[*row, EOS] for row in targets]),)

    def train_step(self, rows: Tensor) -> float:
        total = 0.0
        parts = rows.chunk(2)
        for part in parts:
            targets = part[:, 1:].masked_fill(part[:, 1:] == PAD, self.model.ignored)
            _, loss = self.model(part[:, :-1], targets)
            if self.defect != "accumulation-not-divided":
                loss = loss / len(parts)
            loss.backward()
            total += loss.item()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def arguments(self) -> dict[str, Any]:
        return {
            "model": lambda ids: self.model(ids)[0], "vocab_size": V, "pad": PAD, "eos": EOS, "kind": "decoder",
            "collate": self.collate, "train_step": self.train_step, "longest": 32,
        }  # fmt: skip


class Classifier(nn.Module):
    """An encoder whose first token is classified, as in BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        layer = nn.TransformerEncoderLayer(D, 2, 31, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(D, 3)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.embedding(ids) + positions(ids.size(1)).to(self.embedding.weight)
        x = self.encoder(x, src_key_padding_mask=ids == PAD if mask is None else mask)[:, 0]
        return self.head(x)


class Bert:
    """Fine-tuning of a classifier, with a scheduler and a batch that is a mapping."""

    def __init__(self, defect: str) -> None:
        self.defect = defect
        self.model = Classifier()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.count = 0

    def collate(self, sources: Rows, targets: Rows) -> tuple[dict[str, Tensor]]:
        labels = torch.tensor([row[0] for row in targets])
        return (
            {"input_ids": pad_rows(sources), "labels": labels.roll(1) if self.defect == "wrong-labels" else labels},
        )

    def train_step(self, batch: dict[str, Tensor]) -> Tensor:
        ids = batch["input_ids"]
        mask = torch.zeros_like(ids, dtype=torch.bool) if self.defect == "padding-row-trained" else None
        loss = functional.cross_entropy(self.model(ids, mask), batch["labels"])
        (loss / 2).backward()
        self.count += 1
        if self.count % 2 == 0:
            self.optimizer.step()
            if self.defect != "gradients-accumulated":
                self.optimizer.zero_grad()
        return loss.detach()

    def arguments(self) -> dict[str, Any]:
        return {
            "model": self.model, "vocab_size": V, "pad": PAD, "kind": "encoder", "collate": self.collate,
            "train_step": self.train_step, "longest": 32,
        }  # fmt: skip


class HuggingFace:
    """BART with labels of -100, which it shifts by itself."""

    def __init__(self, defect: str) -> None:
        self.defect = defect
        self.model = peers.make("bart")
        if defect == "first-loss-too-high":
            nn.init.normal_(self.model.model.shared.weight, std=3.0)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 3e-3)

    def collate(self, sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
        return pad_rows([[*row, EOS] for row in sources]), pad_rows([[BOS, *row, EOS] for row in targets])

    def train_step(self, source: Tensor, target: Tensor) -> Tensor:
        self.model.train()
        labels = target.masked_fill(target == PAD, -100)
        mask = torch.ones_like(source) if self.defect == "no-source-padding-mask" else (source != PAD).long()
        loss = self.model(input_ids=source, attention_mask=mask, labels=labels).loss
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def arguments(self) -> dict[str, Any]:
        return {"model": self.model, "collate": self.collate, "train_step": self.train_step, "longest": 32}


PROJECTS: dict[str, Callable[[str], Any]] = {
    "annotated": Annotated,
    "nanogpt": MicroBatches,
    "bert": Bert,
    "huggingface": HuggingFace,
}
