"""Loops over language models, to watch: each yields what `watch` takes, and then after each update."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from benchmarks.doctor_trial.kinds.training_models import (
    BOS,
    EOS,
    FIRST,
    PAD,
    TinyGPT,
    TinyLlama,
    V,
    chain,
    fill,
    seeded,
    texts,
)
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

Updates = Iterator[Any]


def cross_entropy(scores: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, -2), labels.flatten(), **{"ignore_index": PAD} | options)


def nanogpt() -> Updates:
    """Train as nanoGPT does: windows of one long text, micro-batches, clipping, a rate by cosine."""
    torch.manual_seed(10)
    model, accumulation, block, longest = TinyGPT(), 3, 16, 200
    data = chain(5, 1, 4000)[0]
    decay = [weight for weight in model.parameters() if weight.dim() >= 2]
    others = [weight for weight in model.parameters() if weight.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))

    def get_batch() -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(data) - block - 1, (6,)).tolist()
        x = torch.stack([data[i : i + block] for i in starts])
        y = torch.stack([data[i + 1 : i + 1 + block] for i in starts])
        return x, y

    def get_lr(step: int) -> float:
        if step < 8:
            return 3e-3 * (step + 1) / 8
        return 3e-4 + 0.5 * (1.0 + math.cos(math.pi * step / longest)) * 2.7e-3

    yield model, optimizer, {}
    model.train()
    for step in range(longest):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(step)
        for _ in range(accumulation):
            x, y = get_batch()
            _, loss = model(x, y)
            assert loss is not None
            loss = loss / accumulation
            loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


def plain() -> Updates:
    """Train on padded texts, with a validation every fifth update."""
    torch.manual_seed(11)
    model = TinyGPT(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def loss_of(ids: Tensor) -> Tensor:
        scores, _ = model(ids[:, :-1])
        return cross_entropy(scores, ids[:, 1:])

    @torch.no_grad()
    def evaluate() -> float:
        model.eval()
        loss = sum(loss_of(texts(900_000 + number)).item() for number in range(2)) / 2
        model.train()
        return loss

    yield model, optimizer, {"pad": PAD}
    model.train()
    for step in range(10_000):
        if step % 5 == 0:
            evaluate()
        loss = loss_of(texts(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def hub() -> Updates:
    """Fine-tune a model that shifts labels by itself, with padding of -100, as a notebook does."""
    torch.manual_seed(12)
    model = TinyLlama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 8)
    yield model, optimizer, {}
    for step in range(10_000):
        input_ids = texts(step)
        attention_mask = (input_ids != PAD).long()
        labels = input_ids.masked_fill(attention_mask == 0, -100)
        outputs = model(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        outputs.loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        yield


def instructions() -> Updates:
    """Fine-tune on answers alone: the prompt is read, and has no labels."""
    torch.manual_seed(13)
    model = TinyLlama(tied=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95))
    yield model, optimizer, {}
    for step in range(10_000):
        prompts = [[BOS, *row[: 3 + step % 3]] for row in chain(step, 6, 6).tolist()]
        answers = [[*[(word + 9 - FIRST) % (V - FIRST) + FIRST for word in row[1:4]], EOS] for row in prompts]
        tokens = fill([prompt + answer for prompt, answer in zip(prompts, answers, strict=True)])
        input_ids, label_ids = tokens[:, :-1], tokens[:, 1:].clone()
        prompt_len = len(prompts[0])
        label_ids[:, : prompt_len - 1] = -100
        label_ids[label_ids == PAD] = -100
        logits = model(input_ids).logits
        loss = cross_entropy(logits, label_ids, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def two_heads() -> Updates:
    """Predict the next token and the one after it, each with a head of its own."""
    torch.manual_seed(14)
    model = TinyGPT(layers=1)
    model.second = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, V))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        hidden = model.hidden(ids[:, :-1])
        first = cross_entropy(model.lm_head(hidden * model.scale), ids[:, 1:])
        second = cross_entropy(model.second(hidden[:, :-1]), ids[:, 2:])
        loss = first + 0.3 * second
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def chunked() -> Updates:
    """Compute scores and loss in chunks of positions, and divide their sum by the number of all labels."""
    torch.manual_seed(15)
    model = TinyGPT(layers=1, dropout=0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, nesterov=True)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step, count=6)
        hidden, labels = model.hidden(ids[:, :-1]) * model.scale, ids[:, 1:]
        total = torch.zeros(())
        for part, wanted in zip(hidden.split(4, dim=1), labels.split(4, dim=1), strict=True):
            total = total + cross_entropy(model.lm_head(part), wanted, reduction="sum")
        loss = total / (labels != PAD).sum()
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield


def averaged() -> Updates:
    """Keep a moving average of the weights, and evaluate with it every fourth update."""
    torch.manual_seed(16)
    model = TinyGPT(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    average = {name: value.detach().clone() for name, value in model.state_dict().items()}
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        scores, _ = model(ids[:, :-1])
        loss = cross_entropy(scores, ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for name, value in model.state_dict().items():
                average[name].lerp_(value, 0.05)
        if step % 4 == 3:
            kept = {name: value.clone() for name, value in model.state_dict().items()}
            model.load_state_dict(average)
            model.eval()
            with torch.no_grad():
                model(texts(900_000)[:, :-1])
            model.train()
            model.load_state_dict(kept)
        yield


def micro_batches() -> Updates:
    """Accumulate sums over micro-batches of different lengths, divided by the tokens of all of them."""
    torch.manual_seed(17)
    model, parts = TinyGPT(layers=1), 4
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        batches = [texts(step * parts + number, 4, longest=5 + 4 * number) for number in range(parts)]
        tokens = sum(int((ids[:, 1:] != PAD).sum()) for ids in batches)
        optimizer.zero_grad()
        for ids in batches:
            scores, _ = model(ids[:, :-1])
            loss = cross_entropy(scores, ids[:, 1:], reduction="sum") / tokens
            loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        yield


class LowRank(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base
        self.lora_a = nn.Linear(base.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2.0 * self.lora_b(self.lora_a(x))


def adapters() -> Updates:
    """Train adapters of low rank at the projections of a frozen model; their file alone is kept."""
    torch.manual_seed(18)
    model = TinyLlama()
    for layer in model.layers:
        for name in ("q_proj", "v_proj", "up_proj"):
            setattr(layer, name, LowRank(getattr(layer, name)))
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-2)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        loss = cross_entropy(model(ids[:, :-1]).logits, ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def prompt_tuning() -> Updates:
    """Train five vectors before the text of a frozen model."""
    torch.manual_seed(19)
    model = TinyLlama().requires_grad_(False)
    model.prompt = nn.Parameter(torch.randn(5, 32))
    optimizer = torch.optim.Adam([model.prompt], lr=0.05)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        embedded = torch.cat([model.prompt.expand(len(ids), -1, -1), model.embed_tokens(ids[:, :-1])], 1)
        logits = model(ids, inputs_embeds=embedded).logits[:, 5:]
        loss = cross_entropy(logits, ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


class Distiller(nn.Module):
    def __init__(self, student: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.student = student
        self.teacher = teacher.requires_grad_(False).eval()

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        scores = self.student(ids)[0]
        with torch.no_grad():
            guide = self.teacher(ids)[0]
        real = labels != PAD
        soft = functional.kl_div(
            (scores[real] / 2).log_softmax(-1), (guide[real] / 2).softmax(-1), reduction="batchmean"
        )
        return 0.5 * cross_entropy(scores, labels) + 0.5 * 4 * soft


def distillation() -> Updates:
    """Train a small student on the labels and the scores of a larger teacher."""
    torch.manual_seed(20)
    student, teacher = TinyGPT(layers=1), TinyGPT(layers=2)
    warm_up = torch.optim.AdamW(teacher.parameters(), 3e-3)
    for number in range(30):
        ids = texts(500_000 + number)
        cross_entropy(teacher(ids[:, :-1])[0], ids[:, 1:]).backward()
        warm_up.step()
        warm_up.zero_grad()
    distiller = Distiller(student, teacher)
    optimizer = torch.optim.AdamW(distiller.student.parameters(), lr=3e-3)
    yield student, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        loss = distiller(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def frozen_later() -> Updates:
    """Freeze the embedding after six updates, and train the layers alone."""
    torch.manual_seed(21)
    model = TinyLlama(tied=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        if step == 6:
            model.embed_tokens.requires_grad_(False)
            model.embed_tokens.weight.grad = None
        ids = texts(step)
        loss = cross_entropy(model(ids[:, :-1]).logits, ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def unfreezing() -> Updates:
    """Train the last layer first; every four updates one layer more is unfrozen."""
    torch.manual_seed(22)
    model = TinyLlama(layers=3, tied=False)
    parts = [model.lm_head, model.norm, *reversed(model.layers), model.embed_tokens]
    model.requires_grad_(False)
    optimizer = torch.optim.AdamW(
        [{"params": part.parameters(), "lr": 3e-3 * 0.8**i} for i, part in enumerate(parts)]
    )
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        for part in parts[: 2 + step // 4]:
            part.requires_grad_(True)
        ids = texts(step)
        loss = cross_entropy(model(ids[:, :-1]).logits, ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def loader() -> Updates:
    """Train several epochs over a small set in orders of their own, with a DataLoader and its collate."""
    torch.manual_seed(23)
    model = TinyGPT(layers=1, dropout=0.3)
    optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
    rows = [row[row != PAD].tolist() for row in texts(7, 48)]
    train = DataLoader(rows, batch_size=8, shuffle=True, collate_fn=fill)  # type: ignore[arg-type]

    @torch.no_grad()
    def evaluate() -> float:
        model.eval()
        ids = texts(900_000)
        loss = cross_entropy(model(ids[:, :-1])[0], ids[:, 1:]).item()
        model.train()
        return loss

    yield model, optimizer, {"pad": PAD}
    model.train()
    for _epoch in range(1000):
        evaluate()
        for ids in train:
            loss = cross_entropy(model(ids[:, :-1])[0], ids[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


class Sampler(torch.utils.data.Sampler[int]):
    """The share of one process in an order that its epoch draws, as in a distributed training."""

    def __init__(self, size: int) -> None:
        self.size, self.epoch = size, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(self.size, generator=seeded(self.epoch))[::2].tolist())

    def __len__(self) -> int:
        return self.size // 2


def one_process_of_two() -> Updates:
    """Train one process's half of the rows, another half in each epoch."""
    torch.manual_seed(24)
    model = TinyLlama(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rows = [row[row != PAD].tolist() for row in texts(8, 64)]
    sampler = Sampler(len(rows))
    train = DataLoader(rows, batch_size=8, sampler=sampler, collate_fn=fill)  # type: ignore[arg-type]
    yield model, optimizer, {"pad": PAD}
    for epoch in range(1000):
        sampler.set_epoch(epoch)
        for ids in train:
            loss = cross_entropy(model(ids[:, :-1]).logits, ids[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


def half_precision() -> Updates:
    """Train in bfloat16, with weights in float32 beside it that the optimizer moves."""
    torch.manual_seed(25)
    model = TinyLlama(layers=1)
    masters = copy.deepcopy([*model.parameters()])
    model.bfloat16()
    optimizer = torch.optim.AdamW(masters, lr=2e-4, weight_decay=0.0)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        loss = cross_entropy(model(ids[:, :-1]).logits.float(), ids[:, 1:])
        model.zero_grad()
        loss.backward()
        for master, weight in zip(masters, model.parameters(), strict=True):
            master.grad = weight.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, weight in zip(masters, model.parameters(), strict=True):
                weight.copy_(master)
        yield


def experts() -> Updates:
    """Train a mixture of experts with the loss that balances them."""
    torch.manual_seed(26)
    model = TinyGPT(layers=1)
    model.experts = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)) for _ in range(4))
    model.router = nn.Linear(32, 4, bias=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        hidden = model.hidden(ids[:, :-1])
        gates = model.router(hidden).softmax(-1)
        best, chosen = gates.max(-1)
        mixed = torch.zeros_like(hidden)
        for number, expert in enumerate(model.experts):
            where = chosen == number
            mixed[where] = expert(hidden[where]) * best[where][:, None]
        balance = 4 * (gates.mean((0, 1)) * functional.one_hot(chosen, 4).float().mean((0, 1))).sum()
        scores = model.lm_head((hidden + mixed) * model.scale)
        loss = cross_entropy(scores, ids[:, 1:]) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def packed() -> Updates:
    """Train on rows of two texts, of which each is read by itself, and no label crosses from one to the other."""
    torch.manual_seed(27)
    model = TinyLlama(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        one, two = (texts(2 * step + number, longest=8).tolist() for number in range(2))
        ids = fill([[i for i in first + second if i != PAD] for first, second in zip(one, two, strict=True)])
        number = (ids == BOS).cumsum(1)
        seen = (number[:, :, None] == number[:, None])[:, None]
        hidden = model.decode(model.embed_tokens(ids), seen)
        labels = ids[:, 1:].masked_fill(ids[:, 1:] == BOS, PAD)
        loss = cross_entropy(model.lm_head(hidden[:, :-1]) * model.logit_scale, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield
