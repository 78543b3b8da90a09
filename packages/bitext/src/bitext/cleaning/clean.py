"""Clean parallel text in shards: rules, repetitions, word translations, two models.

The text is read in order, several times. A pair is judged by itself and by statistics of a fixed sample, so that
the result does not depend on the shards. Shapes: N pairs of the text, P pairs that passed the rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.calibration import choose_threshold
from bitext.cleaning.codes import encode_lines
from bitext.cleaning.duplicates import KEYS, copy_keys, find_boilerplate, find_duplicates
from bitext.cleaning.lexicon import learn_lexicons, score_pairs
from bitext.cleaning.models import load_lexicons, load_profile, pack_lexicons, pack_profile
from bitext.cleaning.options import CleanOptions
from bitext.cleaning.rules import REASONS, apply_rules, learn_profile, word_counts
from bitext.defects import LEAST_WORDS
from bitext.errors import DataError
from bitext.files import write_atomically, writing
from bitext.pairs import Pair, chunks
from bitext.shards import map_shards

_SHARD_PAIRS = 2_000  # pairs
OTHER_LANGUAGE = 4.0  # log-odds in nats from which on a line counts as another language than that of its side
_SHARED = 20  # pairs that may have the same source or the same target of four words or more
_LEXICON_PAIRS = 100_000  # pairs, spread evenly over the text, that word translations are learned from
_MOST_LINKS = 20_000_000  # word links that word translations are learned from
_PROFILE_PAIRS = 25_000  # pairs that languages and lengths are learned from, at most
_EXCHANGED_PAIRS = 10_000  # pairs with exchanged targets, at most, from which the threshold is calculated
_EXCHANGED_SHARE = 0.1  # share of the sample
_EXCHANGED_FOR_MODELS = 1_000
_COLUMNS = {"lexical": 2, "models": 3}  # of `Judgement.scores`, by reason
_VERSION = 5  # version of the computation; part of the key of kept shards

Texts = tuple[list[str], list[str]]  # sources and targets of pairs
ModelScore = Callable[[Texts], NDArray[np.float32]]  # (N,), higher is better
Phase = Callable[[str, int | None, str], AbstractContextManager[Callable[[int], object]]]
_RECORD = np.dtype([("reason", "u1"), ("words", "u1", 2), ("scores", "<f4", 2), ("keys", "<u8", KEYS)])


@dataclass(frozen=True)
class CleanJob:
    """A text to clean.

    Attributes:
        read: returns an iterable over all pairs, from the first.
        languages: languages of source and target.
        settings: rules that are off, and thresholds.
        folder: folder for the results of shards.
        key: hash of the text and of the runs that score it.
        model_score: scores pairs with two models; None to skip this step.
        shard_pairs: number of pairs of a shard.
    """

    read: Callable[[], Iterable[Pair]]
    languages: tuple[str, str]
    settings: CleanOptions
    folder: Path
    key: str
    model_score: ModelScore | None = None
    shard_pairs: int = _SHARD_PAIRS

    def hash(self, *parts: object) -> str:
        """Return a hash of everything that the results of a step depend on."""
        values = (_VERSION, self.key, self.languages, asdict(self.settings), *parts)
        return hashlib.sha256(repr(values).encode()).hexdigest()

    def chunks(self, size: int) -> Iterator[list[Pair]]:
        """Read the pairs in lists of `size`."""
        return chunks(self.read(), size)


@dataclass
class Judgement:
    """The judgement on each pair of a text.

    Attributes:
        reasons: index in `REASONS`, 0 for a pair that is kept (N,).
        words: words of both sides, at most 255 (N, 2).
        scores: length factor, log-odds of another language, lexical score, score of the models (N, 4); NaN where a
            pair has none.
        thresholds: scores below which pairs were removed, by name.
    """

    reasons: NDArray[np.uint8]
    words: NDArray[np.uint8]
    scores: NDArray[np.float32]
    thresholds: dict[str, float] = field(default_factory=dict)

    @property
    def short(self) -> NDArray[np.bool_]:
        """Return whether each pair has a side of less than four words (N,)."""
        return np.asarray(self.words.min(1, initial=255) < LEAST_WORDS)


def _texts_of(pairs: Sequence[Pair]) -> Texts:
    """Return both sides of pairs, each text as a field of a TSV file."""
    return [tsv_field(pair.source) for pair in pairs], [tsv_field(pair.target) for pair in pairs]


def tsv_field(text: str) -> str:
    """Return a text as a field of a TSV file: line ends and tabs, which .jsonl files may hold, become blanks."""
    return " ".join(text.replace("\t", "\n").split("\n")) if "\n" in text or "\t" in text else text


def judge_corpus(job: CleanJob, executor: Executor, phase: Phase) -> Judgement:
    """Judge all pairs of a text."""
    profile = job.folder / f"profile-{job.hash()[:16]}.npz"
    if not profile.exists():
        with phase("learning the languages", None, "pairs") as advance:
            _learn_from_sample(job, profile, advance)
    judgement, keys = _apply_rules_to(job, profile, executor, phase)
    _mark_repeated(judgement, keys, job.settings)
    del keys
    if "lexical" not in job.settings.off and job.settings.loss:
        _score_words(job, profile, judgement, executor, phase)
    if job.model_score is not None:
        _score_with_models(job, profile, judgement, job.model_score, executor, phase)
    return judgement


def _learn_from_sample(job: CleanJob, path: Path, advance: Callable[[int], object]) -> None:
    """Write the profile of a sample: every 1st, 2nd, 4th, ... pair of the text, depending on its size."""
    sample: list[Pair] = []
    step, count = 1, 0
    for chunk in job.chunks(_SHARD_PAIRS):
        for pair in chunk:
            if count % step == 0:
                sample.append(pair)
            count += 1
        if len(sample) > _PROFILE_PAIRS:
            sample, step = sample[::2], 2 * step
        advance(len(chunk))
    profile = pack_profile(learn_profile(*_texts_of(sample), job.languages))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, profile)


def _apply_rules_to(
    job: CleanJob, profile: Path, executor: Executor, phase: Phase
) -> tuple[Judgement, NDArray[np.uint64]]:
    """Apply the rules to all pairs; return their judgement and their keys (N, KEYS)."""
    parts = []
    with phase("applying the rules", None, "pairs") as advance:
        shards = map(_texts_of, job.chunks(job.shard_pairs))
        key = job.hash("rules", job.shard_pairs)
        work = partial(_judge_shard, profile, job.settings)
        for result in map_shards(work, shards, job.folder / "rules", key=key, executor=executor):
            parts.append(np.frombuffer(result, _RECORD))
            advance(len(parts[-1]))
    records = np.concatenate(parts)
    scores = np.full((len(records), 4), np.nan, np.float32)
    scores[:, :2] = records["scores"]
    return Judgement(records["reason"].copy(), records["words"], scores), records["keys"]


def _judge_shard(profile: Path, settings: CleanOptions, texts: Texts) -> bytes:
    """Apply the rules to the pairs of a shard; return their `_RECORD`s."""
    records = np.zeros(len(texts[0]), _RECORD)
    records["reason"], records["scores"], words = apply_rules(
        *texts, load_profile(profile), settings.max_ratio, OTHER_LANGUAGE, set(settings.off)
    )
    records["words"] = np.minimum(words, 255)
    records["keys"] = copy_keys(*texts)
    return records.tobytes()


def _mark_repeated(judgement: Judgement, keys: NDArray[np.uint64], settings: CleanOptions) -> None:
    """Remove boilerplate and duplicates among the pairs that passed the rules."""
    passed = np.flatnonzero(judgement.reasons == 0)
    if "duplicate" not in settings.off:
        copies = find_duplicates(keys[passed])
        judgement.reasons[passed[copies]] = REASONS.index("duplicate")
        passed = passed[~copies]
    if "boilerplate" not in settings.off:
        long = judgement.words[passed] >= LEAST_WORDS
        frequent = find_boilerplate(keys[passed], long, _SHARED)
        judgement.reasons[passed[frequent]] = REASONS.index("boilerplate")


def _score_words(job: CleanJob, profile: Path, judgement: Judgement, executor: Executor, phase: Phase) -> None:
    """Score the pairs that passed the rules by word translations, and remove pairs with low scores."""
    passed = np.flatnonzero(judgement.reasons == 0)
    if not len(passed):
        return
    learned_from = _sample_of(passed, judgement.words, _LEXICON_PAIRS)
    path = job.folder / f"lexicon-{job.hash()[:16]}.npz"
    sample = _pick(job, learned_from)
    # Pairs in the training sample score higher. So the exchanged pairs are added to the sample.
    most = min(_EXCHANGED_PAIRS, int(_EXCHANGED_SHARE * len(learned_from)))
    exchanged = _exchange(sample, most, job.settings, profile)
    if not path.exists():
        with phase("learning word translations", None, "pairs"):
            lexicons = learn_lexicons(
                *(encode_lines(side + other) for side, other in zip(sample, exchanged, strict=True))
            )
            with writing(path):
                write_atomically(path, pack_lexicons(lexicons))
    learned = np.zeros(len(judgement.reasons), np.bool_)
    learned[learned_from] = True
    with phase("scoring word translations", len(passed), "pairs") as advance:
        _remove_unlikely(
            job, judgement, "lexical", partial(_score_shard, path), exchanged, learned, executor, advance
        )


def _score_shard(lexicon: Path, shard: tuple[Texts, bytes]) -> bytes:
    """Score the pairs of a shard by word translations; return float32 (N,)."""
    texts, learned = shard
    sides = encode_lines(texts[0]), encode_lines(texts[1])
    scores = score_pairs(load_lexicons(lexicon), sides[0], sides[1], np.frombuffer(learned, np.bool_))
    return scores.astype("<f4").tobytes()


def _score_with_models(
    job: CleanJob, profile: Path, judgement: Judgement, model_score: ModelScore, executor: Executor, phase: Phase
) -> None:
    """Score the remaining pairs with two models, and remove pairs with low scores."""
    passed = np.flatnonzero(judgement.reasons == 0)
    sample = _pick(job, passed[:: max(1, len(passed) // _EXCHANGED_FOR_MODELS)])
    exchanged = _exchange(sample, _EXCHANGED_FOR_MODELS, job.settings, profile)
    work, learned = partial(_score_shard_with_models, model_score), np.zeros(len(judgement.reasons), np.bool_)
    with phase("scoring with the two models", len(passed), "pairs") as advance:
        _remove_unlikely(job, judgement, "models", work, exchanged, learned, executor, advance)


def _score_shard_with_models(model_score: ModelScore, shard: tuple[Texts, bytes]) -> bytes:
    """Score the pairs of a shard with two models; return float32 (N,)."""
    return model_score(shard[0]).astype("<f4").tobytes()


def _remove_unlikely(
    job: CleanJob,
    judgement: Judgement,
    name: str,
    score: Callable[[tuple[Texts, bytes]], bytes],
    exchanged: Texts,
    learned: NDArray[np.bool_],
    executor: Executor,
    advance: Callable[[int], object],
) -> None:
    """Score the pairs that passed, and remove pairs that score like pairs with exchanged targets, if there are any.

    `score` returns the scores of a shard of `_passed_shards` as float32 (N,); `learned` says whether it was learned
    from each pair of the text (N,).
    """
    if not exchanged[0]:
        return
    passed, column = np.flatnonzero(judgement.reasons == 0), _COLUMNS[name]
    random = np.frombuffer(score((exchanged, b"\1" * len(exchanged[0]))), "<f4")
    key = job.hash(name, job.shard_pairs)
    shards = _passed_shards(job, passed, learned)
    results = map_shards(score, shards, job.folder / name, key=key, executor=executor)
    judgement.scores[passed, column] = _collect(results, len(passed), advance)
    short = word_counts(*exchanged).min(1) < LEAST_WORDS
    _remove_low(judgement, passed, column, name, random, short, job.settings.loss)


def _remove_low(
    judgement: Judgement,
    passed: NDArray[np.int64],
    column: int,
    name: str,
    random: NDArray[np.float32],
    random_short: NDArray[np.bool_],
    loss: float,
) -> None:
    """Remove pairs (P,) that score like pairs with exchanged targets (M,); short pairs have their own threshold."""
    scores, short = judgement.scores[passed, column], judgement.short[passed]
    for group, chosen, exchanged in (("", ~short, random[~random_short]), ("short", short, random[random_short])):
        threshold = choose_threshold(scores[chosen], exchanged, loss)
        if np.isfinite(threshold):
            judgement.thresholds[f"{name} {group}".strip()] = round(threshold, 4)
            judgement.reasons[passed[chosen & (scores < threshold)]] = REASONS.index(name)


def _sample_of(passed: NDArray[np.int64], words: NDArray[np.uint8], size: int) -> NDArray[np.int64]:
    """Return evenly spread pairs to learn from: at most `size`, with at most `_MOST_LINKS` word links."""
    sample = passed[:: -(-len(passed) // size)]
    links = int(words[sample].astype(np.int64).prod(1).sum())
    return sample[:: max(1, -(-links // _MOST_LINKS))]


def _pick(job: CleanJob, numbers: NDArray[np.int64]) -> Texts:
    chosen = set(numbers.tolist())
    return _texts_of([pair for number, pair in enumerate(job.read()) if number in chosen])


def _exchange(sample: Texts, most: int, settings: CleanOptions, profile: Path) -> Texts:
    """Return at most `most` pairs of a sample with exchanged targets, without pairs that a rule removes."""
    sources, targets = sample
    if not most or not sources:
        return [], []
    half = len(targets) // 2
    exchanged = sources[: 2 * most], (targets[half:] + targets[:half])[: 2 * most]
    off: set[str] = set(settings.off)
    reasons, *_ = apply_rules(*exchanged, load_profile(profile), settings.max_ratio, OTHER_LANGUAGE, off)
    passed = np.flatnonzero(reasons == 0)[:most].tolist()
    return [exchanged[0][number] for number in passed], [exchanged[1][number] for number in passed]


def _passed_shards(
    job: CleanJob, passed: NDArray[np.int64], learned: NDArray[np.bool_]
) -> Iterator[tuple[Texts, bytes]]:
    """Yield shards of the pairs that passed the rules, with a byte for each pair: whether it was learned from."""
    keep = np.zeros(len(learned), np.bool_)
    keep[passed] = True
    chosen = (pair for pair, selected in zip(job.read(), keep.tolist(), strict=True) if selected)
    first = 0
    for chunk in chunks(chosen, job.shard_pairs):
        numbers = passed[first : first + len(chunk)]
        yield _texts_of(chunk), learned[numbers].tobytes()
        first += len(chunk)


def _collect(results: Iterator[bytes], size: int, advance: Callable[[int], object]) -> NDArray[np.float32]:
    """Return the scores of all shards (P,)."""
    parts = []
    for result in results:
        parts.append(np.frombuffer(result, "<f4"))
        advance(len(parts[-1]))
    scores = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    if len(scores) != size:
        raise DataError("The text has changed while it was read. Run the command again.")
    return scores
