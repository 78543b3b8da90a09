"""Train with the Trainer of manyheads, as `manyheads train` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import torch

from manyheads.allocator import keep_few_kernels, keep_freed_memory
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.reports import SilentListener
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.batches import Indices, MicroBatch
from manyheads.training.distributed import ALONE
from manyheads.training.objective import corpus_nll
from manyheads.training.snapshot import seed_process
from manyheads.training.trainer import Trainer
from peers.corpus import PreparedCorpus, open_prepared
from peers.measured_updates import MeasuredUpdates


class MeasuredTrainer(Trainer):
    measured_updates: MeasuredUpdates

    def remaining_updates(self) -> Iterator[tuple[Indices, Sequence[MicroBatch], int]]:
        """Yield each update when its round has begun."""
        for update in super().remaining_updates():
            self.measured_updates.before_update(sum(batch.target_tokens for batch in update[1]))
            yield update


def never(*_: object) -> NoReturn:
    """Fail: training is stopped long before its first validation and checkpoint."""
    raise AssertionError("the end of training was reached")


class NoStorage:
    """A checkpoint storage that is never used: training is stopped long before the first checkpoint."""

    save = confirm = discard = load = staticmethod(never)


def validation_loss(model: EncoderDecoder, prepared: PreparedCorpus) -> float:
    model.eval()
    nats, tokens = corpus_nll(model, *prepared.valid, bos=BOS, eos=EOS)
    model.train()
    return nats / tokens


def main(folder: Path, precision: str) -> None:
    keep_few_kernels()
    keep_freed_memory()
    prepared = open_prepared(folder)
    training = prepared.config.training
    torch.manual_seed(training.seed)
    model = prepared.task.model()
    seed_process(training.seed, 0)
    trainer = MeasuredTrainer(
        prepared.task.objective(model),
        training,
        prepared.task.updates(ALONE),
        device=torch.device("cpu"),
        precision="bf16" if precision == "bf16" else "fp32",
        listener=SilentListener(),
        validate=never,
        storage=NoStorage(),
    )
    trainer.measured_updates = MeasuredUpdates(lambda: validation_loss(model, prepared))
    trainer.run()
