"""Training steps to examine: language models, translators, classifiers and taggers, in several styles of code."""

from __future__ import annotations

import copy
from typing import Any

import torch
from benchmarks.doctor_trial.kinds.training_models import (
    BOS,
    EOS,
    PAD,
    Bert,
    EncoderDecoder,
    Reader,
    Rows,
    TinyGPT,
    TinyLlama,
    TorchTranslator,
    V,
    fill,
)
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

Arguments = dict[str, Any]
MARKS: Arguments = {"vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 32}


def cross_entropy(scores: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, -2), labels.flatten(), **{"ignore_index": PAD} | options)


def texts_alone(sources: Rows, targets: Rows) -> tuple[Tensor]:
    return (fill([[BOS, *row, EOS] for row in targets]),)


def both_sides(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
    return fill([[*row, EOS] for row in sources]), fill([[BOS, *row, EOS] for row in targets])


def hub_step() -> Arguments:
    """A model that shifts labels by itself, given the ids as labels."""
    model = TinyLlama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def train_step(input_ids: Tensor) -> float:
        model.train()
        attention_mask = (input_ids != PAD).long()
        labels = input_ids.clone()
        labels[attention_mask == 0] = -100
        logits = model(input_ids, attention_mask).logits
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        loss = functional.cross_entropy(shift_logits.view(-1, V), shift_labels.view(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {**MARKS, "model": model, "kind": "decoder", "collate": texts_alone, "train_step": train_step}


def end_as_padding() -> Arguments:
    """A model whose tokenizer has no padding: the end mark fills rows, and labels are chosen by length."""
    model = TinyLlama(tied=False)
    model.config.pad_token_id = EOS
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
        marked = [[BOS, *row, EOS] for row in targets]
        lengths = torch.tensor([len(row) for row in marked])
        return fill(marked, EOS), lengths

    def train_step(tokens: Tensor, lengths: Tensor) -> Tensor:
        model.train()
        labels = tokens.clone()
        labels[torch.arange(tokens.size(1)) >= lengths[:, None]] = -100
        loss = model(tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return {
        "model": model, "vocab_size": V, "pad": EOS, "bos": BOS, "eos": EOS, "longest": 32, "kind": "decoder",
        "collate": collate, "train_step": train_step,
    }  # fmt: skip


def scaled_step() -> Arguments:
    """A language model trained under a GradScaler, with momentum and clipping."""
    model = TinyGPT(layers=1, std=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")

    def train_step(ids: Tensor) -> float:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16):
            scores, _ = model(ids[:, :-1])
            loss = cross_entropy(scores.float(), ids[:, 1:])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    model_of = lambda ids: model(ids)[0]  # noqa: E731
    return {**MARKS, "model": model_of, "kind": "decoder", "collate": texts_alone, "train_step": train_step}


def accumulated_step() -> Arguments:
    """A language model whose batch is split into micro-batches of two rows."""
    model = TinyGPT(layers=1, std=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def train_step(ids: Tensor) -> float:
        model.train()
        optimizer.zero_grad()
        micro_batches = ids.split(2)
        tokens = (ids[:, 1:] != PAD).sum()
        total = 0.0
        for part in micro_batches:
            scores, _ = model(part[:, :-1])
            loss = cross_entropy(scores, part[:, 1:], reduction="sum")
            loss = loss / tokens
            loss.backward()
            total += loss.item()
        optimizer.step()
        return total

    model_of = lambda ids: model(ids)[0]  # noqa: E731
    return {**MARKS, "model": model_of, "kind": "decoder", "collate": texts_alone, "train_step": train_step}


def checkpointed_best() -> Arguments:
    """A language model whose moving average is kept aside, and exchanged for an evaluation every third update."""
    model = TinyGPT(layers=1, std=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    shadow = copy.deepcopy(model)
    steps = 0

    def update_average() -> None:
        with torch.no_grad():
            for mean, weight in zip(shadow.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.1)

    def evaluate(ids: Tensor) -> None:
        backup = [weight.detach().clone() for weight in model.parameters()]
        with torch.no_grad():
            for weight, mean in zip(model.parameters(), shadow.parameters(), strict=True):
                weight.copy_(mean)
            model.eval()
            model(ids)
            for weight, own in zip(model.parameters(), backup, strict=True):
                weight.copy_(own)

    def train_step(ids: Tensor) -> float:
        nonlocal steps
        model.train()
        loss = cross_entropy(model(ids[:, :-1])[0], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_average()
        steps += 1
        if steps % 3 == 0:
            evaluate(ids)
        return loss.item()

    model_of = lambda ids: model(ids)[0]  # noqa: E731
    return {**MARKS, "model": model_of, "kind": "decoder", "collate": texts_alone, "train_step": train_step}


def translator_step() -> Arguments:
    """A translator whose generator is tied to a default embedding, with label smoothing by hand."""
    model = EncoderDecoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
    smoothing = 0.1

    def smoothed(scores: Tensor, labels: Tensor) -> Tensor:
        lprobs = scores.log_softmax(-1)
        nll, smooth = -lprobs.gather(-1, labels[..., None])[..., 0], -lprobs.mean(-1)
        pad_mask = labels == PAD
        nll = nll.masked_fill(pad_mask, 0.0)
        smooth = smooth.masked_fill(pad_mask, 0.0)
        return ((1 - smoothing) * nll + smoothing * smooth).sum() / (~pad_mask).sum()

    def train_step(source: Tensor, target: Tensor) -> float:
        model.train()
        decoder_input, labels = target[:, :-1], target[:, 1:]
        memory = model.encode(source)
        scores = model.generator(model.decode(memory, source, decoder_input))
        loss = smoothed(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {**MARKS, "model": model, "collate": both_sides, "train_step": train_step}


def shifting_step() -> Arguments:
    """A translator that makes its input by shifting the labels to the right, as BART does."""
    model = TorchTranslator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 8))

    def collate(sources: Rows, targets: Rows) -> tuple[dict[str, Tensor]]:
        labels = fill([[*row, EOS] for row in targets], -100)
        return ({"input_ids": fill([[*row, EOS] for row in sources]), "labels": labels},)

    def shift_tokens_right(labels: Tensor) -> Tensor:
        shifted = labels.new_full(labels.shape, BOS)
        shifted[:, 1:] = labels[:, :-1]
        return shifted.masked_fill(shifted == -100, PAD)

    def train_step(batch: dict[str, Tensor]) -> Tensor:
        model.train()
        labels = batch["labels"]
        logits = model(batch["input_ids"], shift_tokens_right(labels))
        loss = cross_entropy(logits, labels, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        return loss.detach()

    return {**MARKS, "model": model, "collate": collate, "train_step": train_step}


def sampled_step() -> Arguments:
    """A translator that reads its own guesses in the place of one token in ten (scheduled sampling)."""
    model = EncoderDecoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    guess_ratio = 0.1

    def train_step(source: Tensor, target: Tensor) -> float:
        model.train()
        inputs, labels = target[:, :-1], target[:, 1:]
        memory = model.encode(source)
        with torch.no_grad():
            guesses = model.generator(model.decode(memory, source, inputs)).argmax(-1)
        guessed = torch.cat([inputs[:, :1], guesses[:, :-1]], 1)
        swap = torch.rand(inputs.shape) < guess_ratio
        inputs = torch.where(swap & (inputs != PAD), guessed, inputs)
        loss = cross_entropy(model.generator(model.decode(memory, source, inputs)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {**MARKS, "model": model, "collate": both_sides, "train_step": train_step}


def classes_step() -> Arguments:
    """A classifier of texts with four classes, trained with rates that fall from layer to layer."""
    model = Reader(classes=4)
    rates = {"classifier": 3e-3, "encoder": 2e-3, "places": 1e-3, "words": 1e-3}
    groups = [{"params": getattr(model, name).parameters(), "lr": rate} for name, rate in rates.items()]
    optimizer = torch.optim.AdamW(groups)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
        return fill(sources), torch.tensor([row[0] for row in targets])

    def train_step(ids: Tensor, labels: Tensor) -> float:
        model.train()
        loss = criterion(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {
        "model": model, "vocab_size": V, "pad": PAD, "kind": "encoder", "longest": 32, "collate": collate,
        "train_step": train_step,
    }  # fmt: skip


def contrastive_step() -> Arguments:
    """An encoder trained to find each text's second reading, with other dropout, among the batch (SimCSE)."""
    model = Bert(layers=1)
    project = nn.Linear(32, 16)
    optimizer = torch.optim.AdamW([*model.parameters(), *project.parameters()], lr=1e-3)

    def embedded(ids: Tensor) -> Tensor:
        return functional.normalize(project(model.encode(ids)[:, 0]), dim=-1)

    def collate(sources: Rows, targets: Rows) -> tuple[Tensor]:
        return (fill([[BOS, *row] for row in sources]),)

    def train_step(ids: Tensor) -> float:
        model.train()
        likeness = embedded(ids) @ embedded(ids).T / 0.1
        loss = functional.cross_entropy(likeness, torch.arange(len(ids)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {
        "model": model.encode, "vocab_size": V, "pad": PAD, "kind": "encoder", "longest": 32, "collate": collate,
        "train_step": train_step,
    }  # fmt: skip


def adaptive_step() -> Arguments:
    """A language model with an adaptive softmax: frequent words first, the others in clusters."""
    model = TinyGPT(layers=1)
    softmax = nn.AdaptiveLogSoftmaxWithLoss(32, V, cutoffs=[10, 24], div_value=2.0)
    optimizer = torch.optim.AdamW([*model.h.parameters(), *model.wte.parameters(), *model.wpe.parameters(),
                                   *model.ln_f.parameters(), *softmax.parameters()], lr=3e-3)  # fmt: skip

    def train_step(ids: Tensor) -> float:
        model.train()
        real = ids[:, 1:] != PAD
        hidden = model.hidden(ids[:, :-1])[real]
        loss = softmax(hidden, ids[:, 1:][real]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def log_probabilities(ids: Tensor) -> Tensor:
        return softmax.log_prob(model.hidden(ids).flatten(0, 1)).unflatten(0, ids.shape)

    return {
        **MARKS,
        "model": log_probabilities,
        "kind": "decoder",
        "collate": texts_alone,
        "train_step": train_step,
    }


def prefix_step() -> Arguments:
    """A translator that is a language model: source and target in a row, loss on the target alone."""
    model = TinyLlama(tied=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def train_step(source: Tensor, target: Tensor) -> float:
        model.train()
        rows = [[*s[s != PAD].tolist(), *t[t != PAD].tolist()] for s, t in zip(source, target, strict=True)]
        read = [int((s != PAD).sum()) + 1 for s in source]
        ids = fill(rows)
        labels = ids.masked_fill(torch.arange(ids.size(1)) < torch.tensor(read)[:, None], -100)
        loss = model(ids, labels=labels.masked_fill(ids == PAD, -100)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def scores(source: Tensor, target: Tensor) -> Tensor:
        found = []
        for s, t in zip(source, target, strict=True):
            row = torch.cat([s[s != PAD], t])
            found.append(model(row[None]).logits[0, -len(t) :])
        return torch.stack(found)

    return {**MARKS, "model": scores, "collate": both_sides, "train_step": train_step}


def multitask_step() -> Arguments:
    """A translator that also says how long the source is, by a second loss on its encoder."""
    model = EncoderDecoder()
    model.length_head = nn.Linear(32, 1)
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)

    def train_step(source: Tensor, target: Tensor) -> float:
        model.train()
        memory = model.encode(source)
        real = (source != PAD).float()
        scores = model.generator(model.decode(memory, source, target[:, :-1]))
        mean = (memory * real[..., None]).sum(1) / real.sum(1, keepdim=True)
        length_loss = functional.smooth_l1_loss(model.length_head(mean)[:, 0], real.sum(1) / 10)
        loss = cross_entropy(scores, target[:, 1:])
        optimizer.zero_grad()
        (loss + 0.2 * length_loss).backward()
        optimizer.step()
        return loss.item()

    return {**MARKS, "model": model, "collate": both_sides, "train_step": train_step}


def low_rank_step() -> Arguments:
    """A frozen translator with trained biases and norms alone (BitFit)."""
    model = EncoderDecoder().requires_grad_(False)
    trained = [weight for name, weight in model.named_parameters() if name.endswith("bias") or "norm" in name]
    for weight in trained:
        weight.requires_grad_(True)
    optimizer = torch.optim.Adam(trained, lr=1e-2)

    def train_step(source: Tensor, target: Tensor) -> float:
        model.train()
        loss = cross_entropy(model(source, target[:, :-1]), target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {**MARKS, "model": model, "collate": both_sides, "train_step": train_step}
