"""Fine-tune an encoder with manyheads, and with transformers in the loop that people write themselves.

    python benchmarks/finetune.py sst2-finetune --root data/sst2 --model DIR [--steps 50] [--bf16] [--set ...]

Both take the settings of the recipe: epochs, texts an update, learning rate with its warm-up and linear fall,
AdamW with its decay, clipping, the longest text, dropout (which transformers also lays on attention weights, as
the folder says), pooling. What that loop does not have is off: word dropout, rates by layer, a moving average. The
loop is that of transformers' own examples: texts tokenised beforehand, shuffled in each epoch, each batch padded to
its longest text, products in float32 unless --bf16. With pooling = "cls" it trains
AutoModelForSequenceClassification, with "mean" AutoModel and a head like ours.

Times are those of the updates alone, validation not counted. Accuracy is that of the last weights, and of the best
of all epochs. One JSON line at the end, all else on stderr.

    python benchmarks/finetune.py sst2-finetune --root data/sst2 --model DIR --parity 60

gives both the same head, the same batches in the same order, float32 and no dropout, and prints how far losses and
gradient norms are apart. `--tiny` does both, with made-up sentences and a random encoder of width 16.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn

import machine
from manyheads.checkpoint import RunDirectory
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.data.examples import Examples
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.runs.corpus import read_corpus
from manyheads.runs.initialize import with_initial_shape
from manyheads.runs.train import make_trainer, train
from manyheads.runs.training_tasks import prepare_task
from manyheads.text.tokenizer import PAD
from manyheads.training.interruption import Watch
from manyheads.training.log import SilentListener
from tiny import write_encoder, write_labelled

PLAIN = ("model.word_dropout=0", "training.layer_decay=1", "training.ema=0")


class AccuracyListener(SilentListener):
    """A listener that keeps the accuracy of each validation, and prints messages on stderr."""

    def __init__(self) -> None:
        self.accuracies: list[float] = []

    def message(self, text: str) -> None:
        print(text, flush=True)

    def validation(self, report: Any) -> None:
        self.accuracies.append(report.scores["accuracy"])
        print(f"manyheads, update {report.step}: accuracy {report.scores['accuracy']:.4f}", flush=True)


class MeanClassifier(nn.Module):
    """AutoModel, the mean of its hidden states, and a head like ours."""

    def __init__(self, where: str, classes: int) -> None:
        super().__init__()
        self.encoder = transformers.AutoModel.from_pretrained(where)
        width = self.encoder.config.hidden_size
        self.pooler, self.output = nn.Linear(width, width), nn.Linear(width, classes)
        self.dropout = nn.Dropout(self.encoder.config.hidden_dropout_prob)

    def forward(self, **batch: Tensor) -> Tensor:
        """Token numbers and what is real (B, S) -> logits (B, C)."""
        hidden = self.encoder(**batch).last_hidden_state
        real = batch["attention_mask"][..., None]
        return self.output(self.dropout(torch.tanh(self.pooler((hidden * real).sum(1) / real.sum(1)))))


class HeadOfTransformers(nn.Module):
    """AutoModelForSequenceClassification."""

    def __init__(self, where: str, classes: int) -> None:
        super().__init__()
        self.model = transformers.AutoModelForSequenceClassification.from_pretrained(where, num_labels=classes)

    def forward(self, **batch: Tensor) -> Tensor:
        """Token numbers and what is real (B, S) -> logits (B, C)."""
        return self.model(**batch).logits


Rows = list[dict[str, list[int]]]


def theirs(config: Config, where: str, data: tuple[list[str], list[int]], dev: tuple[list[str], list[int]],
           precision: torch.dtype) -> dict[str, Any]:  # fmt: skip
    """The plain loop: accuracies by epoch, and seconds of the updates."""
    training = config.training
    torch.manual_seed(training.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(where)
    rows, dev_rows = (
        [tokenizer(text, truncation=True, max_length=config.data.max_length + 2) for text in texts]
        for texts in (data[0], dev[0])
    )
    model = their_model(config, where, len(set(data[1])))
    optimizer = their_optimizer(config, model)
    size = training.batch_sentences
    assert size is not None
    each = -(-len(rows) // size)
    total = training.steps if training.epochs is None else training.epochs * each
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, training.warmup_steps, total)
    dice, seconds, step = np.random.default_rng(training.seed), 0.0, 0
    accuracies: list[float] = []
    while step < total:
        order, start = dice.permutation(len(rows)), time.perf_counter()
        model.train()
        for first in range(0, len(order), size):
            if step == total:
                break
            chosen = order[first : first + size]
            batch = tokenizer.pad([rows[place] for place in chosen], return_tensors="pt")
            labels = torch.tensor([data[1][place] for place in chosen])
            with torch.autocast("cpu", precision, enabled=precision == torch.bfloat16):
                loss = nn.functional.cross_entropy(model(**batch).float(), labels)
            loss.backward()
            if training.clip_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
        seconds += time.perf_counter() - start
        accuracies.append(accuracy(model, tokenizer, dev_rows, dev[1]))
        print(f"transformers, update {step}: accuracy {accuracies[-1]:.4f}", flush=True)
    return {"accuracies": accuracies, "seconds": seconds, "updates": step}


def their_model(config: Config, where: str, classes: int) -> MeanClassifier | HeadOfTransformers:
    """Return the model of transformers, with the configured pooling."""
    kind = MeanClassifier if config.model.pooling == "mean" else HeadOfTransformers
    return kind(where, classes)


def their_optimizer(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    """AdamW that takes the decay off matrices."""
    training = config.training
    matrices = [one for one in model.parameters() if one.ndim > 1]
    rest = [one for one in model.parameters() if one.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=training.betas, eps=training.epsilon)


@torch.inference_mode()
def accuracy(model: nn.Module, tokenizer: Any, rows: Rows, labels: list[int]) -> float:
    """Return the share of correct labels."""
    model.eval()
    right = 0
    for first in range(0, len(rows), 32):
        batch = tokenizer.pad(rows[first : first + 32], return_tensors="pt")
        right += int((model(**batch).argmax(-1) == torch.tensor(labels[first : first + 32])).sum())
    return right / len(rows)


def parity(config: Config, where: str, updates: int) -> dict[str, Any]:
    """Largest differences of loss and gradient norm over so many updates of the first epoch."""
    training, gaps = config.training, []
    with tempfile.TemporaryDirectory() as folder:
        run, listener = RunDirectory(Path(folder) / "run"), AccuracyListener()
        config = with_initial_shape(config, run, listener)
        kind = prepare_task(config, run, read_corpus(config, run), listener)
        trainer = make_trainer(kind, run, Watch(listener))
        model = their_model(config, where, len(kind.classes))
        give_head(trainer.model, model)
        optimizer = their_optimizer(config, model)
        numbers = torch.tensor([0 if one is None else one for one in read_pretrained(Path(where)).tokenizer.theirs])
        trainer.model.train()
        model.train()
        for step, pairs in enumerate(trainer.batches.epoch(0)[:updates], start=1):
            (batch,) = trainer.batches.batches(0, step - 1, pairs)
            assert isinstance(batch, Examples)
            ((_, loss, _),) = trainer.updater.gradients([batch], len(pairs))
            rate = trainer.schedule.rate(step, trainer.planned_steps())
            norm = trainer.updater.apply(rate, step)
            logits = model(input_ids=numbers[batch.ids], attention_mask=(batch.ids != PAD).long())
            other = nn.functional.cross_entropy(logits, batch.labels)
            other.backward()
            their_norm = nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm or torch.inf)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
            gaps.append((abs(loss.item() / len(pairs) - other.item()), abs(norm / their_norm.item() - 1)))
            print(f"update {step}: loss {other.item():.6f}, {gaps[-1][0]:.1e} apart", flush=True)
    losses, norms = zip(*gaps, strict=True)
    return {"updates": len(gaps), "loss": max(losses), "norm": max(norms)}


def give_head(ours: Any, theirs: nn.Module) -> None:
    """Give their model, whose body is pre-trained, the head of ours, and take dropout from it."""
    if isinstance(theirs, MeanClassifier):
        heads = theirs.pooler, theirs.output
    else:
        heads = theirs.model.bert.pooler.dense, theirs.model.classifier
    for own, head in zip((ours.pooler, ours.output), heads, strict=True):
        head.load_state_dict(own.state_dict())
    for module in theirs.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def ours(config: Config, out: Path) -> dict[str, Any]:
    """Fine-tune with manyheads: accuracies by epoch, and seconds of the updates."""
    listener = AccuracyListener()
    done = train(config, out, listener=listener)
    return {"accuracies": listener.accuracies, "seconds": done.seconds, "updates": done.step}


def numbers(config: Config) -> Iterator[tuple[list[str], list[int]]]:
    """Texts and class numbers of train and valid, cleaned as ours are."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus(config, RunDirectory(Path(folder)))
        texts, labels = corpus.train.sides()
        names = sorted(set(labels))
        yield list(texts), [names.index(label) for label in labels]
        yield [pair.source for pair in corpus.valid], [names.index(pair.target) for pair in corpus.valid]


def settings_of(arguments: argparse.Namespace, *more: str) -> list[str]:
    """The settings that are laid over the recipe."""
    found = [f"data.root={arguments.root}", f"model.init_from={arguments.model}", *PLAIN, *arguments.overrides]
    if arguments.steps:
        found += ["training.epochs=none", f"training.steps={arguments.steps}"]
        found += [f"training.save_every={arguments.steps}"]
    return [*found, *more]


def in_parity(arguments: argparse.Namespace) -> dict[str, Any]:
    """BatchSource on the same batches."""
    settings = settings_of(arguments, "model.dropout=0", "training.precision=fp32")
    return parity(load_config(resolve_recipe(arguments.recipe), settings), arguments.model, arguments.parity)


def side_by_side(arguments: argparse.Namespace) -> dict[str, Any]:
    """Both, one after the other: accuracy and speed."""
    settings = settings_of(arguments)
    config = load_config(resolve_recipe(arguments.recipe), settings)
    train, dev = numbers(config)
    with tempfile.TemporaryDirectory() as folder:
        mine = ours(config, arguments.out or Path(folder) / "run")
    precision = torch.bfloat16 if arguments.bf16 else torch.float32
    other = theirs(config, arguments.model, train, dev, precision)
    found = {"manyheads": mine, "transformers": other}
    for name, one in found.items():
        best, last = max(one["accuracies"]), one["accuracies"][-1]
        speed = one["updates"] / one["seconds"]
        print(
            f"{name:12}  accuracy {100 * best:.2f} best, {100 * last:.2f} last   {one['seconds'] / 60:.2f} minutes "
            f"for {one['updates']} updates, {speed:.2f} a second"
        )
    gain = (other["seconds"] / other["updates"]) / (mine["seconds"] / mine["updates"])
    about = {"recipe": arguments.recipe, "set": settings, "loop": str(precision).removeprefix("torch.")}
    return {**about, **found, "times as fast": round(gain, 2)}


def parse_arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--root")
    parser.add_argument("--model", help="folder of a pre-trained model of transformers")
    parser.add_argument("--steps", type=int, help="number of updates (default: the recipe's epochs)")
    parser.add_argument("--bf16", action="store_true", help="compute the loop of transformers in bf16")
    parser.add_argument("--parity", type=int, metavar="N", help="only compare N updates on the same batches")
    parser.add_argument("--out", type=Path, help="directory of our run (default: a temporary one)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="SECTION.KEY=VALUE")
    tiny = {"recipe": "sst2-finetune", "steps": 2, "parity": 2}
    return machine.parse(parser, tiny=tiny, required=["recipe", "root", "model"])


def main() -> None:
    arguments = parse_arguments()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        if arguments.root is None:
            arguments.root, arguments.model = str(write_labelled(Path(folder))), str(write_encoder(Path(folder)))
        found: dict[str, Any] = {"unit": "s"}
        if arguments.tiny or not arguments.parity:
            found |= side_by_side(arguments)
        if arguments.parity:
            found["parity"] = in_parity(arguments)
    print(json.dumps({**found, **machine.about("transformers")}))


if __name__ == "__main__":
    main()
