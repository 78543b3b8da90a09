"""Trainings of masked language models, of replaced tokens and of hidden spans, to examine and to watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from benchmarks.doctor_trial.kinds.training_models import (
    BOS,
    EOS,
    FIRST,
    MASK,
    PAD,
    Bert,
    EncoderDecoder,
    Rows,
    V,
    fill,
    seeded,
    texts,
)
from torch import Tensor, nn
from torch.nn import functional

Updates = Iterator[Any]


def cross_entropy(scores: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, -2), labels.flatten(), **{"ignore_index": -100} | options)


def collate(sources: Rows, targets: Rows) -> tuple[Tensor]:
    return (fill([[BOS, *row, EOS] for row in sources]),)


def mask_tokens(ids: Tensor, share: float = 0.15) -> tuple[Tensor, Tensor]:
    """Hide a share of the tokens, 80 % by the mask, 10 % by another token; return them and labels."""
    labels = ids.clone()
    probability = torch.full(labels.shape, share)
    special_tokens_mask = (ids == PAD) | (ids == BOS) | (ids == EOS)
    probability.masked_fill_(special_tokens_mask, 0.0)
    masked_indices = torch.bernoulli(probability).bool()
    labels[~masked_indices] = -100
    inputs = ids.clone()
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked_indices
    inputs[replaced] = MASK
    other = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & masked_indices & ~replaced
    inputs[other] = torch.randint(FIRST, V, labels.shape)[other]
    return inputs, labels


def bert_step() -> dict[str, Any]:
    """Make the arguments of a masked language model in BERT's way, to examine."""
    model = Bert(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def train_step(ids: Tensor) -> float:
        model.train()
        inputs, labels = mask_tokens(ids)
        prediction_scores = model(inputs)
        loss = cross_entropy(prediction_scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {
        "model": model, "vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS, "kind": "encoder", "longest": 32,
        "collate": collate, "train_step": train_step,
    }  # fmt: skip


def collated_step() -> dict[str, Any]:
    """Make the arguments of a masked language model whose collator hides tokens."""
    model = Bert(layers=1, std=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def collator(sources: Rows, targets: Rows) -> tuple[dict[str, Tensor]]:
        ids = fill([[BOS, *row, EOS] for row in sources])
        chosen = (torch.rand(ids.shape) < 0.25) & (ids != PAD) & (ids != BOS) & (ids != EOS)
        labels = torch.where(chosen, ids, -100)
        return ({"input_ids": ids.masked_fill(chosen, MASK), "labels": labels},)

    def train_step(batch: dict[str, Tensor]) -> float:
        model.train()
        scores = model(batch["input_ids"])
        loss = cross_entropy(scores, batch["labels"], reduction="sum") / (batch["labels"] != -100).sum().clamp(
            min=1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {
        "model": model, "vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS, "kind": "encoder", "longest": 32,
        "collate": collator, "train_step": train_step,
    }  # fmt: skip


def hub_masked() -> Updates:
    """Watch transformers' BERT, whose loss is its own."""
    import transformers

    torch.manual_seed(30)
    config = transformers.BertConfig(
        vocab_size=V, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, pad_token_id=PAD,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    yield model, optimizer, {}
    model.train()
    for step in range(10_000):
        ids = texts(step, 8)
        mask = (ids != PAD).long()
        inputs, labels = mask_tokens(ids, 0.3)
        loss = model(input_ids=inputs, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def several_epochs() -> Updates:
    """Watch several epochs over a small set, with a new order and new masks in each."""
    torch.manual_seed(31)
    model = Bert(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rows = texts(3, 32)
    yield model, optimizer, {"pad": PAD}
    for epoch in range(1000):
        for chosen in torch.randperm(len(rows), generator=seeded(epoch)).split(8):
            ids = rows[chosen]
            drawn = torch.rand(rows.shape, generator=seeded(1000 + epoch))[chosen]
            hidden = (drawn < 0.25) & (ids > MASK)
            scores = model(ids.masked_fill(hidden, MASK))
            loss = cross_entropy(scores[hidden], ids[hidden])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


def whole_words() -> Updates:
    """Watch a model that hides all pieces of a word: pieces with an odd number continue the word before."""
    torch.manual_seed(32)
    model = Bert(layers=1, std=0.05)
    optimizer = torch.optim.Adamax(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step, 8)
        starts = (ids % 2 == 0) | (ids < FIRST)
        word = starts.long().cumsum(1)
        chosen_words = torch.rand(len(ids), int(word.max()) + 1) < 0.25
        hidden = chosen_words.gather(1, word) & (ids > MASK)
        labels = torch.full_like(ids, -100)
        labels[hidden] = ids[hidden]
        loss = cross_entropy(model(ids.masked_fill(hidden, MASK)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def electra() -> Updates:
    """Watch a model that tells replaced tokens, and the small one that proposes them."""
    torch.manual_seed(33)
    model = nn.ModuleDict({"generator": Bert(width=16, layers=1), "discriminator": Bert(layers=1)})
    model["detects"] = nn.Linear(32, 1)
    del model["discriminator"].transform, model["discriminator"].bias
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step, 8)
        hidden = (torch.rand(ids.shape) < 0.25) & (ids > MASK)
        scores = model["generator"](ids.masked_fill(hidden, MASK))
        proposal_loss = cross_entropy(scores[hidden], ids[hidden])
        proposed = torch.distributions.Categorical(logits=scores.detach()).sample()
        corrupted = torch.where(hidden, proposed, ids)
        verdicts = model["detects"](model["discriminator"].encode(corrupted))[..., 0]
        real = ids != PAD
        replaced = (corrupted != ids).float()
        detection_loss = functional.binary_cross_entropy_with_logits(verdicts[real], replaced[real])
        loss = proposal_loss + 20 * detection_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def spans() -> Updates:
    """Watch a T5-like model that writes the hidden spans of its source after their marks."""
    torch.manual_seed(34)
    model = EncoderDecoder()
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        sources, targets = [], []
        for row in texts(step, 8, longest=12).tolist():
            words = [token for token in row if token > MASK]
            start = int(torch.randint(0, len(words) - 2, ()))
            sources.append([*words[:start], MASK, *words[start + 2 :], EOS])
            targets.append([BOS, MASK, *words[start : start + 2], EOS])
        source, target = fill(sources), fill(targets)
        scores = model(source, target[:, :-1])
        loss = cross_entropy(scores, target[:, 1:], ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield
