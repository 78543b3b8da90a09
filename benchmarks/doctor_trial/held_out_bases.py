"""Bases of held-out cases that the doctor's specimens lack: functions around a model, segments, checkpoints."""

from __future__ import annotations

import copy
import random
import tempfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from benchmarks.doctor_trial.host_models import Small
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers, plain_trainings
from specimens.plain_trainings import D, fill
from specimens.planted import BOS, EOS, PAD, VOCABULARY
from specimens.rotary import Rotary
from specimens.watched_trainings import Writer, nats, rows
from transformer_doctor.loading import ModelOptions, examine_model
from transformer_doctor.progress import SilentListener
from transformer_doctor.small_models import make

PAIRS = [tuple("".join(random.Random(2 * i + j).choices("abcdefgh", k=9)) for j in range(2)) for i in range(200)]


def bleu(hypotheses: list[str], references: list[str]) -> float:
    import sacrebleu

    return sacrebleu.corpus_bleu([*hypotheses], [[*references]]).score


def schedule() -> Any:
    optimizer = torch.optim.Adam([nn.Parameter(torch.zeros(()))])
    return optimizer, torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, (50 / (step + 1)) ** 0.5)
    )


def split() -> Any:
    test = [pair for pair in PAIRS if zlib.crc32(pair[0].encode()) % 10 == 0]
    return [pair for pair in PAIRS if pair not in test], test


def collate(sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
    return fill([[*row, EOS] for row in sources]), fill([[BOS, *row, EOS] for row in targets])


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
    scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v, scores.softmax(-1)


class Packed(Writer):
    """A language model of several texts in a row, told apart by their segments."""

    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:  # type: ignore[override]
        length = ids.size(1)
        seen = torch.ones(length, length, dtype=torch.bool).tril().expand(len(ids), -1, -1)
        if segment_ids is not None:
            seen = seen & (segment_ids[:, :, None] == segment_ids[:, None])
        hidden = self.words(ids) + self.places(torch.arange(length))
        for layer in self.layers:
            hidden = layer(hidden, src_mask=~seen.repeat_interleave(2, 0))
        return self.head(hidden)


class Windowed(Rotary):
    """Its configuration names the layers that see a window of four keys."""

    def __init__(self) -> None:
        super().__init__("halves")
        kinds = ("full_attention", "sliding_attention")
        self.config = SimpleNamespace(vocab_size=VOCABULARY, sliding_window=4, layer_types=kinds)

    def forward(self, ids: Tensor) -> Tensor:
        x, near = self.tokens(ids), torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()
        for number, (project, norm) in enumerate(zip(self.project, self.norms, strict=True)):
            q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in project(norm(x)).chunk(3, -1))
            q, k, v = self.placed(q, k, v)
            mask = near & near.T.tril(3).T if number == 1 else near
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + mixed.transpose(1, 2).flatten(2)
        return self.out(x)


def fused() -> nn.Module:
    """Return a model into which a checkpoint with separate projections was loaded."""
    state, model = Small().state_dict(), Small()
    for name in [name for name in state if "qkv" in name]:
        parts = state.pop(name).chunk(3)
        state[name] = torch.cat(parts)
    model.load_state_dict(state, strict=False)
    return model


class LowRank(nn.Module):
    """A frozen projection with a trained one of rank 2 beside it."""

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__()
        self.plain = plain.requires_grad_(False)
        self.down, self.up = (
            nn.Linear(plain.in_features, 2, bias=False),
            nn.Linear(2, plain.out_features, bias=False),
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.plain(x) + self.up(self.down(x))


class Projections(nn.Module):
    """Projections to queries, keys and values with adapters, and the fused matrix of their frozen parts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(LowRank(nn.Linear(width, width)) for _ in range(3))
        self.fused = nn.Linear(width, 3 * width).requires_grad_(False)
        state = [part.plain.state_dict() for part in self.parts]
        self.fused.load_state_dict({name: torch.cat([part[name] for part in state]) for name in state[0]})

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([part(x) for part in self.parts], -1)


def adapted() -> dict[str, Any]:
    """Return the arguments of a frozen language model whose attention is trained by adapters."""
    arguments = plain_trainings.writing()
    model = plain_trainings.Writer().requires_grad_(False)
    model.qkv, model.out = Projections(D), LowRank(model.out)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], 1e-2)

    def train_step(ids: Tensor) -> Tensor:
        loss = nats(model(ids[:, :-1]), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return {**arguments, "model": model, "train_step": train_step}


class Pruned(Rotary):
    """Attention with a learned bias by distance (as in T5), of which one head was pruned."""

    def __init__(self) -> None:
        super().__init__("halves")
        self.kept, self.bias = torch.tensor([0, 2]), nn.Embedding(64, 3)

    def forward(self, ids: Tensor) -> Tensor:
        x, time = self.tokens(ids), torch.arange(ids.size(1))
        bias = self.bias((time[:, None] - time).clamp(0, 63)).movedim(-1, 0)[self.kept]
        bias = bias.masked_fill(time[:, None] < time, -torch.inf)
        for project, norm in zip(self.project, self.norms, strict=True):
            q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in project(norm(x)).chunk(3, -1))
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q))
            x = x + mixed.transpose(1, 2).flatten(2)
        return self.out(x)


def examined_file() -> Any:
    """Examine the model of a file, as the command does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fused_model.py")
        file.write_text(f"import sys\n\nmake = sys.modules[{__name__!r}].fused\n")
        return examine_model(f"{file}:make", ModelOptions(pad=PAD, kind="decoder"), None, SilentListener()).report


class Saved:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model, self.position = Writer(), 0
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)

    def step(self) -> float:
        ids = rows(self.position)
        self.position += 1
        loss = nats(self.model(ids[:, :-1]), ids[:, 1:])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def state_dict(self) -> dict[str, Any]:
        state = {name: getattr(self, name).state_dict() for name in ("model", "optimizer")}
        return copy.deepcopy({**state, "position": self.position, "random": torch.get_rng_state()})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.position = state["position"]
        torch.set_rng_state(state["random"])


def library(name: str) -> dict[str, Any]:
    """Return the arguments of a model of transformers with a step that takes the batch of its collator."""
    model = make(name)
    update = peers.updating(model)
    return {"model": model, "train_step": lambda batch: update(**batch), "longest": 32}
