"""The cost of a validation is estimated before the first one, independently of an untrained model's outputs."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.runs.parts import make_config, write_corpus
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.data.training_text import read_corpus
from manyheads.inference.engines import AutoEngine
from manyheads.reports import SilentListener
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.tasks.translation.scoring import _MIN_PAIRS, Validation, target_nats
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.distributed import ALONE
from manyheads.training.interruption import Interrupted, Watch
from manyheads.training.objective import corpus_nll
from manyheads.training.registry import prepare_task

module = importlib.import_module("manyheads.tasks.translation.scoring")
Search = Callable[..., list[list[Hypothesis]]]


@pytest.fixture
def validation(tmp_path: Path) -> Validation:
    """Return a validation of six pairs, all decoded, with a new model."""
    config = make_config(write_corpus(tmp_path / "corpus"), training={"valid_sentences": 6})
    run = RunDirectory(tmp_path / "run")
    task = prepare_task(config, run, read_corpus(config, run.path), SilentListener())
    torch.manual_seed(1)
    found = task.validation(task.model().eval(), ALONE)
    return found


class FakeSearch:
    """Replaces the search: outputs of one length, a fixed time for each row, and a record of the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, length: int, seconds: float) -> None:
        self.now = 0.0
        self.length = length
        self.seconds = seconds
        self.searched: list[int] = []
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(AutoEngine, "search", lambda engine, *asked: self.search(*asked))

    def search(self, rows: Sequence[Sequence[int]], options: SearchOptions, *_: object) -> list[list[Hypothesis]]:
        self.searched.append(len(rows))
        self.now += self.seconds * len(rows)
        tokens, scores = (7,) * self.length, (-1.0,) * self.length
        return [[Hypothesis(tokens, -1.0, -1.0, scores, ended=True)] for _ in rows]


def expected_steps(validation: Validation) -> float:
    """Return the number of tokens of the references with their end marks."""
    targets = validation.translator.tokenizers.target.encode([pair.target for pair in validation.decoded])
    return sum(len(ids) + 1 for ids in targets)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_the_time_of_a_sample_without_weight_packing_is_scaled_up_to_all_pairs(
    validation: Validation, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSearch(monkeypatch, length=99, seconds=0.5)
    assert validation.seconds(every) == pytest.approx(0.5 + 6 * 0.5)
    assert fake.searched == [1, 6 // every]


def test_steps_that_a_new_model_leaves_out_are_added(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that ends every output at once makes one step a sentence; a trained model makes all steps."""
    FakeSearch(monkeypatch, length=0, seconds=0.5)
    assert validation.seconds(1) == pytest.approx(0.5 + 6 * 0.5 * expected_steps(validation) / 6)


def test_a_new_model_writes_no_more_than_a_trained_model(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this limit, a new model repeats itself up to the limit of the search, several times as long."""
    written: list[int] = []
    search = AutoEngine.search

    def counting_search(engine: AutoEngine, *asked: Any) -> list[list[Hypothesis]]:
        found = search(engine, *asked)
        written.append(sum(len(hypothesis.tokens) + 1 for (hypothesis,) in found))
        return found

    monkeypatch.setattr(AutoEngine, "search", counting_search)
    assert validation.seconds(1) > 0
    assert 0 < written[-1] <= expected_steps(validation) + 6
    validation(0)
    assert written[-1] > 2 * expected_steps(validation)


def test_no_search_is_timed_for_a_validation_without_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(write_corpus(tmp_path / "corpus"), training={"valid_sentences": 0})
    run = RunDirectory(tmp_path / "run")
    task = prepare_task(config, run, read_corpus(config, run.path), SilentListener())
    found = task.validation(task.model().eval(), ALONE)
    fake = FakeSearch(monkeypatch, length=1, seconds=1.0)
    assert found.seconds(1) == 0.0
    assert fake.searched == []


# --- a validation that takes too long, or is interrupted ---


def use_small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the validation translate two sentences at once."""
    monkeypatch.setattr("manyheads.inference.translation.grouped._TEXTS_PER_CALL", 2)


def watch_validation(validation: Validation, **attributes: Any) -> CollectingListener:
    listener = CollectingListener()
    validation.watch = Watch(listener, **attributes)
    return listener


def test_a_validation_shows_the_progress_of_its_loss_and_of_its_translations(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_small_groups(monkeypatch)
    listener = watch_validation(validation)
    validation(1)
    assert listener.phases == [("validating: loss", 6), ("validating: translating", 6)]


def test_groups_do_not_change_the_scores(validation: Validation, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = validation(1)
    use_small_groups(monkeypatch)
    assert validation(1) == expected
    assert expected.scores["bleu"] is not None


def test_a_translation_that_takes_too_long_ends_with_the_groups_that_are_done(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_small_groups(monkeypatch)
    FakeSearch(monkeypatch, length=3, seconds=1.0)
    listener = watch_validation(validation)
    validation.longest = 2.5  # seconds; a group takes 2
    assert validation(1).scores["bleu"] is not None
    assert listener.messages == [
        "to keep training.max_minutes, validations are shorter from now on: BLEU by 4 of 6 sentences"
    ]
    assert validation.size == (6, 4)


def test_one_group_is_translated_even_without_time(validation: Validation, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_groups(monkeypatch)
    FakeSearch(monkeypatch, length=3, seconds=1.0)
    validation.longest = 0.0
    validation(1)
    assert validation.size == (6, 2)


def make_costly(validation: Validation) -> None:
    """Give the validation 100 pairs whose loss takes 10 seconds, and 64 sentences that take one second each."""
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
def test_a_validation_is_shortened_to_as_many_pairs_as_fit(
    validation: Validation, seconds: float, size: tuple[int, int], estimate: float
) -> None:
    make_costly(validation)
    listener = watch_validation(validation)
    assert validation.shorten(seconds) == pytest.approx(estimate)
    assert validation.size == size
    assert len(listener.messages) == (size != (100, 64))


def test_sentences_are_translated_where_bleu_chooses_the_best_checkpoint(validation: Validation) -> None:
    validation.config = validation.config.model_copy(
        update={"training": validation.config.training.model_copy(update={"metric": "bleu"})}
    )
    make_costly(validation)
    validation.shorten(0.0)
    assert validation.size == (_MIN_PAIRS, _MIN_PAIRS)


def test_a_request_to_stop_ends_a_translation_inside_its_first_group(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is notified, and finishes all sentences at its next step."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 8  # the loss asks four times, and the search at each step

    steps: list[int] = []
    search = AutoEngine.search

    def counting_cancelled(
        engine: AutoEngine, rows: Any, options: SearchOptions, constraints: Any, cancelled: Any
    ) -> Any:
        def polled() -> Any:
            found = cancelled()
            steps.append(len(found))
            return found

        return search(engine, rows, options, constraints, polled)

    monkeypatch.setattr(AutoEngine, "search", counting_cancelled)
    watch_validation(validation, stop=stop)
    with pytest.raises(Interrupted):
        validation(1)
    assert 0 in steps
    assert 6 in steps


def test_a_request_to_stop_ends_the_loss(validation: Validation) -> None:
    listener = watch_validation(validation, stop=lambda: True)
    with pytest.raises(Interrupted):
        validation(1)
    assert "validating: translating" not in dict(listener.phases)


def test_pairs_longer_than_learned_positions_are_named_before_training_and_have_no_loss(tmp_path: Path) -> None:
    """A long line of train is left out as well; without the long lines, the loss is the same."""
    losses, messages = [], []
    for long in (True, False):
        folder = write_corpus(tmp_path / f"corpus-{long}")
        if long:
            for path in folder.iterdir():
                lines = path.read_text(encoding="utf-8").split("\n")
                filler = " ".join(lines * 9)
                place = len(lines) - 1 if path.name.startswith("train") else 2
                path.write_text("\n".join([*lines[:place], filler, *lines[place:]]), encoding="utf-8")
        config = make_config(folder, model={"positions": "learned", "max_positions": 40})
        run, listener = RunDirectory(tmp_path / f"run-{long}"), CollectingListener()
        task = prepare_task(config, run, read_corpus(config, run.path), SilentListener())
        assert task.too_long == long
        torch.manual_seed(1)
        validate = task.validation(task.model().eval(), ALONE, Watch(listener))
        messages.append([message for message in listener.messages if "tokens on a side" in message])
        losses.append(validate(0).loss)
    assert losses[0] == losses[1]
    assert not messages[1]
    assert re.search(
        r"1 of 7 pairs of data\.valid \(\S+ and \S+\) have more than 39 tokens .*: line 3\.", messages[0][0]
    )


def test_the_nats_of_the_tokens_add_up_to_those_of_the_corpus(validation: Validation) -> None:
    nats, tokens = corpus_nll(validation.model, validation.sources, validation.targets, bos=BOS, eos=EOS)
    batches = list(target_nats(validation.model, validation.sources, validation.targets))
    assert sorted(int(pair) for batch, _, _ in batches for pair in batch) == list(range(len(validation.sources)))
    assert sum(int(lengths.sum()) for _, _, lengths in batches) == tokens
    assert sum(float(values.sum()) for _, values, _ in batches) == approx(nats, magnitude=nats)
    for batch, values, lengths in batches:
        for pair, row, length in zip(batch, values, lengths, strict=True):
            assert int(length) == len(validation.targets[pair]) + 1
            assert not row[int(length) :].any()
