"""The speed of a machine is measured in a few updates on random tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyheads.config.load import parse_config
from manyheads.data.sampler import Sampler
from manyheads.runs import estimate
from manyheads.runs.estimate import MachineSpeed, _random_batches, measure_speed

CONFIG = parse_config(
    {
        "data": {"source": "de", "target": "en"},
        "tokenizer": {"vocab_size": 97},
        "model": {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
        "training": {"device": "cpu", "precision": "fp32", "batch_tokens": 200, "optimizer": "muon"},
    },
    origin="test",
)


def test_random_batches_are_padded_like_those_of_training() -> None:
    """Compare random pairs of given lengths with the batches of the first epoch."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(1, 30, size=(5_000, 2))
    batches = _random_batches(lengths, 1_000, 97, 7)
    sampler = Sampler(lengths[:, 0] + 1, lengths[:, 1] + 1, batch_tokens=1_000)
    real = [
        len(pairs) * sum(int(lengths[pairs, side].max()) + 1 for side in (0, 1)) for pairs in sampler.epoch(0)[:7]
    ]
    positions = [batch.source.numel() + batch.target_in.numel() for batch in batches]
    assert 0.9 < np.mean(positions) / np.mean(real) < 1.1
    assert all(900 < batch.target_tokens < 1_100 for batch in batches)
    assert all(int(batch.source.max()) < 97 for batch in batches)


def test_a_text_of_one_pair_has_a_batch() -> None:
    assert [batch.target_tokens for batch in _random_batches(np.array([[0, 40]]), 10, 97, 2)] == [41, 41]


def test_passes_and_updates_are_timed_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure with a clock that advances by one second at each reading."""
    ticks = iter(range(10_000))
    monkeypatch.setattr(estimate, "_MAX_SECONDS", 1e9)
    monkeypatch.setattr(estimate, "free_share", lambda device: 0.5)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(ticks))
    speed = measure_speed(CONFIG, np.array([[9, 9], [200, 1]] * 300))
    assert speed.update_seconds == 0.5  # half of the processors were free
    assert speed.pass_seconds == pytest.approx(0.5 / 200)
    assert speed.seconds(400) == pytest.approx(1.5)
    assert speed.disturbed
    assert speed.parameters > 1_000


def test_the_free_share_of_the_processors_is_between_0_and_1() -> None:
    assert 0 < estimate.free_share(torch.device("cpu")) <= 1
    assert estimate.free_share(torch.device("meta")) == 1
    assert not MachineSpeed(1.0, 1.0, 1, 1.0).disturbed
