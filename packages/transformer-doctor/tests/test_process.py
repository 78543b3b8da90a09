"""Data, metrics and schedules: the defects around a model are named, alone and together."""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import pytest
import torch
from sacrebleu import corpus_bleu, sentence_bleu
from torch import Tensor

from specimens.planted import BOS, EOS, PAD
from transformer_doctor import (
    examine_bleu,
    examine_collate,
    examine_encoding,
    examine_evaluation,
    examine_schedule,
    examine_split,
    examine_split_function,
)

MARKS = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS}
Rows = list[list[int]]


# Batches


def padded(rows: Rows, length: int = 0) -> Tensor:
    longest = max([length, *map(len, rows)])
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def batch(sources: Rows, targets: Rows, *, limit: int, fixed: int = 0) -> dict[str, Tensor]:
    return {
        "source": padded([[*row[: limit - 1], EOS] for row in sources], fixed),
        "target": padded([[BOS, *row[: limit - 2], EOS] for row in targets], fixed),
    }


@pytest.mark.parametrize(
    ("limit", "fixed", "names"),
    [
        (5000, 0, []),
        (64, 0, ["end-kept-on-cut-targets", "silent-cut"]),
        (5000, 64, ["fixed-padding"]),
        (64, 64, ["end-kept-on-cut-targets", "fixed-padding", "silent-cut"]),
    ],
)
def test_cut_rows_and_fixed_padding_are_named(limit: int, fixed: int, names: list[str]) -> None:
    report = examine_collate(lambda *rows: batch(*rows, limit=limit, fixed=fixed), **MARKS)
    assert sorted(report.names) == names


def test_cutting_without_an_end_symbol_and_with_a_warning_is_no_defect() -> None:
    def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
        if max(map(len, sources)) > 60:
            warnings.warn("1 source was cut", stacklevel=1)
        return padded([row[:60] for row in sources]), padded([[BOS, *row, EOS][:60] for row in targets])

    assert not examine_collate(collate, **MARKS).findings


# Tokenizers


class Letters:
    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet

    def encode(self, text: str) -> list[int]:
        return [self.alphabet.find(letter) + 1 for letter in text]

    def decode(self, ids: list[int]) -> str:
        return "".join("?" if token == 0 else self.alphabet[token - 1] for token in ids)


SOURCE, TARGET = Letters("abcdefgh "), Letters("hgfedcbaxyz ")
TEXTS = [("abba cab", "baza fax"), ("dead beef", "fey gaff"), ("face", "hazy dyad")]


def test_a_text_encoded_by_the_other_tokenizer_is_named() -> None:
    def source_tokenizer_for_both(source: str, target: str) -> tuple[list[int], list[int]]:
        return SOURCE.encode(source), SOURCE.encode(target)

    def swapped(source: str, target: str) -> tuple[list[int], list[int]]:
        return TARGET.encode(source), SOURCE.encode(target)

    report = examine_encoding(source_tokenizer_for_both, TEXTS, source=SOURCE, target=TARGET)
    assert report.names == ["wrong-tokenizer"]
    assert "0 of 3 target texts" in report.findings[0].evidence
    assert examine_encoding(swapped, TEXTS, source=SOURCE, target=TARGET).names == ["wrong-tokenizer"]


def test_the_right_tokenizers_give_no_alarm_and_a_lossy_tokenizer_fails_the_round_trip() -> None:
    def encode(source: str, target: str) -> tuple[list[int], list[int]]:
        return SOURCE.encode(source), [BOS + 90, *TARGET.encode(target), EOS + 90]

    marks = (BOS + 90, EOS + 90)
    assert not examine_encoding(encode, TEXTS, source=SOURCE, target=TARGET, marks=marks).findings
    unknown = [*TEXTS, ("a", "quiz")]
    report = examine_encoding(encode, unknown, source=SOURCE, target=TARGET, marks=marks)
    assert report.names == ["round-trip"]
    assert "3 of 4 target texts" in report.findings[0].evidence


# Perplexity

LOSSES = [[2.0, 1.5, 2.5, 1.0], [4.0], [0.5, 0.7], [3.0, 3.5, 2.9]]


def evaluated(batches: list[Any], *, how: str) -> float:
    means = [sum(losses) / len(losses) for losses in batches]
    tokens = [loss for losses in batches for loss in losses]
    return {
        "right": math.exp(sum(tokens) / len(tokens)),
        "right loss": sum(tokens) / len(tokens),
        "means": math.exp(sum(means) / len(means)),
        "means of losses": sum(means) / len(means),
        "means of perplexities": sum(map(math.exp, means)) / len(means),
        "last": math.exp(means[-1]),
        "worst": math.exp(max(means)),
    }[how]


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ("right", []),
        ("right loss", []),
        ("means", ["mean-of-batch-means"]),
        ("means of losses", ["mean-of-batch-means"]),
        ("means of perplexities", ["mean-of-batch-means"]),
        ("last", ["last-batch-loss"]),
        ("worst", ["mean-of-batch-means"]),
    ],
)
def test_figures_that_depend_on_the_batching_are_named(how: str, names: list[str]) -> None:
    merged = [loss for losses in LOSSES for loss in losses]
    report = examine_evaluation(lambda batches: evaluated(batches, how=how), LOSSES, merged)
    assert report.names == names


# BLEU


def sacre(hypotheses: list[str], references: list[str]) -> float:
    return corpus_bleu(hypotheses, [references]).score


def test_sacrebleu_itself_is_bleu_as_percent_and_as_share() -> None:
    assert not examine_bleu(sacre).findings
    assert not examine_bleu(lambda *texts: sacre(*texts) / 100).findings


def test_scores_that_are_not_bleu_are_named() -> None:
    def sentences(hypotheses: list[str], references: list[str]) -> float:
        scores = [sentence_bleu(one, [two]).score for one, two in zip(hypotheses, references, strict=True)]
        return sum(scores) / len(scores)

    def swallowing(hypotheses: list[str], references: list[str]) -> float:
        kept = [pair for pair in zip(hypotheses, references, strict=True) if pair[0]]
        return sacre([one for one, _ in kept], [two for _, two in kept])

    def characters(hypotheses: list[str], references: list[str]) -> float:
        return corpus_bleu(hypotheses, [references], tokenize="char").score

    assert examine_bleu(sentences).names == ["not-bleu"]
    assert examine_bleu(characters).names == ["not-bleu"]
    assert examine_bleu(swallowing).names == ["errors-swallowed"]
    assert sorted(examine_bleu(lambda *texts: swallowing(*texts) + 1).names) == ["errors-swallowed", "not-bleu"]


# Splits

CORPUS = [(f"satz nummer {'abc'[i % 3]} von {'defghij'[i % 7]}", f"sentence {'klmno'[i % 5]}") for i in range(60)]


def test_copies_and_near_copies_of_test_data_are_found() -> None:
    fresh = [("ein ganz anderer text hier", "quite another text here")]
    assert not examine_split(CORPUS, fresh).findings
    assert examine_split(CORPUS, CORPUS[:5]).names == ["tested-on-training-data"]
    near = [(source.upper() + "!", target + " 7") for source, target in CORPUS[:5]]
    report = examine_split(CORPUS, near)
    assert report.names == ["tested-on-training-data"]
    assert "near copies of 5 more" in report.findings[0].evidence
    assert not examine_split(["one two three"], ["one two four"]).findings
    assert examine_split(["one two three four"], ["one two five four"]).names == ["tested-on-training-data"]


def test_a_single_copy_in_a_large_test_set_is_a_note() -> None:
    test = [f"{'abcdefgh'[i % 8]} {'ijklmno'[i % 7]} {'pqrstuvwxyz'[i % 11]}" for i in range(99)]
    report = examine_split(["x", test[0]], test)
    assert report.ok
    assert report.names == ["tested-on-training-data"]


def test_a_split_that_changes_is_named() -> None:
    lines = [chr(97 + i) * 9 for i in range(26)]

    def split(order: random.Random) -> tuple[list[str], list[str]]:
        mixed = order.sample(lines, 26)
        return mixed[13:], mixed[:13]

    unseeded = random.Random(1)
    assert examine_split_function(lambda: split(unseeded)).names == ["unseeded-split"]
    assert not examine_split_function(lambda: split(random.Random(1))).findings


# Schedules


class WarmUp:
    """Warm-up over twelve steps."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer, self.steps = optimizer, 0

    def step(self) -> None:
        self.steps += 1
        self.optimizer.param_groups[0]["lr"] = min(self.steps, 12) * 1e-3


class WarmUpWithEmptyState(WarmUp):
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass


class WarmUpWithState(WarmUp):
    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.steps = state_dict["steps"]


def adam() -> torch.optim.Optimizer:
    return torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))], 1e-3)


@pytest.mark.parametrize(
    ("schedule", "found"), [(WarmUp, True), (WarmUpWithEmptyState, True), (WarmUpWithState, False)]
)
def test_a_schedule_without_state_is_named(schedule: type[WarmUp], found: bool) -> None:
    def make() -> tuple[torch.optim.Optimizer, WarmUp]:
        optimizer = adam()
        return optimizer, schedule(optimizer)

    assert examine_schedule(make).names == ["schedule-without-state"] * found


def test_schedules_of_torch_give_no_alarm() -> None:
    schedulers = torch.optim.lr_scheduler

    def make(kind: str) -> tuple[torch.optim.Optimizer, Any]:
        optimizer = adam()
        if kind == "lambda":
            return optimizer, schedulers.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        return optimizer, schedulers.OneCycleLR(optimizer, 1e-2, total_steps=40)

    for kind in ("lambda", "one-cycle"):
        assert not examine_schedule(lambda kind=kind: make(kind)).findings


@pytest.mark.parametrize(
    ("limit", "names"), [(5000, []), (64, ["end-kept-on-cut-targets", "silent-cut"])], ids=["whole", "cut"]
)
def test_labels_of_a_hugging_face_batch_are_read_instead_of_its_mask(limit: int, names: list[str]) -> None:
    """Labels of Hugging Face are padded with -100, and its mask holds integers too."""

    def collate(sources: Rows, targets: Rows) -> dict[str, Tensor]:
        ids, labels = batch(sources, targets, limit=limit).values()
        return {
            "input_ids": ids,
            "attention_mask": (ids != PAD).long(),
            "labels": labels.masked_fill(labels == PAD, -100),
        }

    assert sorted(examine_collate(collate, **MARKS).names) == names


def test_labels_that_are_padded_below_zero_to_one_length_are_named() -> None:
    def collate(sources: Rows, targets: Rows) -> dict[str, Tensor]:
        labels = padded([[*row, EOS] for row in targets], 2100)
        return {"input_ids": padded(sources), "labels": labels.masked_fill(labels == PAD, -100)}

    assert examine_collate(collate, **MARKS).names == ["fixed-padding"]
