"""A trained classifier in numbers: what it says, and whether it reads.

Shapes: N texts, C classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.examples import make_texts
from manyheads.data.labelled import split_texts
from manyheads.doctor.after.inside import head_findings, vocabulary_findings
from manyheads.doctor.after.reading import Classes, Reading, class_findings, entropy, reading_findings
from manyheads.doctor.after.search import Batching, batching_findings
from manyheads.doctor.before.tokens import side_findings
from manyheads.doctor.examination import examine
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.model.encoder_only import TextClassifier
from manyheads.runs.examination.at_hand import TextAtHand, counts_of
from manyheads.runs.examination.heads import heads_of
from manyheads.runs.examination.start import LONGEST, Reader
from manyheads.runs.examination.tokens import side_tokens, vocabulary_of
from manyheads.tasks.classification import Classifier, Labels, encode_texts
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair

__all__ = ["examine_classifier"]

LOOKED_AT = 12  # texts whose attention is looked at
FAR = 7


def examine_classifier(
    run: RunDirectory, config: Config, tokenizers: TokenizerPair, text: TextAtHand
) -> tuple[Report, dict[str, str], float | None]:
    """Findings, facts, and the loss of somebody who only knows how often each label comes."""
    labels, tokenizer = Labels.of_run(run), tokenizers.source
    model = run.fill(TextClassifier(config.model, tokenizer.size, len(labels.names), pad=PAD))
    classifier = Classifier(config, tokenizer, labels, model)
    report = examine(
        Reader(model), vocab_size=tokenizer.size, pad=PAD, bos=BOS, eos=EOS, kind="encoder", longest=LONGEST
    )
    findings: list[Finding] = []
    facts: dict[str, str] = {}
    asked: list[str] = []
    chance = None
    if text.train:
        chance = entropy(Counter(pair.target for pair in text.train).values())
        texts = [part for pair in text.train for part in split_texts(pair.source)]
        if config.tokenizer.kind in ("bpe", "unigram"):
            vocabulary = vocabulary_of("vocabulary", tokenizer, counts_of(tokenizer, texts))
            findings += vocabulary_findings(vocabulary)
        findings += side_findings(side_tokens("train", tokenizer, texts[:1_000]))
        asked += ["the vocabulary is used", "texts come back from their tokens"]
    known = [pair for pair in text.valid if pair.target in labels.names]
    if known:
        rows = encode_texts(tokenizer.encode, [pair.source for pair in known], tokenizer.marks_between)
        right = np.array([labels.names.index(pair.target) for pair in known])
        found, told = said_findings(classifier, rows, right)
        findings, facts = [*findings, *found], facts | told
        findings += head_findings(heads_of(model, passes(model, rows[:LOOKED_AT], classifier.longest)))
        asked += ["the text is read", "classes are told better than by guessing", "no result depends on the batch"]
    return report + make_report(findings, asked), facts, chance


def said_findings(
    classifier: Classifier, rows: Sequence[list[int]], right: NDArray[np.int64]
) -> tuple[list[Finding], dict[str, str]]:
    """What is said of validation texts: ids of N texts, their right classes (N,)."""
    names = classifier.labels.names
    together = classifier.probabilities(rows)
    alone = np.concatenate([classifier.probabilities([row]) for row in rows[:LOOKED_AT]])
    own = nats(together, right)
    shuffled = nats(np.roll(together, FAR if len(right) > FAR else 1, axis=0), right)
    said = together.argmax(1)
    accuracy = float((said == right).mean())
    classes = Classes(accuracy, numbered(names, right), numbered(names, said))
    some = right[: len(alone)]
    findings = [
        *class_findings(classes),
        *reading_findings(Reading(own, shuffled, len(right))),
        *batching_findings(Batching(nats(together[: len(alone)], some), nats(alone, some))),
    ]
    facts = {"classes": f"accuracy {accuracy:.1%} on {len(right):,} validation texts; loss {own:.3f} nats a text"}
    return findings, facts


def nats(probabilities: NDArray[np.float64], right: NDArray[np.int64]) -> float:
    """Mean loss: (N, C), (N,) -> nats a text."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(right)), right], 1e-300)).mean())


def numbered(names: Sequence[str], classes: NDArray[np.int64]) -> dict[str, int]:
    """How often each label comes among classes (N,)."""
    return dict(zip(names, np.bincount(classes, minlength=len(names)).tolist(), strict=True))


def passes(model: TextClassifier, rows: Sequence[list[int]], longest: int) -> list[Callable[[], object]]:
    """Reading some texts, one by one."""

    def go(row: list[int]) -> object:
        ids, types = make_texts([row[:longest]], pad=PAD, bos=BOS, eos=EOS, with_types=model.config.token_types > 1)
        return model(ids, types)

    return [partial(go, row) for row in rows]
