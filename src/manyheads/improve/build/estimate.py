"""Estimate the duration of a step on this machine: from its last run, or from a few updates of training."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitext.lines import count_lines, read_lines
from manyheads.config.schema import Config
from manyheads.improve.build.inputs import input_files
from manyheads.improve.build.plan import Plan
from manyheads.improve.build.runner import StepStatus
from manyheads.improve.build.schema import TrainStep
from manyheads.runs.estimate import measure_speed
from manyheads.runs.suggest import TOKENS_A_WORD

_LINES = 5_000  # of a text whose lengths are measured
_USUAL_TOKENS = 20  # tokens of a sentence if the text does not exist yet


def estimate_seconds(plan: Plan, status: StepStatus) -> float | None:
    """Return the seconds that a step will take, validations not counted; None if nothing is known.

    The estimate of a step that has run before is its last duration. The speed of a training that has not run is
    measured on random tokens, in a few seconds.
    """
    if not status.reasons:
        return 0.0
    step = plan.steps[status.name]
    if not isinstance(step, TrainStep):
        return status.earlier.seconds or None if status.earlier else None
    config = plan.configs[status.name]
    if step.models and step.models[0] in plan.configs:
        config = _with_shape(config, plan.configs[step.models[0]])
    if config.training.max_minutes is not None:
        return 60 * config.training.max_minutes
    if not config.spec.reads_pairs:
        return None
    files = [files for files in input_files(plan, status.name).values() if all(path.is_file() for path in files)]
    lengths = _token_lengths(files[0] if files else [])
    steps = _updates_of(config, files, lengths)
    return None if steps is None else steps * measure_speed(config, lengths).seconds(config.training.batch_tokens)


def _with_shape(config: Config, start: Config) -> Config:
    layers = {"num_decoder_layers": config.model.init_decoder_layers or start.model.num_decoder_layers}
    return config.model_copy(update={"model": start.model.model_copy(update=layers), "tokenizer": start.tokenizer})


def _token_lengths(files: list[Path]) -> NDArray[np.int64]:
    """Return the approximate number of tokens of the first pairs of a text (N, 2)."""
    if len(files) != 2:
        return np.full((_LINES, 2), _USUAL_TOKENS)
    words = [[len(line.split()) for line in islice(read_lines(path), _LINES)] for path in files]
    rows = np.array(list(zip(*words, strict=False)), dtype=np.float64).reshape(-1, 2)
    return np.maximum(1, np.ceil(TOKENS_A_WORD * rows)).astype(np.int64)


def _updates_of(config: Config, files: list[list[Path]], lengths: NDArray[np.int64]) -> int | None:
    """Return the number of updates of a training; None if it is set in epochs and the text does not exist yet."""
    training = config.training
    if training.epochs is None:
        return training.steps
    if not files:
        return None
    pairs = count_lines(files[0][0])
    pairs_per_update = training.batch_sentences or training.batch_tokens / float(lengths[:, 1].mean() + 1)
    return training.epochs * math.ceil(pairs / pairs_per_update)
