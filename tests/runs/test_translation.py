"""The cost of a validation is known before the first one, whatever an untrained model writes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.runs.parts import make_config, write_corpus

from manyheads.checkpoint import RunDirectory
from manyheads.decoding.engine import TorchEngine
from manyheads.runs.corpus import read_corpus
from manyheads.runs.training_tasks import prepare_task
from manyheads.runs.translation import Validation
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.training.distributed import ALONE
from manyheads.training.log import SilentListener

module = importlib.import_module("manyheads.runs.translation")
Search = Callable[..., list[list[Hypothesis]]]


@pytest.fixture
def validation(tmp_path: Path) -> Validation:
    """Six pairs, all of them decoded, and a new model."""
    config = make_config(write_corpus(tmp_path / "corpus"), training={"valid_sentences": 6})
    run = RunDirectory(tmp_path / "run")
    kind = prepare_task(config, run, read_corpus(config, run), SilentListener())
    torch.manual_seed(1)
    found = kind.validation(kind.model().eval(), ALONE)
    assert isinstance(found, Validation)
    return found


class Stub:
    """In place of the search: outputs of one length, so many seconds for each row; and what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, length: int, seconds: float) -> None:
        self.now = 0.0
        self.length = length
        self.seconds = seconds
        self.searched: list[int] = []
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(TorchEngine, "search", lambda engine, *asked: self.search(*asked))

    def search(self, rows: Sequence[Sequence[int]], options: SearchOptions) -> list[list[Hypothesis]]:
        self.searched.append(len(rows))
        self.now += self.seconds * len(rows)
        tokens, scores = (7,) * self.length, (-1.0,) * self.length
        return [[Hypothesis(tokens, -1.0, -1.0, scores, ended=True)] for _ in rows]


def expected_steps(validation: Validation) -> float:
    """Tokens of the references, end marks counted."""
    targets = validation.translator.tokenizers.target.encode([pair.target for pair in validation.decoded])
    return sum(len(ids) + 1 for ids in targets)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_sample_is_scaled_up_to_all_pairs_but_for_packing_the_weights(
    validation: Validation, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = Stub(monkeypatch, length=99, seconds=0.5)
    assert validation.seconds(every) == pytest.approx(0.5 + 6 * 0.5)
    assert stub.searched == [1, 6 // every]


def test_steps_that_a_new_model_leaves_out_are_added(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that ends every output at once makes one step a sentence where a trained one makes all."""
    Stub(monkeypatch, length=0, seconds=0.5)
    assert validation.seconds(1) == pytest.approx(0.5 + 6 * 0.5 * expected_steps(validation) / 6)


def test_a_new_model_writes_no_more_than_a_trained_one(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit of its own it repeats itself up to the limit of the search, several times as long."""
    written: list[int] = []
    search = TorchEngine.search

    def watched(engine: TorchEngine, *asked: Any) -> list[list[Hypothesis]]:
        found = search(engine, *asked)
        written.append(sum(len(one.tokens) + 1 for (one,) in found))
        return found

    monkeypatch.setattr(TorchEngine, "search", watched)
    assert validation.seconds(1) > 0
    assert 0 < written[-1] <= expected_steps(validation) + 6
    validation(0)
    assert written[-1] > 2 * expected_steps(validation)


def test_without_decoding_the_loss_alone_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(write_corpus(tmp_path / "corpus"), training={"valid_sentences": 0})
    run = RunDirectory(tmp_path / "run")
    kind = prepare_task(config, run, read_corpus(config, run), SilentListener())
    found = kind.validation(kind.model().eval(), ALONE)
    assert isinstance(found, Validation)
    stub = Stub(monkeypatch, length=1, seconds=1.0)
    assert found.seconds(1) == 0.0
    assert stub.searched == []
