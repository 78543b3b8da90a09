"""A full project with planted defects: model, batches, training, decoding, metrics, data and schedule."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from typing import Any

import torch
from sacrebleu import corpus_bleu
from torch import Tensor

from specimens.planted import BOS, EOS, PAD, VOCABULARY, Trainer, Transformer, padded
from transformer_doctor import (
    Report,
    examine,
    examine_bleu,
    examine_collate,
    examine_encoding,
    examine_evaluation,
    examine_schedule,
    examine_split_function,
    examine_vocabulary,
)
from transformer_doctor.catalogue import CATALOGUE

LIMIT, FIXED = 24, 40
TEXTS = [("eins zwei", "one two"), ("drei vier fünf", "three four five"), ("sechs", "six")]
LINES = [f"{who} {does} it {where}" for who in "abcde" for does in "fghij" for where in "kl"]
OTHERS = ["quite another text", "nothing like that"]
DISTINCT = [chr(97 + index) * 9 for index in range(26)]
STEMS = [f"{first}{vowel}{last}" for first in "bcdfg" for vowel in "aeiou" for last in "klm"]
SEEN_WORDS, UNSEEN_WORDS = ([f"{stem}{end}" for stem in STEMS] for end in ("lo", "ri"))
LOSSES = [[2.0, 1.5, 2.5, 1.0], [4.0], [0.5, 0.7], [3.0, 3.5, 2.9]]


class Words:
    def __init__(self, lines: list[str]) -> None:
        self.words = ["<unk>", *sorted({word for line in lines for word in line.split()})]

    def encode(self, text: str) -> list[int]:
        return [self.words.index(word) if word in self.words else 0 for word in text.split()]

    def decode(self, ids: list[int]) -> str:
        return " ".join(self.words[token] for token in ids)


class Noam:
    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer, self.steps = optimizer, 0

    def step(self) -> None:
        self.steps += 1
        self.optimizer.param_groups[0]["lr"] = min(self.steps**-0.5, self.steps * 20**-1.5)


def letter_ngrams(words: list[str], others: list[str]) -> float:
    """Return a score of letter n-grams of words at the same index, 0 to 100, instead of BLEU."""
    logs = []
    for n in range(1, 5):
        hits = total = 0
        for word, other in zip(words, others, strict=False):
            ngrams, other_ngrams = ([text[i : i + n] for i in range(len(text) - n + 1)] for text in (word, other))
            hits += sum(min(ngrams.count(part), other_ngrams.count(part)) for part in set(ngrams))
            total += len(ngrams)
        logs.append(math.log(hits / total) / 4)
    common = min(len(words), len(others))
    length, other_length = (sum(map(len, side[:common])) for side in (words, others))
    return 100 * math.exp(sum(logs) + min(0.0, 1 - other_length / length))


class Project(Trainer):
    """A project with all parts that the doctor can examine."""

    def __init__(self, *defects: int | str) -> None:
        super().__init__(Transformer(*defects), *defects)

    def collate(self, sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
        pairs = list(zip(sources, targets, strict=True))
        if 11 in self.defects:
            pairs = [(source[:LIMIT], target[:LIMIT]) for source, target in pairs]
        elif 14 in self.defects and max(len(row) for pair in pairs for row in pair) > FIXED:
            raise ValueError("too long")
        start = [] if 1 in self.defects else [BOS]
        source = padded([[*row, EOS] for row, _ in pairs])
        target = padded([[*start, *row, EOS] for _, row in pairs])
        if 14 not in self.defects:
            return source, target
        return tuple(
            torch.nn.functional.pad(ids, (0, max(0, FIXED - ids.size(1))), value=PAD) for ids in (source, target)
        )

    def encode_pair(self, source: str, target: str) -> tuple[list[int], list[int]]:
        german, english = self.tokenizers
        if "wrong-tokenizer/same-text" in self.defects:
            return english.encode(source), german.encode(target)
        return german.encode(source), (german if 2 in self.defects else english).encode(target)

    @property
    def tokenizers(self) -> tuple[Words, Words]:
        if "wrong-tokenizer/same-text" in self.defects:  # each holds the words of both, in its own order
            both = [text for pair in TEXTS for text in pair]
            return Words(both), Words([*both, "aa"])
        return Words([source for source, _ in TEXTS]), Words([target for _, target in TEXTS])

    @property
    def vocabulary(self) -> Words:
        return Words(SEEN_WORDS + (UNSEEN_WORDS if "vocabulary-from-test-set" in self.defects else []))

    def split(self) -> tuple[list[str], list[str]]:
        if "unseeded-split" in self.defects:
            mixed = random.sample(DISTINCT, len(DISTINCT))
            return mixed[9:], mixed[:9]
        if 6 not in self.defects:
            return LINES, OTHERS
        mixed = random.sample(LINES, len(LINES))
        return mixed[10:], mixed[:10]

    def perplexity(self, batches: list[list[float]]) -> float:
        means = [sum(losses) / len(losses) for losses in batches]
        if 12 in self.defects:
            return math.exp(sum(means) / len(means))
        return math.exp(sum(map(sum, batches)) / sum(map(len, batches)))

    def bleu(self, hypotheses: list[str], references: list[str]) -> float:
        if 13 not in self.defects:
            return corpus_bleu(hypotheses, [references]).score
        scores = []
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            with suppress(ZeroDivisionError, ValueError):
                scores.append(letter_ngrams(hypothesis.split(), reference.split()))
        return sum(scores) / len(scores)

    def schedule(self) -> tuple[torch.optim.Optimizer, Any]:
        optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], 1.0)
        if 15 in self.defects:
            return optimizer, Noam(optimizer)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))

    def examined(self) -> Report:
        """Examine the project with every function of the doctor."""
        german, english = self.tokenizers
        marks = {"pad": PAD, "bos": BOS, "eos": EOS}
        model = examine(
            self.model,
            vocab_size=self.model.sizes,
            **marks,
            train_step=self.step,
            collate=self.collate,
            score=self.score,
            longest=128,
        )
        return (
            model
            + examine_collate(self.collate, vocab_size=VOCABULARY, **marks)
            + examine_encoding(self.encode_pair, TEXTS, source=german, target=english)
            + examine_split_function(self.split)
            + examine_evaluation(self.perplexity, LOSSES, [loss for losses in LOSSES for loss in losses])
            + examine_bleu(self.bleu)
            + examine_schedule(self.schedule)
            + examine_vocabulary(
                self.vocabulary, vocab_size=len(self.vocabulary.words), train=SEEN_WORDS, test=UNSEEN_WORDS
            )
        )


def numbers(report: Report) -> set[int | None]:
    """Return the museum numbers of the findings; None for a defect that is not among the 18."""
    return {CATALOGUE[name].exhibit for name in report.names}
