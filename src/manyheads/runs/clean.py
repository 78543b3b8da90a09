"""Clean the training text of a configuration: files, languages, and the two runs that score it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.clean import Texts
from bitext.cleaning.corpus import DirtyText, clean_text
from bitext.cleaning.report import CleanReport
from bitext.files import sum_of
from bitext.lines import InvalidUtf8
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.files import sha256
from manyheads.config.schema import Config
from manyheads.data.reading import READINGS
from manyheads.data.training_text import read_split
from manyheads.errors import UsageError
from manyheads.inference.translation.directions import require_one_direction
from manyheads.inference.translation.translator import Translator
from manyheads.reports import NO_LISTENER, Listener
from manyheads.tasks.translation.scoring import target_nats


def clean(
    config: Config,
    out: Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    listener: Listener = NO_LISTENER,
) -> CleanReport:
    """Write the kept and the removed pairs of data.train to `out`, with a report.

    Finished shards are kept in `out`, so that the same command resumes after an interruption.

    Args:
        config: names the text; its section `[clean]` has the thresholds.
        out: folder to write into.
        workers: number of processes; None computes in this process.
        scheduler: address of a Dask scheduler; see `open_executor`.
        listener: receives the progress.

    Raises:
        DataError: the text cannot be read, leaves no pairs, or the folder cannot be written.
        UsageError: the configuration is not for translation.
    """
    if not config.spec.reads_pairs:
        raise UsageError(f'task = "{config.task}": data clean takes pairs of sentences, task = "translation".')
    require_one_direction(config, "data clean")
    score = None
    if config.clean.models is not None:
        forward, backward = (str(Path(run).absolute()) for run in config.clean.models)
        score = partial(_dual_scores, forward, backward)
    return clean_text(
        DirtyText(
            partial(_read_train, config),
            (config.data.source, config.data.target),
            _text_key(config),
            _text_files(config),
            _name_of(config),
        ),
        out,
        config.clean.options,
        listener.phase,
        listener.message,
        model_score=score,
        workers=workers,
        scheduler=scheduler,
    )


def _read_train(config: Config) -> Iterator[Pair]:
    """Read the training pairs; bytes that are not UTF-8 become U+FFFD, which a rule removes."""
    replaced: InvalidUtf8 = "replace"
    return read_split(config.data.model_copy(update={"invalid_utf8": replaced}), "train", "pairs")


def _name_of(config: Config) -> str:
    """Return the name of the files of the kept text: the split, if data.train names one."""
    train = config.data.train
    return train if isinstance(train, str) and Path(train).name == train and "." not in train else "train"


def _text_files(config: Config) -> list[Path]:
    """Return the files of data.train; none for the text of a data set."""
    return list(READINGS["pairs"].files(config.data, "train")) if config.data.reads_files("train") else []


def _text_key(config: Config) -> str:
    """Return a hash of the text, the settings, and the weights of the two runs."""
    runs = [RunDirectory.existing(Path(run)).path for run in config.clean.models or ()]
    sums = (*map(sum_of, _text_files(config)), *(sha256(run / "model.safetensors") for run in runs))
    settings = json.dumps([config.data.model_dump(), config.clean.model_dump()])
    return hashlib.sha256("".join([settings, *sums]).encode()).hexdigest()


@lru_cache(2)
def _load_once(run: str) -> Translator:
    return Translator.load(run, device="cpu")


def _dual_scores(forward: str, backward: str, texts: Texts) -> NDArray[np.float32]:
    """Return the score of pairs by dual conditional cross-entropy (N,), at most 0 (Junczys-Dowmunt 2018).

    The score is minus the sum of the absolute difference of the two cross-entropies and their mean, in nats a
    token: both models must agree.
    """
    forward_nats = _cross_entropies(_load_once(forward), texts[0], texts[1])
    backward_nats = _cross_entropies(_load_once(backward), texts[1], texts[0])
    return -(np.abs(forward_nats - backward_nats) + (forward_nats + backward_nats) / 2).astype(np.float32)


def _cross_entropies(translator: Translator, sources: list[str], targets: list[str]) -> NDArray[np.float64]:
    """Return the cross-entropy of each pair (N,), in nats a target token, the end mark counted."""
    longest = translator.config.data.max_length
    rows = [
        [row[: longest - 1] for row in tokenizer.encode(texts)]
        for tokenizer, texts in ((translator.tokenizers.source, sources), (translator.tokenizers.target, targets))
    ]
    nats_per_token = np.zeros(len(sources))
    for batch, nats, lengths in target_nats(translator.model, *rows):
        nats_per_token[batch] = (nats.sum(1) / lengths).double().numpy()
    return nats_per_token
