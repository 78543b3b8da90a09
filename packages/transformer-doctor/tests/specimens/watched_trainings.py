"""Small trainings to watch, in several styles: sound ones, and each with a fault.

A training is a generator: it yields model, optimizers and options of `watch` first, and then after each update.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.optim import lr_scheduler

from specimens import training_projects
from specimens.plain_trainings import BOS, EOS, PAD, D, Translator, V

Training = Callable[[str], Iterator[Any]]


class Writer(nn.Module):
    """A language model that returns scores (B, T, V), or logits and a loss where targets are given."""

    def __init__(self, layers: int = 1, dropout: float = 0.1, tied: bool = False, detached: bool = False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(64, D)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(D, 2, 32, dropout, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(D, V, bias=False)
        self.detached = detached
        if tied:
            self.head.weight = self.words.weight

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Any:
        hidden = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        causal = nn.Transformer.generate_square_subsequent_mask(ids.size(1)).to(hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden.detach() if self.detached else hidden, src_mask=causal, is_causal=True)
        scores = self.head(hidden)
        return scores if targets is None else (scores, nats(scores, targets))


def nats(scores: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return functional.cross_entropy(
        scores.flatten(0, 1).float(), labels.flatten(), **({"ignore_index": PAD} | options)
    )


def rows(update: int, count: int = 8, longest: int = 12) -> Tensor:
    """Return rows of random ids with both marks, padded; each update has other ones."""
    generator = torch.Generator().manual_seed(update)
    lengths = torch.randint(3, longest + 1, (count,), generator=generator)
    lengths[0] = longest
    ids = torch.randint(3, V, (count, longest + 2), generator=generator)
    ids[:, 0] = BOS
    place = torch.arange(longest + 2)
    return ids.where(place <= lengths[:, None], torch.where(place == lengths[:, None] + 1, EOS, PAD))


def own_loop(fault: str) -> Iterator[Any]:
    """Yield the updates of a plain loop over a language model."""
    torch.manual_seed(1)
    model = Writer(tied="tied" in fault, detached=fault == "detached")
    if fault.startswith("tied, sure"):  # of the token that is read, as a wide model with a default nn.Embedding is
        model.words.weight.data = 32 * functional.normalize(model.words.weight.data)
        nn.init.normal_(model.places.weight, std=0.02)
    if fault == "bfloat16":
        model.bfloat16()
    rate = {"tiny rate": 1e-11, "bfloat16": 1e-6}.get(fault, 3e-3)
    decay = 1.0 if fault == "decay of 1" else 0.01
    trained: Any = [*model.parameters()]
    if fault == "head not held":
        trained = [weight for name, weight in model.named_parameters() if "head" not in name]
    if fault == "other model's weights":
        trained = [*copy.deepcopy(model).parameters()]
    if fault == "a group without rate":
        trained = [{"params": model.layers.parameters(), "lr": 0.0}, {"params": model.head.parameters()},
                   {"params": [*model.words.parameters(), *model.places.parameters()]}]  # fmt: skip
    if fault == "frozen base":
        model.layers.requires_grad_(False)
    optimizer = torch.optim.AdamW(trained, rate, weight_decay=decay)
    if fault == "layer replaced":
        model.layers[0] = nn.TransformerEncoderLayer(D, 2, 32, 0.1, batch_first=True)
    factor: Callable[[int], float] = lambda _: 1.0  # noqa: E731
    if "warm-up" in fault:
        factor = lambda step: min(1.0, step / 1000)  # noqa: E731
    if fault in ("rate stays zero", "schedule not as planned"):
        factor = lambda step: 0.0 if fault == "rate stays zero" else 0.5**step  # noqa: E731
    schedule = lr_scheduler.LambdaLR(optimizer, factor)
    options: dict[str, Any] = {"pad": PAD}
    if fault == "schedule not as planned":
        options["plan"] = lambda update: rate
    if fault == "warm-up as planned":
        options["plan"] = lambda update: rate * min(1.0, (update - 1) / 1000)
    if fault == "one batch on purpose":
        options["repeats"] = True
    yield model, optimizer, options
    if fault == "eval before":
        model.eval()
    average = copy.deepcopy(model)
    for update in range(1, 10_000):
        if fault == "eval after 5" and update == 6:
            model.eval()
        if fault == "evaluation between":
            model.eval()
            with torch.no_grad():
                model(rows(0))
            model.train()
        number = {"same batch": 1, "one batch on purpose": 1, "same order": update % 6}.get(fault, update)
        if fault == "six batches, shuffled":
            epoch = torch.Generator().manual_seed(update // 6)
            number = int(torch.randperm(6, generator=epoch)[update % 6])
        ids = rows(number)
        read, labels = ids[:, :-1], ids[:, 1:]
        if fault.endswith("not shifted"):
            labels = read
        if fault == "shifted twice":
            read, labels = ids[:, :-2], ids[:, 2:]
        if fault == "shifted backwards":
            read, labels = ids[:, 1:], ids[:, :-1]
        scores = model(read)
        loss = nats(scores, labels)
        if fault == "padding in loss":
            loss = nats(scores, labels, ignore_index=-100)
        if fault == "padding in mean":
            loss = nats(scores, labels, reduction="none").mean()
        if fault == "tied, sure, padding masked":
            losses = nats(scores, labels, reduction="none", ignore_index=-100) * (labels != PAD).flatten()
            loss = losses.sum() / (labels != PAD).sum()
        if fault == "first rows":
            loss = nats(scores[:4], labels[:4])
        if fault == "label smoothing":
            loss = nats(scores, labels, label_smoothing=0.1)
        if fault == "log-probabilities":
            loss = functional.nll_loss(scores.log_softmax(-1).flatten(0, 1), labels.flatten(), ignore_index=PAD)
        if fault == "R-Drop":
            again = model(read)
            apart = functional.kl_div(
                again.log_softmax(-1), scores.log_softmax(-1), log_target=True, reduction="sum"
            )
            loss = (loss + nats(again, labels)) / 2 + apart / labels.numel()
        if fault != "never cleared":
            optimizer.zero_grad()
        loss.backward()
        if fault in ("clipped to 1e-4", "clipped to 1"):
            clip_grad_norm_(model.parameters(), 1e-4 if "1e-4" in fault else 1.0)
        if fault == "frozen late" and update == 3:
            model.layers.requires_grad_(False)
        if fault == "frozen late, gradients kept" and update == 3:
            model.layers.requires_grad_(False)
            optimizer.zero_grad = lambda *_: None  # type: ignore[method-assign]
        if fault != "no step":
            optimizer.step()
        if fault == "clipped after the step":
            clip_grad_norm_(model.parameters(), 1.0)
        schedule.step()
        if fault == "layer redrawn" and update % 5 == 0:
            nn.init.xavier_uniform_(model.head.weight)
        if fault == "layer redrawn through data" and update % 5 == 0:
            model.layers[0].linear1.weight.data.normal_(std=0.02)
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.01)
        yield


def accumulation(fault: str) -> Iterator[Any]:
    """Yield the updates of a loop with several micro-batches for each of them."""
    torch.manual_seed(2)
    model, parts = Writer(), 4
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100_000)
    yield model, [optimizer], {}
    for update in range(1, 10_000):
        optimizer.zero_grad()
        batch = rows(update, 16).chunk(parts)
        if fault.startswith("divided"):
            batch = rows(update, 16)[:, :4].chunk(parts)
        if fault == "unequal":
            batch = [rows(update, 2, 3), rows(update + 1000, 8), rows(update + 2000, 2, 3), rows(update + 3000, 8)]
        total = sum(int((part[:, 1:] != PAD).sum()) for part in batch)
        for part in batch:
            if fault == "cleared":
                optimizer.zero_grad()
            scores, loss = model(part[:, :-1], part[:, 1:])
            if fault in ("", "schedule moves", "cleared"):
                loss = nats(scores, part[:, 1:], reduction="sum") / total
            elif fault != "added":
                loss = loss / parts
            loss.backward()
            if fault == "schedule moves":
                schedule.step()
            if "clipped" in fault:
                clip_grad_norm_(model.parameters(), 1.0 if "to 1" in fault else 1e-2)
        optimizer.step()
        if fault != "schedule moves":
            schedule.step()
        yield


def scaled(fault: str) -> Iterator[Any]:
    """Yield the updates of a loop with a GradScaler."""
    torch.manual_seed(3)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    scaler = torch.amp.GradScaler("cpu")
    yield model, optimizer, {}
    for update in range(1, 10_000):
        ids = rows(update)
        optimizer.zero_grad()
        loss = nats(model(ids[:, 1:], ids[:, :-1]), ids[:, 1:])
        if fault == "infinite":
            loss = loss * math.inf
        scaler.scale(loss).backward()
        if fault != "clipped before unscaling":
            scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        yield


def two_optimizers(fault: str) -> Iterator[Any]:
    """Yield the updates of a translator whose embeddings have an optimizer of their own."""
    torch.manual_seed(4)
    model = Translator()
    words = torch.optim.SGD(model.words.parameters(), 0.1)
    others = torch.optim.AdamW([weight for name, weight in model.named_parameters() if "words" not in name], 1e-3)
    yield model, (words, others), {"pad": PAD}
    for update in range(1, 10_000):
        ids = rows(update)
        for optimizer in (words, others):
            optimizer.zero_grad()
        nats(model(ids[:, 1:], ids[:, :-1]), ids[:, 1:]).backward()
        for optimizer in (words, others):
            if optimizer is not {"one never steps": words, "the other one": others}.get(fault):
                optimizer.step()
        yield


def hugging_face(fault: str) -> Iterator[Any]:
    """Yield the updates of models of transformers, which shift labels by themselves."""
    import transformers

    torch.manual_seed(5)
    if fault.startswith("T5"):
        config = transformers.T5Config(vocab_size=V, d_model=D, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
                                       decoder_start_token_id=PAD)  # fmt: skip
        model: Any = transformers.T5ForConditionalGeneration(config)
    elif fault.startswith("BERT"):
        config = transformers.BertConfig(vocab_size=V, hidden_size=D, num_hidden_layers=1, num_attention_heads=2,
                                         intermediate_size=32)  # fmt: skip
        model = transformers.BertForMaskedLM(config)
    elif fault.startswith("MoE"):
        config = transformers.MixtralConfig(
            vocab_size=V, hidden_size=D, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, num_local_experts=8, num_experts_per_tok=1,
            output_router_logits=True)  # fmt: skip
        model = transformers.MixtralForCausalLM(config)
    else:
        pad = EOS if "eos" in fault else PAD
        config = transformers.GPT2Config(vocab_size=V, n_embd=D, n_layer=1, n_head=2, bos_token_id=BOS,
                                         eos_token_id=EOS, pad_token_id=pad)  # fmt: skip
        model = transformers.GPT2LMHeadModel(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    if fault.endswith("eval"):
        model.eval()
    yield model, optimizer, {}
    for update in range(1, 10_000):
        ids = rows(update)
        mask = (ids != PAD).long()
        if "eos" in fault:
            ids = ids.masked_fill(mask == 0, EOS)
        labels = ids.masked_fill(mask == 0, -100)
        if fault.endswith("padding"):
            labels = ids
        if fault.startswith("BERT"):
            chosen = torch.rand(ids.shape, generator=torch.Generator().manual_seed(update)) < 0.3
            labels, ids = labels.masked_fill(~chosen, -100), ids.masked_fill(chosen, 3)
        if fault.endswith("shifted before"):
            ids, labels, mask = ids[:, :-1], labels[:, 1:], mask[:, :-1]
        if fault.startswith("T5"):
            ids, mask = ids[:, :-1], mask[:, :-1]
        optimizer.zero_grad(set_to_none=False)
        output = model(input_ids=ids, attention_mask=mask, labels=labels)
        if fault.endswith("own loss reads the prompt"):
            labels = labels.masked_fill(torch.arange(ids.size(1)) < 6, -100)
            output = model(input_ids=ids, attention_mask=mask, labels=labels)
            output.loss = nats(output.logits[:, :-1], ids[:, 1:])
        output.loss.backward()
        optimizer.step()
        yield


def adversarial(fault: str) -> Iterator[Any]:
    """Yield updates of two models that are trained in turn, or with two backward passes for each step."""
    torch.manual_seed(6)
    model = nn.ModuleDict({"one": Writer(), "two": Writer()})
    first, second = (torch.optim.Adam(model[name].parameters(), 1e-3) for name in ("one", "two"))
    yield model, [first, second], {}
    for update in range(1, 10_000):
        ids = rows(update)
        first.zero_grad()
        nats(model["one"](ids[:, :-1]), ids[:, 1:]).backward()
        first.step()
        second.zero_grad()
        mixed = model["two"](ids[:, :-1]) + model["one"](ids[:, :-1])
        nats(mixed, ids[:, 1:]).backward()
        second.step()
        yield


def closure(fault: str) -> Iterator[Any]:
    """Yield updates whose backward pass is made by a closure inside of the step."""
    torch.manual_seed(7)
    model = Writer(tied=True)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    yield model, optimizer, {"pad": PAD}

    def loss_of(ids: Tensor) -> Tensor:
        if fault != "never cleared":
            optimizer.zero_grad()
        loss = nats(model(ids[:, :-1]), ids[:, 1:] if fault != "not shifted" else ids[:, :-1])
        loss.backward()
        return loss

    for update in range(1, 10_000):
        ids = rows(update)
        optimizer.step(lambda ids=ids: loss_of(ids))
        yield


def outside_of_steps(fault: str) -> Iterator[Any]:
    """Yield the updates of a loop that changes weights between steps, or whose optimizer holds copies of them."""
    torch.manual_seed(9)
    model = Writer(dropout=0.0)
    if "half" in fault:
        model.bfloat16()
    weights = [*model.parameters()]
    kept = [torch.rand_like(weight) < 0.3 for weight in weights]
    for weight, mask in zip(weights, kept, strict=True):
        weight.data *= mask | (fault != "pruned")
    first = [weight.detach().clone() for weight in weights]
    copies = (
        [weight.detach().clone().float().requires_grad_() for weight in weights] if "copies" in fault else weights
    )
    optimizer = torch.optim.AdamW(copies, 1e-3 if "half" in fault else 3e-3)
    decay = lr_scheduler.ExponentialLR(optimizer, 0.7)
    yield model, optimizer, {"pad": PAD}

    def gradients(ids: Tensor) -> list[Tensor]:
        model.zero_grad()
        nats(model(ids[:, :-1]), ids[:, 1:]).backward()
        return [weight.grad.detach().clone() for weight in weights if weight.grad is not None]

    average = slow = first
    for update in range(1, 10_000):
        ids = rows(update)
        slopes = gradients(ids)
        if "uphill" in fault:
            norm = torch.stack([slope.norm() for slope in slopes]).norm()
            for weight, slope in zip(weights, slopes, strict=True):
                weight.data.add_(slope, alpha=0.05 / float(norm))
            gradients(ids)
        if fault == "uphill and down":
            for weight, slope in zip(weights, slopes, strict=True):
                weight.data.sub_(slope, alpha=0.05 / float(norm))
        if "copies" in fault:
            for copied, weight in zip(copies, weights, strict=True):
                copied.grad = weight.grad.float()  # type: ignore[union-attr]
        optimizer.step()
        if "copies written back" in fault:
            for copied, weight in zip(copies, weights, strict=True):
                weight.data.copy_(copied.data)
        average = [mean.lerp(weight.detach(), 0.1) for mean, weight in zip(average, weights, strict=True)]
        new = None
        if update % 4 == 0:
            slow = [mean.lerp(weight.detach(), 0.5) for mean, weight in zip(slow, weights, strict=True)]
            new = {"average kept": average, "first weights again": first, "lookahead": slow}.get(fault)
        if fault == "pruned":
            new = [weight * mask for weight, mask in zip(weights, kept, strict=True)]
        if fault == "rows of norm 1":
            new = [weight / weight.norm(dim=-1, keepdim=True) if weight.dim() > 1 else weight for weight in weights]
        for weight, value in zip(weights, new or (), strict=new is not None):
            weight.data.copy_(value)
        if fault == "decay at each update" or (fault == "decay at each epoch" and update % 4 == 0):
            decay.step()
        yield


def published(style: str) -> Iterator[Any]:
    """Yield the updates of a loop as nanoGPT and The Annotated Transformer have it."""
    torch.manual_seed(8)
    if style == "annotated":
        project = training_projects.Annotated("")
        yield project.model, project.optimizer, {}
        for update in range(1, 10_000):
            ids = rows(update) % training_projects.V
            project.train_step(ids[:, 1:], ids)
            yield
    model, parts = Writer(tied=True), 5
    weights = [*model.parameters()]
    groups = [{"params": [weight for weight in weights if weight.dim() > 1], "weight_decay": 0.1},
              {"params": [weight for weight in weights if weight.dim() < 2], "weight_decay": 0.0}]  # fmt: skip
    optimizer = torch.optim.AdamW(groups, 6e-3, betas=(0.9, 0.95))
    scaler = torch.amp.GradScaler("cpu")
    text = torch.randint(3, V, (1000,))

    def get_batch() -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(text) - 12, (6,))
        return tuple(torch.stack([text[i + first : i + first + 12] for i in starts]) for first in (0, 1))  # type: ignore[return-value]

    yield model, optimizer, {}
    inputs, targets = get_batch()
    for update in range(10_000):
        for group in optimizer.param_groups:
            group["lr"] = 6e-3 * min(1.0, (update + 1) / 10) * (1 + math.cos(update / 10_000 * math.pi)) / 2
        for _ in range(parts):
            _, loss = model(inputs, targets)
            inputs, targets = get_batch()
            scaler.scale(loss / parts).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        yield


PLANTED: dict[str, tuple[Training, dict[str, str]]] = {
    "loop": (own_loop, {
        "detached": "parameters-without-gradient", "bfloat16": "lost-in-half-precision",
        "tiny rate": "parameters-not-updated", "decay of 1": "weight-decay-too-high",
        "head not held": "parameters-not-updated", "other model's weights": "parameters-not-updated",
        "a group without rate": "parameters-not-updated", "layer replaced": "parameters-not-updated",
        "rate stays zero": "parameters-not-updated", "schedule not as planned": "rate-not-as-planned",
        "eval before": "trained-in-evaluation-mode", "eval after 5": "trained-in-evaluation-mode",
        "same batch": "batch-repeated", "same order": "order-unchanged", "not shifted": "target-not-shifted",
        "tied, sure, not shifted": "target-not-shifted",
        "shifted twice": "wrong-labels", "shifted backwards": "wrong-labels", "padding in loss": "padding-in-loss",
        "padding in mean": "padding-in-mean", "first rows": "rows-left-out",
        "never cleared": "gradients-accumulated",
        "clipped to 1e-4": "clipped-wrongly", "clipped after the step": "clipped-wrongly",
        "frozen late, gradients kept": "frozen-weights-moved", "no step": "parameters-not-updated",
        "layer redrawn": "weights-redrawn", "layer redrawn through data": "weights-redrawn",
    }),
    "accumulation": (accumulation, {
        "cleared": "gradients-lost", "added": "accumulation-not-divided", "unequal": "micro-batches-averaged",
        "schedule moves": "schedule-per-micro-batch", "divided, clipped each time": "clipped-wrongly",
    }),
    "scaled": (scaled, {"infinite": "parameters-not-updated", "clipped before unscaling": "clipped-wrongly"}),
    "two optimizers": (two_optimizers, {
        "one never steps": "parameters-not-updated", "the other one": "parameters-not-updated",
    }),
    "transformers": (hugging_face, {
        "GPT2 eval": "trained-in-evaluation-mode", "GPT2 padding": "padding-in-loss",
        "GPT2 eos padding": "padding-in-loss", "T5 padding": "padding-in-loss",
        "GPT2 shifted before": "wrong-labels", "GPT2 own loss reads the prompt": "ignored-positions-in-loss",
    }),
    "closure": (closure, {"never cleared": "gradients-accumulated", "not shifted": "target-not-shifted"}),
    "outside": (outside_of_steps, {
        "average kept": "weights-redrawn", "first weights again": "weights-redrawn", "uphill": "weights-redrawn",
        "decay at each update": "unusual-schedule", "copies": "parameters-not-updated",
        "half": "lost-in-half-precision",
    }),
}  # fmt: skip

SOUND: dict[str, tuple[Training, list[str]]] = {
    "loop": (own_loop, [
        "plain", "tied", "tied, sure", "tied, sure, padding masked",
        "frozen base", "warm-up", "warm-up as planned", "one batch on purpose",
        "evaluation between", "six batches, shuffled", "label smoothing", "log-probabilities", "R-Drop",
        "clipped to 1", "frozen late",
    ]),
    "accumulation": (accumulation, ["", "divided"]),
    "scaled": (scaled, [""]),
    "two optimizers": (two_optimizers, [""]),
    "transformers": (hugging_face, ["GPT2", "GPT2 eos", "T5", "BERT", "MoE"]),
    "adversarial": (adversarial, [""]),
    "closure": (closure, [""]),
    "outside": (outside_of_steps, [
        "lookahead", "uphill and down", "pruned", "rows of norm 1", "decay at each epoch", "copies written back",
        "half, copies written back",
    ]),
    "published": (published, ["nanogpt", "annotated"]),
}  # fmt: skip
