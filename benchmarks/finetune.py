"""Fine-tune an encoder with manyheads, and with transformers in a plain training loop.

    python benchmarks/finetune.py sst2-finetune --root data/sst2 --model DIR [--steps 50] [--bf16] [--set ...]

Both take the settings of the recipe: epochs, texts an update, learning rate with its warm-up and linear fall, AdamW
with its decay, clipping, the maximum length, dropout (which transformers also applies to attention weights, as the
folder says), pooling by the mean. What the loop does not have is off: word dropout, a moving average. The loop
follows the examples of transformers: texts tokenised beforehand, shuffled in each epoch, each batch padded to its
longest text, matrix products in float32 unless --bf16; its model is AutoModel with the same head as manyheads.

Times are those of the updates alone, validation not counted. Accuracy is that of the last weights, and of the best
of all epochs.

    python benchmarks/finetune.py sst2-finetune --root data/sst2 --model DIR --parity 60

gives both the same head, the same batches in the same order, float32 and no dropout, and prints the largest
differences of losses and gradient norms. `--tiny` does both, with made-up sentences and a random encoder of width
16.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn

from harness import Document, main, option, settings
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.data.training_text import read_corpus
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.reports import SilentListener
from manyheads.runs.train import make_trainer, train
from manyheads.tensors.examples import Examples
from manyheads.text.tokenizer import PAD
from manyheads.training.initialize import with_initial_shape
from manyheads.training.interruption import Watch
from manyheads.training.registry import prepare_task
from material import write_encoder, write_labelled

OFF = ("model.word_dropout=0", "training.layer_decay=1", "training.ema=0")


class AccuracyListener(SilentListener):
    """Store the accuracy of each validation, and print messages."""

    def __init__(self) -> None:
        self.accuracies: list[float] = []

    def message(self, text: str) -> None:
        print(text)

    def validation(self, report: Any) -> None:
        self.accuracies.append(report.scores["accuracy"])
        print(f"manyheads, update {report.step}: accuracy {report.scores['accuracy']:.4f}")


class MeanClassifier(nn.Module):
    """AutoModel, the mean of its hidden states, and the head of manyheads."""

    def __init__(self, model_folder: str, classes: int) -> None:
        super().__init__()
        self.encoder = transformers.AutoModel.from_pretrained(model_folder)
        width = self.encoder.config.hidden_size
        self.pooler, self.output = nn.Linear(width, width), nn.Linear(width, classes)
        self.dropout = nn.Dropout(self.encoder.config.hidden_dropout_prob)

    def forward(self, **batch: Tensor) -> Tensor:
        """Return logits (B, C) for token ids and attention mask (B, S)."""
        hidden = self.encoder(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        return self.output(self.dropout(torch.tanh(self.pooler((hidden * mask).sum(1) / mask.sum(1)))))


Rows = list[dict[str, list[int]]]


def train_transformers(
    config: Config,
    model_folder: str,
    data: tuple[list[str], list[int]],
    dev: tuple[list[str], list[int]],
    precision: torch.dtype,
) -> dict[str, Any]:
    """Fine-tune in a plain loop; return accuracies by epoch, and seconds of the updates."""
    training = config.training
    torch.manual_seed(training.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    rows, dev_rows = (
        [tokenizer(text, truncation=True, max_length=config.data.max_length + 2) for text in texts]
        for texts in (data[0], dev[0])
    )
    model = MeanClassifier(model_folder, len(set(data[1])))
    optimizer = transformers_optimizer(config, model)
    batch_size = training.batch_sentences
    assert batch_size is not None
    updates_per_epoch = -(-len(rows) // batch_size)
    total_updates = training.steps if training.epochs is None else training.epochs * updates_per_epoch
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, training.warmup_steps, total_updates)
    rng, seconds, step = np.random.default_rng(training.seed), 0.0, 0
    accuracies: list[float] = []
    while step < total_updates:
        order, start = rng.permutation(len(rows)), time.perf_counter()
        model.train()
        for begin in range(0, len(order), batch_size):
            if step == total_updates:
                break
            chosen = order[begin : begin + batch_size]
            batch = tokenizer.pad([rows[index] for index in chosen], return_tensors="pt")
            labels = torch.tensor([data[1][index] for index in chosen])
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
        print(f"transformers, update {step}: accuracy {accuracies[-1]:.4f}")
    return {"accuracies": accuracies, "seconds": seconds, "updates": step}


def transformers_optimizer(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    """Return an AdamW that decays only matrices."""
    training = config.training
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=training.betas, eps=training.epsilon)


@torch.inference_mode()
def accuracy(model: nn.Module, tokenizer: Any, rows: Rows, labels: list[int]) -> float:
    """Return the share of correct predictions."""
    model.eval()
    correct = 0
    for begin in range(0, len(rows), 32):
        batch = tokenizer.pad(rows[begin : begin + 32], return_tensors="pt")
        correct += int((model(**batch).argmax(-1) == torch.tensor(labels[begin : begin + 32])).sum())
    return correct / len(rows)


def parity(config: Config, model_folder: str, updates: int) -> dict[str, Any]:
    """Return the largest differences of loss and gradient norm over the first updates."""
    training, differences = config.training, []
    with tempfile.TemporaryDirectory() as folder:
        run, listener = TrainingRun(Path(folder) / "run"), AccuracyListener()
        config = with_initial_shape(config, run, listener)
        task = prepare_task(config, run, read_corpus(config, run.path), listener)
        trainer = make_trainer(task, run, Watch(listener))
        model = MeanClassifier(model_folder, len(task.classes))
        copy_head(trainer.model, model)
        optimizer = transformers_optimizer(config, model)
        their_ids = torch.tensor(
            [
                0 if token_id is None else token_id
                for token_id in read_pretrained(Path(model_folder)).tokenizer.original_ids
            ]
        )
        trainer.model.train()
        model.train()
        for step, indices in enumerate(trainer.batches.epoch(0)[:updates], start=1):
            (batch,) = trainer.batches.batches(0, step - 1, indices)
            assert isinstance(batch, Examples)
            ((_, loss, _),) = trainer.updater.gradients([batch], len(indices))
            rate = trainer.schedule.rate(step, trainer.planned_steps())
            norm = trainer.updater.apply(rate)
            logits = model(input_ids=their_ids[batch.ids], attention_mask=(batch.ids != PAD).long())
            their_loss = nn.functional.cross_entropy(logits, batch.labels)
            their_loss.backward()
            their_norm = nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm or torch.inf)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
            differences.append(
                (abs(loss.item() / len(indices) - their_loss.item()), abs(norm / their_norm.item() - 1))
            )
            print(f"update {step}: loss {their_loss.item():.6f}, {differences[-1][0]:.1e} apart")
    losses, norms = zip(*differences, strict=True)
    return {"updates": len(differences), "loss": max(losses), "norm": max(norms)}


def copy_head(ours: Any, theirs: MeanClassifier) -> None:
    """Copy the head of our model into the pre-trained model of transformers, and switch its dropout off."""
    for our_head, their_head in ((ours.pooler, theirs.pooler), (ours.output, theirs.output)):
        their_head.load_state_dict(our_head.state_dict())
    for module in theirs.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def labelled_texts(config: Config) -> Iterator[tuple[list[str], list[int]]]:
    """Yield texts and class ids of train, then of valid, filtered as for manyheads."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus(config, Path(folder))
        texts, labels = corpus.train.sides()
        names = sorted(set(labels))
        yield list(texts), [names.index(label) for label in labels]
        yield [pair.source for pair in corpus.valid], [names.index(pair.target) for pair in corpus.valid]


def recipe_settings(arguments: argparse.Namespace, *overrides: str) -> list[str]:
    """Return the settings that override the recipe."""
    root_and_model = [f"data.root={arguments.root}", f"model.init_from={arguments.model}"]
    steps = [
        f"training.{name}" for name in ("epochs=none", f"steps={arguments.steps}", f"save_every={arguments.steps}")
    ]
    return [*root_and_model, *OFF, *arguments.overrides, *(steps if arguments.steps else ()), *overrides]


def side_by_side(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fine-tune with manyheads, then with transformers; return accuracy and speed."""
    overrides = recipe_settings(arguments)
    config = load_config(resolve_recipe(arguments.recipe), overrides)
    texts, dev = labelled_texts(config)
    precision = torch.bfloat16 if arguments.bf16 else torch.float32
    listener = AccuracyListener()
    trained = train(config, arguments.out or arguments.folder / "run", listener=listener)
    results = {
        "manyheads": {
            "accuracies": listener.accuracies,
            "seconds": trained.seconds,
            "updates": trained.step,
        },
        "transformers": train_transformers(config, str(arguments.model), texts, dev, precision),
    }
    for result in results.values():
        best, last = max(result["accuracies"]), result["accuracies"][-1]
        result |= {"best": best, "last": last, "updates a second": result["updates"] / result["seconds"]}
    ours, theirs = (result["updates a second"] for result in results.values())
    about = {"recipe": arguments.recipe, "set": overrides, "loop": str(precision).removeprefix("torch.")}
    return {**about, **results, "times as fast": round(ours / theirs, 2)}


def measure(arguments: argparse.Namespace) -> Document:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    document = side_by_side(arguments) if arguments.tiny or not arguments.parity else {}
    if arguments.parity:
        overrides = recipe_settings(arguments, "model.dropout=0", "training.precision=fp32")
        config = load_config(resolve_recipe(arguments.recipe), overrides)
        document["parity"] = parity(config, str(arguments.model), arguments.parity)
    return document


OPTIONS = {
    "recipe": option(str, "recipe or TOML file", tiny="sst2-finetune", required=True),
    "--root": option(Path, "folder of the text", tiny=write_labelled, required=True),
    "--model": option(Path, "folder of a pre-trained model of transformers", tiny=write_encoder, required=True),
    "--steps": option(int, "updates (default: the recipe's epochs)", tiny=2),
    "--bf16": option(False, "compute the loop of transformers in bf16"),
    "--parity": option(int, "only compare N updates on the same batches", metavar="N", tiny=2),
    "--out": option(Path, "directory of our run (default: a temporary one)"),
    "--set": settings(),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="s", packages=["transformers"])
