"""The updates of a run are functions of its corpus, seed, epoch and position alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.runs.parts import SENTENCES, make_config, write_corpus, write_split
from tests.tolerances import within
from tests.training.parts import CollectingListener

from bitext.file_names import Split
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, DataConfig
from manyheads.config.schema.tasks import Reads
from manyheads.data import training_text as module
from manyheads.data.store import TokenStore
from manyheads.data.training_text import Corpus, read_corpus
from manyheads.errors import DataError
from manyheads.tasks.translation import task as preparation
from manyheads.tensors.pairs import Batch
from manyheads.text.tokenizer import PAD, TokenizerPair
from manyheads.text.training import train_tokenizers
from manyheads.training.batch_sources import CorpusUpdates
from manyheads.training.distributed import ALONE, World
from manyheads.training.registry import prepare_task


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def updates(config: Config, folder: Path, *worlds: World) -> CorpusUpdates:
    run = RunDirectory(folder)
    task = prepare_task(config, run, read_corpus(config, run.path), CollectingListener())
    made = task.updates(*worlds or (ALONE,))
    return made


def prepare(config: Config, run: RunDirectory, corpus: Corpus) -> tuple[TokenizerPair, TokenStore]:
    task = prepare_task(config, run, corpus, CollectingListener())
    return task.tokenizers, task.store


def tokenizers_of(found: CorpusUpdates) -> TokenizerPair:
    return found.maker.tokenizers


def all_batches(found: CorpusUpdates, epoch: int) -> list[list[Batch]]:
    return [found.batches(epoch, position, pairs) for position, pairs in enumerate(found.epoch(epoch))]


def equal_batches(first: list[list[Batch]], second: list[list[Batch]]) -> bool:
    flat, also = list(chain.from_iterable(first)), list(chain.from_iterable(second))
    return len(flat) == len(also) and all(
        torch.equal(a.source, b.source) and torch.equal(a.target_in, b.target_in)
        for a, b in zip(flat, also, strict=True)
    )


def texts(found: CorpusUpdates, batches: list[list[Batch]]) -> list[tuple[str, str]]:
    source, target = tokenizers_of(found).source, tokenizers_of(found).target
    return sorted(
        (source.decode(source_ids), target.decode(target_ids))
        for parts in batches
        for batch in parts
        for source_ids, target_ids in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True)
    )


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_an_epoch_holds_every_pair_of_the_corpus_once(corpus: Path, tmp_path: Path, sampling: float) -> None:
    config = make_config(corpus, tokenizer={"sampling": sampling})
    found = updates(config, tmp_path)
    expected = sorted(zip(*found.maker.texts.sides(), strict=True))
    for epoch in (0, 3):
        assert texts(found, all_batches(found, epoch)) == expected


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_an_update_is_a_function_of_seed_epoch_and_position(corpus: Path, tmp_path: Path, sampling: float) -> None:
    config = make_config(corpus, tokenizer={"sampling": sampling})
    first, second = updates(config, tmp_path / "a"), updates(config, tmp_path / "b")
    all_batches(second, 7)
    torch.randn(3)
    assert equal_batches(all_batches(first, 2), all_batches(second, 2))
    assert equal_batches(all_batches(first, 2), all_batches(first, 2))


def test_subwords_are_sampled_again_in_each_epoch_by_the_seed(corpus: Path, tmp_path: Path) -> None:
    def tokens(seed: int, epoch: int) -> dict[str, list[int]]:
        config = make_config(corpus, tokenizer={"sampling": 0.3}, training={"seed": seed})
        found = updates(config, tmp_path / str(seed))
        rows = [row for parts in all_batches(found, epoch) for batch in parts for row in batch.source.tolist()]
        return {tokenizers_of(found).source.decode(row): [token for token in row if token != PAD] for row in rows}

    first = tokens(1, 0)
    for other in (tokens(1, 1), tokens(2, 0)):
        assert first.keys() == other.keys()
        assert sum(first[text] != other[text] for text in first) > len(first) / 3


def test_subwords_of_the_same_pairs_differ_in_another_epoch_or_position(corpus: Path, tmp_path: Path) -> None:
    found = updates(make_config(corpus, tokenizer={"sampling": 0.3}), tmp_path)
    pairs = np.arange(20)
    rows = [found.batches(epoch, position, pairs)[0].source for epoch, position in ((0, 0), (0, 1), (1, 0))]
    assert not any(torch.equal(rows[first], rows[second]) for first, second in ((0, 1), (0, 2), (1, 2)))


def test_subwords_of_the_two_sides_are_sampled_independently(corpus: Path, tmp_path: Path) -> None:
    """A text that is its own translation must not be split alike on both sides."""
    same = write_corpus(tmp_path / "same")
    for language in ("de", "en"):
        (same / f"train.{language}").write_bytes((corpus / "train.de").read_bytes())
    found = updates(make_config(same, tokenizer={"sampling": 0.3}), tmp_path / "run")
    rows = [pair for parts in all_batches(found, 0) for batch in parts
            for pair in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True)]  # fmt: skip
    clean = [([t for t in source if t != PAD], [t for t in target if t != PAD]) for source, target in rows]
    assert sum(source != target for source, target in clean) > len(clean) / 3


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 11])
def test_all_processes_have_equal_numbers_of_micro_batches_which_make_up_the_update(
    corpus: Path, tmp_path: Path, processes: int, count: int
) -> None:
    """Processes synchronize in every micro-batch: one more in one process would block all."""
    config = make_config(corpus, training={"accumulation": 2})
    worlds = [World(rank, processes) for rank in range(processes)]
    parts = [updates(config, tmp_path, world).batches(0, 0, np.arange(count)) for world in worlds]
    assert {len(own) for own in parts} == {min(2, -(-count // processes))}
    update = updates(config, tmp_path).batches(0, 0, np.arange(count))
    real = [[part for part in own if part.target_tokens] for own in parts]
    assert max(len(part.source) for own in real for part in own) == -(-count // (2 * processes))
    for name in ("source", "target_in", "target_out"):
        rows, expected = (
            sorted(row[row != PAD].tolist() for own in both for part in own for row in getattr(part, name))
            for both in (real, [update])
        )
        assert rows == expected


@pytest.mark.parametrize(("budget", "expected"), [({"batch_tokens": 60}, None), ({"batch_sentences": 9}, {9})])
def test_the_budget_of_tokens_or_sentences_is_kept(
    corpus: Path, tmp_path: Path, budget: dict[str, Any], expected: set[int] | None
) -> None:
    found = updates(make_config(corpus, training=budget), tmp_path)
    sizes = {len(pairs) for pairs in found.epoch(0)}
    tokens = [batch.target_tokens for parts in all_batches(found, 0) for batch in parts]
    if expected is not None:
        assert sizes == expected
    else:
        assert all(count < 60 + max(found.maker.store.target.lengths) + 1 for count in tokens)
        assert len(tokens) == math.ceil(sum(tokens) / 60), "end marks counted"


def test_lines_are_described_by_their_numbers_in_the_files(corpus: Path, tmp_path: Path) -> None:
    """Line 3 of the training files is a dropped duplicate; the lines after it keep their numbers."""
    doubled = write_corpus(tmp_path / "doubled")
    for language in ("de", "en"):
        lines = (doubled / f"train.{language}").read_text(encoding="utf-8").split("\n")
        (doubled / f"train.{language}").write_text("\n".join([*lines[:2], lines[0], *lines[2:]]), encoding="utf-8")
    found = updates(make_config(doubled), tmp_path / "run")
    assert found.describe(np.array([0, 1, 2])) == "3 pairs, lines 1, 2, 4"
    assert found.describe(np.arange(9)).startswith("9 pairs, lines 1, 2, 4, 5, 6, ...")


def test_token_ids_are_made_once(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, run = make_config(corpus), RunDirectory(tmp_path)
    loaded = read_corpus(config, run.path)
    tokenizers, store = prepare(config, run, loaded)
    run.begin(config, tokenizers, {})
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    again, second = prepare(config, run, loaded)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")} == made
    assert again.source.sha256 == tokenizers.source.sha256
    assert [row.tolist() for row in second.source] == [row.tolist() for row in store.source]


# --- the text is read once ---


def test_text_that_has_not_changed_is_not_read_again(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, run = make_config(corpus), RunDirectory(tmp_path)
    first = read_corpus(config, run.path)
    splits: list[str] = []
    read = module.read_split

    def recording_read(data: DataConfig, split: Split, reads: Reads) -> Iterator[Pair]:
        splits.append(split)
        return read(data, split, reads)

    monkeypatch.setattr(module, "read_split", recording_read)
    second = read_corpus(config, run.path)
    assert splits == ["valid", "test"]
    assert (second.sha256, second.counts) == (first.sha256, first.counts)
    assert list(second.train.sides()[1]) == list(first.train.sides()[1])


@pytest.mark.parametrize("change", ["train", "valid", "limit", "ratio"])
def test_text_that_has_changed_is_read_again(tmp_path: Path, change: str) -> None:
    folder, run = write_corpus(tmp_path / "corpus"), RunDirectory(tmp_path / "run")
    config = make_config(folder)
    before = read_corpus(config, run.path)
    settings: dict[str, Any] = {"limit": {"limit": 10}, "ratio": {"max_ratio": 1.2}}.get(change, {})
    if not settings:
        write_split(folder, change, SENTENCES[3:30])
    after = read_corpus(make_config(folder, data=settings), run.path)
    assert after.sha256 != before.sha256


def test_the_fingerprint_is_that_of_the_text_and_not_of_the_files(tmp_path: Path) -> None:
    first, second = write_corpus(tmp_path / "a"), write_corpus(tmp_path / "b")
    for path in second.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    found = [read_corpus(make_config(root), tmp_path / f"run-{root.name}") for root in (first, second)]
    assert found[0].sha256 == found[1].sha256


# --- several corpora ---


def two_corpora(tmp_path: Path, **data: Any) -> tuple[Config, CorpusUpdates]:
    """Return the configuration and the updates of two corpora: 36 pairs, and 6 others in separate files."""
    folder = write_corpus(tmp_path / "corpus")
    write_split(
        folder, "extra", [(f"{german} und mehr", f"{english} and more") for german, english in SENTENCES[:6]]
    )
    config = make_config(folder, data={"more": [("extra.de", "extra.en")], **data})
    return config, updates(config, tmp_path / "run")


def test_several_corpora_are_mixed_in_each_epoch(tmp_path: Path) -> None:
    _, found = two_corpora(tmp_path)
    assert found.maker.texts.corpora.tolist() == [0] * 36 + [1] * 6
    together = texts(found, all_batches(found, 0))
    assert len(together) == 42
    assert sum("und mehr" in source for source, _ in together) == 6
    assert found.describe(np.array([35, 36])) == "2 pairs, lines train:36, extra.de and extra.en:1"


@pytest.mark.parametrize(
    ("data", "frequencies"),
    [
        ({"weights": [1, 3]}, (1, 3)),
        ({"weights": [0.5, 2]}, (0.5, 2)),
        ({"weights": [0, 2]}, (0, 2)),
    ],
)
def test_weights_set_how_often_each_corpus_is_drawn(
    tmp_path: Path, data: dict[str, Any], frequencies: tuple[float, float]
) -> None:
    _, found = two_corpora(tmp_path, **data)
    counts = np.zeros(42)
    for epoch in range(60):
        np.add.at(counts, np.concatenate(list(found.epoch(epoch))), 1 / 60)
    assert counts[:36].mean() == within(frequencies[0], 0.05)
    assert counts[36:].mean() == within(frequencies[1], 0.15)


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_pairs_that_are_dropped_for_their_length_shift_no_other_pair(tmp_path: Path, sampling: float) -> None:
    """Texts, corpora and line numbers stay those of their pairs."""
    folder = write_corpus(tmp_path / "corpus")
    long = [(" ".join(["die Katze schläft"] * n), " ".join(["the cat sleeps"] * n)) for n in (30, 31, 32)]
    main, extra = (
        SENTENCES[:5],
        [(f"{german} und mehr", f"{english} and more") for german, english in SENTENCES[5:8]],
    )
    write_split(folder, "train", [*long[:2], *main[:2], long[2], *main[2:]])
    write_split(folder, "extra", extra)
    config = make_config(
        folder,
        data={"more": [("extra.de", "extra.en")], "weights": [1, 2], "max_length": 60, "drop_overlap": False},
        tokenizer={"sampling": sampling, "kind": "bpe", "vocab_size": 70},
    )
    found = updates(config, tmp_path / "run")
    assert found.maker.store.too_long == 3
    assert texts(found, all_batches(found, 0)) == sorted([*main, *extra, *extra])
    assert found.describe(np.array([0, 2])) == "2 pairs, lines train:3, train:6"


def test_weights_that_leave_no_pair_are_named(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "corpus")
    write_split(folder, "long", [("die Katze schläft " * 30, "the cat sleeps " * 30)])
    data = {"more": [("long.de", "long.en")], "weights": [0, 1], "max_length": 60}
    with pytest.raises(DataError, match=r"data\.weights = \[0\.0, 1\.0\] leaves no pair to train with"):
        updates(make_config(folder, data=data), tmp_path / "run")


def test_a_corpus_without_a_pair_is_named(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "corpus")
    write_split(folder, "extra", [("", "x")])
    with pytest.raises(DataError, match=r"The corpus extra\.de and extra\.en leaves no pairs"):
        updates(make_config(folder, data={"more": [("extra.de", "extra.en")]}), tmp_path / "run")


def test_subwords_are_learnt_from_evenly_spread_pairs_of_a_large_corpus(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.training.preparation._MOST_PAIRS", 4)
    training_texts: list[tuple[list[str], list[str]]] = []

    def recording_train(config: object, source: list[str], target: list[str], *languages: str) -> TokenizerPair:
        training_texts.append((list(source), list(target)))
        return train_tokenizers(config, source, target, *languages)

    monkeypatch.setattr(preparation, "train_tokenizers", recording_train)
    config, run = make_config(corpus), RunDirectory(tmp_path)
    loaded = read_corpus(config, run.path)
    prepare(config, run, loaded)
    step = -(-len(loaded.train) // 4)
    expected = tuple(list(side)[::step] for side in loaded.train.sides())
    assert training_texts == [expected]
    assert len(training_texts[0][0]) <= 4 < len(loaded.train)


# --- stages ---


def staged(root: Path, stages: list[dict[str, Any]], weights: tuple[float, ...] | None = None) -> Config:
    """Return a configuration of two corpora with training stages."""
    write_split(root, "other", SENTENCES[:9])
    return make_config(
        root,
        data={"more": ("other",), "weights": weights, "drop_duplicates": False},
        training={"steps": 40, "batch_tokens": 40, "stages": tuple(stages)},
    )


def test_one_stage_has_the_batches_of_its_weights(corpus: Path, tmp_path: Path) -> None:
    one = updates(staged(corpus, [{"weights": (2.0, 1.0)}]), tmp_path / "one")
    plain = updates(staged(corpus, [], (2.0, 1.0)), tmp_path / "plain")
    for epoch in (0, 3):
        assert [pairs.tolist() for pairs in one.epoch(epoch)] == [pairs.tolist() for pairs in plain.epoch(epoch)]


def test_a_stage_ends_after_its_steps_and_the_next_one_draws_by_its_weights(corpus: Path, tmp_path: Path) -> None:
    found = updates(
        staged(corpus, [{"steps": 7, "weights": (0.0, 1.0)}, {"weights": (1.0, 0.0)}]), tmp_path / "run"
    )
    first = found.stages.samplers[0].number
    epochs = [found.epoch(number) for number in range(-(-7 // first) + 1)]
    corpora = [set(found.maker.texts.corpora[found.maker.store.rows[pairs]]) for plan in epochs for pairs in plan]
    assert corpora[:7] == [{1}] * 7
    assert corpora[7:] == [{0}] * len(epochs[-1])
    assert sum(map(len, epochs[:-1])) == 7
    assert len(epochs[-1]) > 0
    assert 0 <= found.heaviest() < len(found.epoch(0))
