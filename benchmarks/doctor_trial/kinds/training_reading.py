"""Loops over translators, classifiers and taggers, to watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from benchmarks.doctor_trial.kinds.training_models import (
    BOS,
    EOS,
    FIRST,
    PAD,
    EncoderDecoder,
    Reader,
    TorchTranslator,
    V,
    chain,
    fill,
    pairs,
    seeded,
    texts,
)
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

Updates = Iterator[Any]


def cross_entropy(scores: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, -2), labels.flatten(), **{"ignore_index": PAD} | options)


def shift_tokens_right(labels: Tensor) -> Tensor:
    shifted = labels.new_full(labels.shape, BOS)
    shifted[:, 1:] = labels[:, :-1]
    return shifted


def translating() -> Updates:
    """Train a translator with teacher forcing, and clip its gradients."""
    torch.manual_seed(40)
    model = EncoderDecoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        source, target = pairs(step)
        labels = target[:, 1:]
        logits = model(source, shift_tokens_right(labels))
        loss = cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield


def back_translation() -> Updates:
    """Train on real pairs and on sources that were made by a noisy inverse, weighted down."""
    torch.manual_seed(41)
    model = TorchTranslator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=300)
    yield model, optimizer, {"pad": PAD}
    for step in range(300):
        source, target = pairs(step)
        noisy, written = pairs(step + 50_000)
        swap = (torch.rand(noisy.shape) < 0.15) & (noisy >= FIRST)
        noisy = torch.where(swap, torch.randint(FIRST, V, noisy.shape), noisy)
        loss = cross_entropy(model(source, target[:, :-1]), target[:, 1:])
        loss = loss + 0.5 * cross_entropy(model(noisy, written[:, :-1]), written[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield


def detached_encoder() -> Updates:
    """Train a decoder on a frozen encoder, with the encoder's memory made without gradients."""
    torch.manual_seed(42)
    model = EncoderDecoder()
    model.encoder.requires_grad_(False)
    model.encoder_norm.requires_grad_(False)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        source, target = pairs(step)
        with torch.no_grad():
            memory = model.encode(source)
        scores = model.generator(model.decode(memory, source, target[:, :-1]))
        loss = cross_entropy(scores, target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def labelled(number: int, count: int) -> tuple[Tensor, Tensor]:
    """Return texts, and the class of each: its first word's remainder by three."""
    ids = texts(number, count)
    return ids, (ids[:, 1] - FIRST) % 3


def classifying() -> Updates:
    """Train a classifier over several epochs of a small set."""
    torch.manual_seed(43)
    model = Reader(classes=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    ids, labels = labelled(9, 64)
    yield model, optimizer, {"pad": PAD}
    for epoch in range(1000):
        order = torch.randperm(len(ids), generator=seeded(epoch))
        for chosen in order.split(8):
            logits = model(ids[chosen])
            loss = functional.cross_entropy(logits, labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


def iterating() -> Updates:
    """Train a classifier with an endless iterator over a loader."""
    torch.manual_seed(44)
    model = Reader(classes=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    rows = [*zip(*labelled(10, 80), strict=True)]
    train_loader = DataLoader(rows, batch_size=8, shuffle=False)  # type: ignore[arg-type]
    train_iter = iter(train_loader)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        if step % len(train_loader) == 0:
            rows = [rows[i] for i in torch.randperm(len(rows)).tolist()]
            train_loader = DataLoader(rows, batch_size=8, shuffle=False)  # type: ignore[arg-type]
            train_iter = iter(train_loader)
        ids, labels = next(train_iter)
        loss = functional.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def tagging() -> Updates:
    """Train a tagger with five tags, of which 0 is a real one; padding has the label -100."""
    torch.manual_seed(45)
    model = Reader(classes=5, tags=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        rows = [row[: 6 + number] for number, row in enumerate(chain(step, 8, 14).tolist())]
        ids = fill([[BOS, *row, EOS] for row in rows])
        labels = fill([[-100, *[(word - FIRST) % 5 for word in row], -100] for row in rows], -100)
        logits = model(ids)
        loss = cross_entropy(logits, labels, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def pooling() -> Updates:
    """Train with all rows of a batch sorted by length, and batches of one length after another (a curriculum)."""
    torch.manual_seed(46)
    model = TorchTranslator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        source, target = pairs(step, 8, longest=4 + step // 4)
        order = (source != PAD).sum(1).argsort(descending=True)
        source, target = source[order], target[order]
        loss = cross_entropy(model(source, target[:, :-1]), target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield
