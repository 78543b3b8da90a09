"""The judgement does not depend on shards, and scores remove pairs; test_corpus.py has whole texts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from bitext.cleaning.clean import CleanJob, Judgement, Texts, _remove_low, judge_corpus
from bitext.cleaning.options import CleanOptions
from bitext.cleaning.rules import REASONS
from bitext.executors import InlineExecutor
from bitext.pairs import Pair
from dirty_pairs import pairs_with_defects

PAIRS, _ = pairs_with_defects()


def read_test_pairs() -> list[Pair]:
    return [Pair(source, target, number) for number, (source, target) in enumerate(PAIRS, 1)]


def no_progress(name: str, total: int | None, unit: str):  # type: ignore[no-untyped-def]
    return nullcontext(lambda count: None)


def job(folder: Path, **changes: object) -> CleanJob:
    return replace(CleanJob(read_test_pairs, ("de", "en"), CleanOptions(), folder, "key"), **changes)  # type: ignore[arg-type]


def judge(folder: Path, **changes: object) -> Judgement:
    return judge_corpus(job(folder, **changes), InlineExecutor(), no_progress)


def test_the_judgement_does_not_depend_on_the_shards(tmp_path: Path) -> None:
    whole, *others = (judge(tmp_path / str(size), shard_pairs=size) for size in (10_000, 101, 1_499))
    for other in others:
        assert np.array_equal(other.reasons, whole.reasons)
        assert other.scores.tobytes() == whole.scores.tobytes()


def score_by_known_pairs(bad: set[str], texts: Texts) -> np.ndarray:
    """Return low scores for the targets in `bad` and for exchanged pairs, as two translation models would."""
    pairs = zip(*texts, strict=True)
    known = dict(PAIRS)
    scores = [
        (-9.0 if target in bad or known.get(source) != target else -1.0) - len(target) / 100
        for source, target in pairs
    ]
    return np.array(scores, np.float32)


def test_the_score_of_two_models_removes_pairs(tmp_path: Path) -> None:
    bad = {target for _, target in PAIRS[5::50]}
    found = judge(tmp_path / "work", model_score=partial(score_by_known_pairs, bad))
    removed = [number for number in range(5, len(PAIRS), 50) if found.reasons[number] == REASONS.index("models")]
    assert len(removed) > 20


def test_the_threshold_of_short_pairs_comes_from_short_exchanged_pairs_alone() -> None:
    rng = np.random.default_rng(5)
    words = np.repeat([[9, 9], [2, 2]], 20_000, 0).astype(np.uint8)
    scores = np.full((40_000, 4), np.nan, np.float32)
    bad = [rng.normal(0, 1, 10_000), rng.normal(-9, 1, 10_000)]
    scores[:, 2] = np.concatenate([rng.normal(5, 1, 10_000), bad[0], rng.normal(-4, 1, 10_000), bad[1]])
    judgement = Judgement(np.zeros(40_000, np.uint8), words, scores)
    unrelated = np.concatenate([rng.normal(0, 1, 10_000), rng.normal(-9, 1, 10_000)]).astype(np.float32)
    short = np.repeat([False, True], 10_000)
    _remove_low(judgement, np.arange(40_000), 2, "lexical", unrelated, short, 0.03)
    removed = (judgement.reasons > 0).reshape(4, 10_000).mean(1)  # good, bad, good short, bad short
    assert (removed[::2] < 0.06).all()
    assert (removed[1::2] > 0.95).all()
