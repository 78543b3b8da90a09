"""Prepare what all contenders share: settings, text tokenised once, batches, and the validation text.

Everything is in one folder: a run directory of manyheads, `settings.json`, and the same tokens as text for the
toolkits that read text, pieces separated by spaces.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, DataConfig, ModelConfig, TokenizerConfig, TrainingConfig
from manyheads.data.batches import fixed_batches
from manyheads.data.ragged import Ragged
from manyheads.data.store import TokenStore
from manyheads.data.training_text import open_corpus, read_corpus
from manyheads.reports import SilentListener
from manyheads.tensors.pairs import Batch, make_batch
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.training.batches import prefetch_updates
from manyheads.training.distributed import ALONE
from manyheads.training.registry import prepare_task
from manyheads.training.task import TrainingTask

MARKS = {"pad": PAD, "bos": BOS, "eos": EOS}
FOREVER = 10**9  # updates: more than any comparison computes
SMALL = {"d_model": 16, "d_ff": 24, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}


def configuration(root: str, tiny: bool) -> Config:
    """Return the settings of the comparison; with --tiny, of a small model."""
    return Config(
        data=DataConfig(root=root, source="de", target="en", valid="val"),
        tokenizer=TokenizerConfig(vocab_size=300 if tiny else 8_000),
        model=ModelConfig(**(SMALL if tiny else {})),
        training=TrainingConfig(
            steps=FOREVER, save_every=FOREVER, learning_rate=1e-3, warmup_steps=100, valid_sentences=0
        ),
    )


@dataclass(frozen=True)
class PreparedCorpus:
    """The corpus as the contenders that import manyheads read it.

    Attributes:
        task: the training task with its text, tokenizers and token ids.
        valid: token ids of the validation pairs, sources and targets.
    """

    task: TrainingTask
    valid: tuple[list[list[int]], list[list[int]]]

    @property
    def config(self) -> Config:
        return self.task.config

    @property
    def size(self) -> int:
        """Return the number of pieces of the joint vocabulary."""
        return self.task.tokenizers.target.size

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of all updates, epoch after epoch, prefetched as in training."""
        updates = self.task.updates(ALONE)
        for epoch in itertools.count():
            for _, micro_batches in prefetch_updates(updates, epoch, updates.epoch(epoch), 0, torch.device("cpu")):
                yield from micro_batches

    def valid_batches(self) -> Iterator[Batch]:
        """Yield the batches of the validation text, pairs of similar length together."""
        sources, targets = self.valid
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        for pairs in fixed_batches(np.array(lengths), self.config.training.batch_tokens):
            yield make_batch([sources[pair] for pair in pairs], [targets[pair] for pair in pairs], **MARKS)


def prepare_corpus(config: Config, folder: Path) -> None:
    """Read and tokenise the text into a folder, unless it is there already."""
    settings = folder / "settings.json"
    if settings.is_file() and json.loads(settings.read_text()) == json.loads(json.dumps(config.model_dump())):
        return
    run = RunDirectory(folder / "run")
    corpus = read_corpus(config, run.path)
    task = prepare_task(config, run, corpus, SilentListener())
    assert isinstance(task.store, TokenStore)
    run.begin(config, task.tokenizers, {})
    write_text(folder, task.tokenizers.target, {"de": task.store.source, "en": task.store.target})
    settings.write_text(json.dumps(config.model_dump()))


def write_text(folder: Path, tokenizer: Tokenizer, sides: dict[str, Ragged]) -> None:
    """Write the training pairs and the vocabulary as text, the vocabulary in the order of the ids."""
    (folder / "vocabulary.txt").write_text(
        "".join(f"{piece}\n" for piece in tokenizer.pieces(range(tokenizer.size)))
    )
    for language, rows in sides.items():
        with (folder / f"train.{language}").open("w") as file:
            for row in range(len(rows)):
                print(*tokenizer.pieces(rows[row].tolist()), file=file)


def open_prepared(folder: Path) -> PreparedCorpus:
    run = RunDirectory.existing(folder / "run")
    config = run.config()
    corpus = open_corpus(config, run.path)
    task = prepare_task(config, run, corpus, SilentListener())
    tokenizers = task.tokenizers
    valid = (
        tokenizers.source.encode([pair.source for pair in corpus.valid]),
        tokenizers.target.encode([pair.target for pair in corpus.valid]),
    )
    return PreparedCorpus(task, valid)
