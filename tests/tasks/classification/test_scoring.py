"""A classifier from files to scores: training, resuming, evaluation, and errors in its text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runs.labelled import examples, labelled_config, write_labelled, write_tsv
from tests.runs.parts import Interrupting, metrics, training_report
from tests.runs.test_train import assert_same_run
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.data.training_text import read_corpus
from manyheads.errors import DataError, RunError
from manyheads.inference.classifier import Classifier
from manyheads.runs.compare import compare
from manyheads.runs.evaluate import evaluate
from manyheads.runs.examine_config import examine_config_text
from manyheads.runs.resume import average
from manyheads.runs.train import train
from manyheads.tasks.classification.scoring import _in_order, evaluate_labels
from manyheads.tensors.examples import NO_LABEL
from manyheads.text.tokenizer import BOS, EOS, PAD
from manyheads.training.batch_sources import CorpusUpdates
from manyheads.training.distributed import ALONE, World
from manyheads.training.registry import prepare_task


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("labelled"))


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run with every feature that uses randomness; tests only read it."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(labelled_config(corpus, **WITH_RANDOMNESS), out)
    return out


WITH_RANDOMNESS: dict[str, dict[str, Any]] = {
    "tokenizer": {"sampling": 0.2},
    "model": {"dropout": 0.2, "word_dropout": 0.1},
    "training": {"accumulation": 2, "class_weights": "balanced", "patience": 9},
}


def with_other_rows(corpus: Path, folder: Path, **rows: list[tuple[str, ...]]) -> Path:
    """Write a copy of the corpus with other rows in some splits, and return its folder."""
    for split in ("train", "valid", "test"):
        plain = (corpus / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
        write_tsv(folder / f"{split}.tsv", rows.get(split, [tuple(line.split("\t")) for line in plain]))
    return folder


def test_a_run_has_labels_a_card_and_scores_by_their_names(finished: Path) -> None:
    assert json.loads((finished / "labels.json").read_text()) == {"labels": ["0", "1"], "texts": 1}
    card = (finished / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-classification" in card
    assert "manyheads classify" in card
    validations = [record for record in metrics(finished) if record["kind"] == "validation"]
    assert [record["step"] for record in validations] == [4, 8, 12]
    assert all(0 <= record["accuracy"] <= 1 and 0 <= record["macro_f1"] <= 1 for record in validations)
    state = json.loads((finished / "checkpoints/step-12/state.json").read_text())["state"]["progress"]
    assert state["best"] == max(record["accuracy"] for record in validations), "chosen by training.metric"


def test_an_interrupted_training_ends_like_an_uninterrupted_training(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    config, out = labelled_config(corpus, **WITH_RANDOMNESS), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(config, out, listener=Interrupting(step=6))
    train(config, out)
    assert_same_run(out, finished)


def test_few_examples_are_memorized(corpus: Path, tmp_path: Path) -> None:
    folder = with_other_rows(corpus, tmp_path / "text", train=[*examples(32)], valid=[*examples(32)])
    training = {"steps": 60, "batch_sentences": 32, "label_smoothing": 0.0, "save_every": 60}
    config = labelled_config(folder, data={"drop_overlap": False, "test": None}, training=training)
    train(config, tmp_path / "run")
    found = Classifier.load(tmp_path / "run", device="cpu").classify([text for _, text in examples(32)])
    assert [result.label for result in found] == [label for label, _ in examples(32)]


def test_evaluate_scores_the_labels_that_classify_gives(finished: Path, tmp_path: Path) -> None:
    result = evaluate(finished, split="valid")
    lines = (Path(Classifier.load(finished).config.data.root) / "valid.tsv").read_text().splitlines()
    right, texts = zip(*(line.split("\t") for line in lines), strict=True)
    found = Classifier.load(finished, device="cpu").classify(texts)
    assert result.outputs == [own.label for own in found]
    assert result.scores.accuracy == np.mean([own.label == label for own, label in zip(found, right, strict=True)])
    nats = [-math.log(result.probabilities[label]) for result, label in zip(found, right, strict=True)]
    assert result.loss == pytest.approx(np.mean(nats))
    plain = result.to_json()
    assert {"task", "loss", "accuracy", "macro_f1", "calibration_error", "classes", "confusion", "examples"} <= set(
        plain
    )
    assert json.loads(json.dumps(plain)) == plain
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "labels").write_text("".join(f"{label}\n" for label in right))
    same = evaluate(finished, source=tmp_path / "texts", reference=tmp_path / "labels")
    assert (same.scores, same.outputs) == (result.scores, result.outputs)
    assert any("accuracy" in line for line in result.lines())


def test_two_classifiers_are_compared_on_the_texts_of_the_first(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    train(labelled_config(corpus, training={"steps": 1, "save_every": 1}), tmp_path / "other")
    found = compare(finished, tmp_path / "other")
    for run, name in ((finished, "score"), (tmp_path / "other", "baseline")):
        own = evaluate(run)
        scores = [100 * own.scores.accuracy, 100 * own.scores.macro_f1]
        assert [getattr(result, name) for result in found.results] == pytest.approx(scores)
    assert found.lines()[2].startswith("accuracy ")
    assert {"run", "other", "text", "accuracy", "macro_f1", "verdict"} == set(found.to_json())


def test_validation_in_training_has_the_scores_of_evaluate(finished: Path) -> None:
    """Both score the best weights, which are published."""
    best = max((r for r in metrics(finished) if r["kind"] == "validation"), key=lambda record: record["accuracy"])
    result = evaluate(finished, split="valid")
    assert result.scores.accuracy == pytest.approx(best["accuracy"])
    assert result.scores.macro_f1 == pytest.approx(best["macro_f1"])
    assert result.loss == approx(best["loss"])


def test_empty_texts_are_not_scored(finished: Path) -> None:
    classifier, listener = Classifier.load(finished), CollectingListener()
    result = evaluate_labels(classifier, ["a great film", "", "dull plot"], ["1", "?", "0"], listener)
    assert (result.examples, len(result.outputs), result.outputs[1]) == (2, 3, "")
    assert "1 of 3 lines without text: left out" in listener.messages


def test_training_examples_of_one_label_are_refused(corpus: Path, tmp_path: Path) -> None:
    folder = with_other_rows(corpus, tmp_path, train=[("1", text) for _, text in examples(9)])
    with pytest.raises(DataError, match='every training example has the label "1": there is nothing to tell apart'):
        train(labelled_config(folder), tmp_path / "run")


UNSEEN = r'labels that training has not seen: "2"{}, "so so"{}\. It has seen: 0, 1\. Mend those labels'
OTHERS: list[tuple[str, ...]] = [("1", "great"), ("so so", "a film"), ("2", "the plot")]


def test_labels_that_training_has_not_seen_are_named(corpus: Path, finished: Path, tmp_path: Path) -> None:
    folder = with_other_rows(corpus, tmp_path / "valid", valid=OTHERS)
    lines = UNSEEN.format(r" \(line 3\)", r" \(line 2\)")
    with pytest.raises(DataError, match=f"data.valid has {lines}"):
        train(labelled_config(folder), tmp_path / "run")
    folder = with_other_rows(corpus, tmp_path / "test", test=OTHERS)
    with pytest.raises(DataError, match=f"data.test has {lines}"):  # not after hours of training
        train(labelled_config(folder), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()
    with pytest.raises(DataError, match=f"data.test has {UNSEEN.format('', '')}"):
        evaluate(finished, overrides=[f"data.root={folder}"])
    text, labels = tmp_path / "texts", tmp_path / "labels"
    text.write_text("a film\nthe plot\n", encoding="utf-8")
    labels.write_text("2\nso so\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"labels has {UNSEEN.format('', '')}"):
        evaluate(finished, source=text, reference=labels)


def test_swapped_columns_and_a_validation_set_of_one_label_are_reported(corpus: Path, tmp_path: Path) -> None:
    rows = [(text, label) for label, text in examples(40)]
    listener = CollectingListener()
    with pytest.raises(DataError, match=r"data\.valid has labels that training has not seen"):
        train(
            labelled_config(with_other_rows(corpus, tmp_path / "turned", train=rows)),
            tmp_path / "run",
            listener=listener,
        )
    assert any(
        "40 labels in 40 examples" in message and "other way round" in message for message in listener.messages
    )
    rows = sorted(examples(40))  # all of label 1 stand last
    folder, listener = with_other_rows(corpus, tmp_path / "sorted", train=rows), CollectingListener()
    short = {"steps": 1}
    train(labelled_config(folder, data={"valid": 0.2}, training=short), tmp_path / "sorted-run", listener=listener)
    (warning,) = [message for message in listener.messages if message.startswith("warning: all")]
    assert 'all 8 examples of data.valid have the label "1"' in warning
    assert "Shuffle the lines of train" in warning
    listener = CollectingListener()
    train(labelled_config(corpus, training=short), tmp_path / "plain", listener=listener)
    assert not [message for message in listener.messages if message.startswith("warning")]


def test_labels_with_blanks_two_texts_and_unbalanced_classes_are_trained(corpus: Path, tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = [("not  at all", text, "the end") for _, text in examples(45)]
    rows += [("for sure", "great", "plot"), ("for sure", "lovely actor", "film")]
    folder = with_other_rows(corpus, tmp_path / "text", train=rows, valid=rows[-9:], test=rows[-4:])
    config = labelled_config(folder, data={"drop_overlap": False}, model={"token_types": 2, "pooling": "cls"})
    warning = training_report(config, tmp_path / "run", "warning: unbalanced classes")
    content = json.loads((tmp_path / "run/labels.json").read_text())
    assert content == {"labels": ["for sure", "not at all"], "texts": 2}
    assert '45 examples of "not at all", 2 of "for sure"' in warning
    classifier = Classifier.load(tmp_path / "run")
    (found,) = classifier.classify([("great", "plot")])
    assert found.label in content["labels"]


def test_early_stopping_waits_for_accuracy(corpus: Path, tmp_path: Path) -> None:
    no_learning = {"steps": 30, "save_every": 1, "learning_rate": 1e-30, "weight_decay": 0.0, "optimizer": "adamw"}
    config = labelled_config(corpus, training={**no_learning, "patience": 2, "metric": "accuracy"})
    done = train(config, tmp_path / "run")
    assert (done.step, done.best_step, done.stopped_early) == (3, 1, True)


@pytest.mark.parametrize("batch_tokens", [1, 40, 10_000])
def test_scores_do_not_depend_on_batches_or_order(
    finished: Path, monkeypatch: pytest.MonkeyPatch, batch_tokens: int
) -> None:
    """Invariant L."""
    classifier = Classifier.load(finished, device="cpu")
    labels, texts = zip(*examples(31, seed=8), strict=True)
    right = evaluate_labels(classifier, texts, labels, CollectingListener())
    monkeypatch.setattr("manyheads.decoding.text_batches._BATCH_TOKENS", batch_tokens)
    found = evaluate_labels(classifier, texts[::-1], labels[::-1], CollectingListener())
    assert found.loss == approx(right.loss)
    assert (found.scores.accuracy, found.scores.confusion) == (right.scores.accuracy, right.scores.confusion)
    assert found.outputs == right.outputs[::-1]


def test_texts_that_are_cut_are_counted(corpus: Path, tmp_path: Path) -> None:
    listener = CollectingListener()
    train(labelled_config(corpus, data={"max_length": 5}), tmp_path / "run", listener=listener)
    messages = [message for message in listener.messages if "longer than 5 tokens: cut there" in message]
    for message, split in zip(messages, ("train", "valid"), strict=True):
        assert 0 < int(message.split()[0]) <= 60
        assert f"texts of data.{split} are" in message


def test_labels_that_are_numbers_are_sorted_as_numbers() -> None:
    for given, expected in (({"10", "9", "-1"}, ["-1", "9", "10"]), ({"10", "9", "x"}, ["10", "9", "x"])):
        assert sorted(given, key=_in_order(given)) == expected


def test_labels_of_another_run_are_refused(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(labelled_config(corpus, training={"steps": 1}), out)
    (out / "labels.json").write_text('{"labels": ["1", "0"], "texts": 1}')
    with pytest.raises(RunError, match=r"labels\.json is not the one this run was begun with"):
        Classifier.load(out)


def test_an_averaged_classifier_classifies(finished: Path, tmp_path: Path) -> None:
    out = average(finished, out=tmp_path / "mean")
    assert Classifier.load(out).labels.names == ("0", "1")


def updates(corpus: Path, folder: Path, *worlds: World, **sections: dict[str, Any]) -> list[CorpusUpdates]:
    config, run = labelled_config(corpus, **sections), RunDirectory(folder)
    task = prepare_task(config, run, read_corpus(config, run.path), CollectingListener())
    made = [task.updates(world) for world in worlds or (ALONE,)]
    assert all(isinstance(own, CorpusUpdates) for own in made)
    return made


def labelled_rows(found: Iterable[Any]) -> list[tuple[list[int], int]]:
    """Return (ids, label) of every text of some batches, sorted."""
    return sorted(
        ([token for token in row if token != PAD], label)
        for part in found
        for row, label in zip(part.ids.tolist(), part.labels.tolist(), strict=True)
        if label != NO_LABEL
    )


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_an_epoch_holds_every_example_once_for_any_number_of_processes(
    corpus: Path, tmp_path: Path, processes: int
) -> None:
    """Processes have equal numbers of micro-batches, because they synchronize in every micro-batch."""
    made = updates(corpus, tmp_path, *(World(rank, processes) for rank in range(processes)))
    tokenizer = made[0].maker.tokenizers.source
    found = []
    for position, pairs in enumerate(made[0].epoch(3)):
        parts = [own.batches(3, position, pairs) for own in made]
        assert len({len(own) for own in parts}) == 1
        found += [part for own in parts for part in own]
    lines = [line.split("\t") for line in (corpus / "train.tsv").read_text().splitlines()]
    expected = sorted(([BOS, *ids, EOS], int(label)) for label, ids in zip(
        [label for label, _ in lines], tokenizer.encode([text for _, text in lines]), strict=True
    ))  # fmt: skip
    assert labelled_rows(found) == expected
    assert len(made[0].epoch(0)) == 5


def test_a_token_budget_groups_texts_of_similar_lengths(corpus: Path, tmp_path: Path) -> None:
    training = {"batch_tokens": 120, "batch_sentences": None}
    (made,) = updates(corpus, tmp_path, training=training, data={"max_length": 9})
    parts = [part for position, pairs in enumerate(made.epoch(0)) for part in made.batches(0, position, pairs)]
    tokens = [part.source_tokens for part in parts]
    assert len(parts) == math.ceil(sum(tokens) / 120)
    assert max(part.ids.size(1) for part in parts) == 11, "cut, with its marks"
    spreads = [int((part.ids != PAD).sum(1).max() - (part.ids != PAD).sum(1).min()) for part in parts]
    assert np.mean(spreads) < 5, "like lengths together"


def test_subwords_are_sampled_again_in_each_epoch(corpus: Path, tmp_path: Path) -> None:
    (made,) = updates(corpus, tmp_path, tokenizer={"sampling": 0.3})
    pairs = np.arange(20)
    first, second, again = (labelled_rows(made.batches(epoch, 0, pairs)) for epoch in (0, 1, 0))
    assert first == again
    assert first != second


def test_the_report_of_the_data_counts_texts_and_labels(corpus: Path) -> None:
    found = examine_config_text(labelled_config(corpus), "labelled")
    train_split = found.to_json()["text"]["splits"]["train"]
    assert (train_split["read"], train_split["target"]["characters"]["largest"]) == (60, 1)
    assert train_split["filtered"]["ratio"] == 0
    assert any(line.startswith("label words") for line in found.lines())
