"""Estimate how long a configuration trains on this machine, from a few updates on random tokens.

The seconds of a forward and backward pass over some tokens, and of an update of the weights, are measured. The
number of updates and the tokens of each are calculated. No text is read or tokenised.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.allocator import keep_few_kernels, keep_freed_memory
from manyheads.checks.plan import DISTURBED
from manyheads.config.schema import Config
from manyheads.data.batch import Batch, make_batch
from manyheads.data.sampler import Sampler
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS
from manyheads.training.distributed import ALONE
from manyheads.training.objective import Objective, translation_loss
from manyheads.training.precision import pick_device, pick_precision, synchronise
from manyheads.training.update import Updater

_SAMPLE_TOKENS = {"cpu": 1_024}  # target tokens of a measured pass; other devices take the tokens of an update
_SAMPLE_PAIRS = 100_000  # pairs whose lengths the batches are made of
_MAX_PASSES, _MAX_SECONDS = 4, 4.0  # measured passes after the first, and seconds after which no further one begins
_LEARNING_RATE = 1e-6  # learning rate of the measured updates
_PROBE = 0.3  # seconds of matrix products that show which share of the processors this process gets


@dataclass(frozen=True)
class MachineSpeed:
    """Speed of a model on this machine without the other programs that ran while it was measured.

    Attributes:
        pass_seconds: seconds of a forward and backward pass, per target token.
        update_seconds: seconds of an update of the weights.
        parameters: number of parameters of the model.
        free: share of the processors that this process got while measuring, 0 to 1; 1 if the device is not the CPU.
    """

    pass_seconds: float
    update_seconds: float
    parameters: int
    free: float

    def seconds(self, batch_tokens: int) -> float:
        """Return the seconds of an update of `batch_tokens` target tokens."""
        return self.pass_seconds * batch_tokens + self.update_seconds

    @property
    def disturbed(self) -> bool:
        """Return whether other programs kept the processors busy."""
        return self.free < DISTURBED


def measure_speed(config: Config, lengths: NDArray[np.int64]) -> MachineSpeed:
    """Measure the speed of a new translation model, in a few seconds.

    Args:
        config: the configuration.
        lengths: number of source and target tokens of each pair (N, 2); pairs above data.max_length are left out.
    """
    keep_few_kernels()
    keep_freed_memory()
    training = config.training.model_copy(update={"compile": False})
    device = pick_device(training.device)
    size = config.tokenizer.vocab_size
    model = EncoderDecoder(config.model, size, size).to(device).train()
    objective = Objective(model, partial(translation_loss, smoothing=training.label_smoothing))
    updater = Updater(
        objective, training, device=device, precision=pick_precision(training.precision, device), world=ALONE
    )
    tokens = min(training.batch_tokens, _SAMPLE_TOKENS.get(device.type, training.batch_tokens))
    short = lengths[lengths.max(axis=1) <= config.data.max_length]
    batches = _random_batches(short if len(short) else lengths, tokens, size, 1 + _MAX_PASSES)
    passes, updates, begin = [], [], time.perf_counter()
    for batch in batches:
        start = time.perf_counter()
        updater.gradients([batch], batch.target_tokens)
        synchronise(device)
        middle = time.perf_counter()
        updater.apply(_LEARNING_RATE)
        synchronise(device)
        passes.append((middle - start) / batch.target_tokens)
        updates.append(time.perf_counter() - middle)
        if len(passes) > 1 and time.perf_counter() - begin > _MAX_SECONDS:
            break
    parameters = sum(parameter.numel() for parameter in model.parameters())
    free = free_share(device)
    return MachineSpeed(
        free * statistics.median(passes[1:]), free * statistics.median(updates[1:]), parameters, free
    )


def free_share(device: torch.device) -> float:
    """Return the share of the processors that this process gets beside other programs, from 0 to 1.

    It is measured on matrix products. The time of an update is multiplied by it, so that two estimates agree if the
    machine was busy during one of them. It is 1 where the device is not the CPU.
    """
    if device.type != "cpu":
        return 1.0
    matrix, threads = torch.ones(768, 768), torch.get_num_threads()
    start, used = time.perf_counter(), time.process_time()
    while (passed := time.perf_counter() - start) < _PROBE:
        torch.mm(matrix, matrix)
    return min(1.0, (time.process_time() - used) / (passed * threads))


def _random_batches(lengths: NDArray[np.int64], tokens: int, vocab_size: int, count: int) -> list[Batch]:
    """Return batches of random tokens, about `tokens` in the target, drawn and padded as in training.

    Args:
        lengths: number of tokens of source and target of each pair (N, 2).
        tokens: target tokens a batch, end symbols counted.
        vocab_size: size of the vocabulary.
        count: number of batches; they repeat where the text has fewer.
    """
    rng = np.random.default_rng(1)
    lengths = np.maximum(1, lengths[rng.permutation(len(lengths))[:_SAMPLE_PAIRS]])
    updates = Sampler(lengths[:, 0] + 1, lengths[:, 1] + 1, batch_tokens=tokens).epoch(0)
    batches = []
    for number in range(count):
        rows = lengths[updates[number % len(updates)]]
        sides = [[rng.integers(len(SPECIALS), vocab_size, size=length) for length in side] for side in rows.T]
        batches.append(make_batch(*sides, pad=PAD, bos=BOS, eos=EOS))
    return batches


def processors_text(device_name: str = "auto") -> str:
    """Return a readable name of the device, such as "these 2 cores"."""
    device = pick_device(device_name)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type != "cpu":
        return f"this {device.type} device"
    cores = torch.get_num_threads()
    return "this core" if cores == 1 else f"these {cores} cores"
