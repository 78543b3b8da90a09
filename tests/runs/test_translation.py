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
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.decoding.engine import TorchEngine
from manyheads.runs.corpus import read_corpus
from manyheads.runs.training_tasks import prepare_task
from manyheads.runs.translation import FEWEST, Validation
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.training.distributed import ALONE
from manyheads.training.interruption import Interrupted, Watch
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

    def search(self, rows: Sequence[Sequence[int]], options: SearchOptions, *_: object) -> list[list[Hypothesis]]:
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


# --- a validation that takes too long, or is interrupted ---


def grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Translate two sentences at once."""
    monkeypatch.setattr("manyheads.runs.grouped.GROUP", 2)


def watched(validation: Validation, **attributes: Any) -> CollectingListener:
    listener = CollectingListener()
    validation.watch = Watch(listener, **attributes)
    return listener


def test_a_validation_shows_the_progress_of_its_loss_and_of_its_translations(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped(monkeypatch)
    listener = watched(validation)
    validation(1)
    assert listener.phases == [("validating: loss", 6), ("validating: translating", 6)]


def test_groups_do_not_change_what_is_measured(validation: Validation, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = validation(1)
    grouped(monkeypatch)
    assert validation(1) == whole
    assert whole.scores["bleu"] is not None


def test_a_translation_that_takes_too_long_ends_with_the_groups_that_are_done(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped(monkeypatch)
    Stub(monkeypatch, length=3, seconds=1.0)
    listener = watched(validation)
    validation.longest = 2.5  # seconds; a group takes 2
    assert validation(1).scores["bleu"] is not None
    assert listener.messages == [
        "to keep training.max_minutes, validations are shorter from now on: BLEU by 4 of 6 sentences"
    ]
    assert validation.size == (6, 4)


def test_a_group_is_translated_however_little_time_there_is(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped(monkeypatch)
    Stub(monkeypatch, length=3, seconds=1.0)
    validation.longest = 0.0
    validation(1)
    assert validation.size == (6, 2)


def costly(validation: Validation) -> None:
    """100 pairs whose loss takes 10 seconds, and 64 sentences, each of which takes one."""
    size = len(validation.sources)
    validation.sources = [validation.sources[index % size] for index in range(100)]
    validation.targets = [validation.targets[index % size] for index in range(100)]
    validation.decoded = [validation.decoded[index % size] for index in range(64)]
    validation.scoring, validation.decoding = 10.0, 64.0


@pytest.mark.parametrize(
    ("seconds", "size", "estimate"),
    [
        (100.0, (100, 64), 74.0),
        (42.0, (100, 32), 42.0),
        (26.0, (100, 16), 26.0),
        (20.0, (100, 0), 10.0),  # a BLEU of 10 sentences says nothing
        (10.0, (50, 0), 5.0),
        (0.0, (16, 0), 1.6),
    ],
)
def test_a_validation_is_made_on_as_many_pairs_as_fit(
    validation: Validation, seconds: float, size: tuple[int, int], estimate: float
) -> None:
    costly(validation)
    listener = watched(validation)
    assert validation.shorten(seconds) == pytest.approx(estimate)
    assert validation.size == size
    assert len(listener.messages) == (size != (100, 64))


def test_sentences_are_translated_where_they_decide_what_is_best(validation: Validation) -> None:
    validation.config = validation.config.model_copy(
        update={"training": validation.config.training.model_copy(update={"metric": "bleu"})}
    )
    costly(validation)
    validation.shorten(0.0)
    assert validation.size == (FEWEST, FEWEST)


def test_a_request_to_stop_ends_a_translation_inside_its_first_group(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is told, and finishes all sentences at its next step."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 8  # the loss asks four times, and the search at each step

    steps: list[int] = []
    search = TorchEngine.search

    def counted(engine: TorchEngine, rows: Any, options: SearchOptions, cancelled: Any) -> Any:
        def polled() -> Any:
            found = cancelled()
            steps.append(len(found))
            return found

        return search(engine, rows, options, polled)

    monkeypatch.setattr(TorchEngine, "search", counted)
    watched(validation, stop=stop)
    with pytest.raises(Interrupted):
        validation(1)
    assert 0 in steps
    assert 6 in steps


def test_a_request_to_stop_ends_the_loss(validation: Validation) -> None:
    listener = watched(validation, stop=lambda: True)
    with pytest.raises(Interrupted):
        validation(1)
    assert "validating: translating" not in dict(listener.phases)
