"""The text of a run: read, cleaned and filtered once; the report on it; its examples and language profiles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

import numpy as np

from bitext.file_names import Split
from bitext.filtering import FilterCounts, FilterRules, PairFilter
from bitext.pairs import Pair, limited
from manyheads import __version__
from manyheads.config.schema import Config, DataConfig
from manyheads.config.schema.tasks import Reads
from manyheads.data.builtin import builtin_pairs
from manyheads.data.hub import read_hub_pairs
from manyheads.data.locate import split_setting
from manyheads.data.reading import READINGS, require_pairs
from manyheads.data.store import TextStore
from manyheads.errors import DataError
from manyheads.files import saving
from manyheads.reports import NO_LISTENER, Listener, track
from manyheads.text.joined_texts import join_texts, split_texts
from manyheads.text.languages import LanguageProfile, make_profile
from manyheads.text.normalize import clean, normalize, normalize_target, unify
from manyheads.text.tokenizer import TokenizerPair

_TEXT = Path("cache") / "text"  # in a run directory
_KEEPS_SPACE = ("words", "huggingface")  # tokenizers whose text keeps the white space inside
_PROFILED_PAIRS = 5_000  # evenly spread over the corpus
_LIMITLESS = 1 << 31  # tokens
_NAMED_LINES = 5
_EXAMPLES, _TEXTS_READ = 4, 64
_MIN_BYTES, _MAX_BYTES = 8, 60  # of an example of validation text; a text has no more tokens than bytes


@dataclass(frozen=True)
class Corpus:
    """Training and validation text of a run.

    Attributes:
        train: normalised pairs that passed the filters.
        valid: normalised pairs without empty ones.
    """

    train: TextStore
    valid: list[Pair]

    @property
    def counts(self) -> list[FilterCounts]:
        """Counts of the filters, one for each corpus."""
        return [FilterCounts(**counts) for counts in self.train.details["counts"]]

    @property
    def total(self) -> FilterCounts:
        """Sum of the counts of all corpora."""
        corpora = [asdict(counts) for counts in self.counts]
        return FilterCounts(**{name: sum(counts[name] for counts in corpora) for name in corpora[0]})

    @property
    def sha256(self) -> str:
        """SHA-256 of training and validation text, in hexadecimal."""
        return hashlib.sha256(f"{self.train.sha256} {_fingerprint(self.valid)}".encode()).hexdigest()


def read_split(config: DataConfig, split: Split, reads: Reads) -> Iterator[Pair]:
    """Read the raw pairs of a split from files, a built-in corpus, or a data set of the hub.

    Those of several directions follow one another.
    """
    return chain.from_iterable([_read_direction(view, split, reads) for view in config.directions(split)])


def _read_direction(config: DataConfig, split: Split, reads: Reads) -> Iterator[Pair]:
    """Read the raw pairs of a split of one direction; see `read_split`."""
    if config.swapped:
        forward = {"source": config.target, "target": config.source, "swapped": False}
        raw = _read_direction(config.model_copy(update=forward), split, reads)
        return (pair._replace(source=pair.target, target=pair.source) for pair in raw)
    if config.dataset is None or config.reads_files(split):
        return READINGS[reads].read(config, split)
    if reads != "pairs":
        raise DataError(
            f'data.dataset = "{config.dataset}" holds pairs, and the task reads files. Name them in data.train.'
        )
    origin, _, name = config.dataset.partition(":")
    if origin == "builtin":
        setting = split if split == "test" and config.test is None else split_setting(config, split)
        if not isinstance(setting, str):
            raise DataError(f"data.{split} = {list(setting)}, but {config.dataset} has no files. Name its splits.")
        pairs = builtin_pairs(name, setting, source=config.source, target=config.target)
        return iter(pairs[: limited(config.limit, len(pairs))] if split == "train" and config.limit else pairs)
    return read_hub_pairs(config, split)


def read_splits(config: Config) -> dict[str, Iterator[Pair]]:
    """Read the raw pairs of every split that a configuration names."""
    splits: list[Split] = ["train", "valid", "test"] if config.data.has_test else ["train", "valid"]
    return {split: read_split(config.data, split, config.spec.reads) for split in splits}


def training_corpora(config: DataConfig) -> list[DataConfig]:
    """Return the configuration of each training corpus, as if it were the only one."""
    corpora = []
    for view in config.directions():
        valid = view.valid if isinstance(view.valid, str | tuple) else ""  # a share is of train alone
        corpora.append(view)
        for corpus in view.more:
            dataset = view.dataset if isinstance(corpus, str) else None
            other = {"train": corpus, "limit": None, "valid": valid, "dataset": dataset}
            corpora.append(view.model_copy(update=other))
    return corpora


def with_normal_form(config: Config, form: int) -> Config:
    """Return the configuration with a version of the normal forms of text."""
    return config.model_copy(update={"tokenizer": config.tokenizer.model_copy(update={"normal_form": form})})


def cleaning(config: Config) -> Callable[[str], str]:
    """Return the normalisation of texts; white space is kept for tokenizers that encode it.

    No-break blanks are kept for targets; tokenizers of sources make them plain.
    """
    if config.spec.reads_stream:
        return unify
    plain = normalize_target if config.tokenizer.normal_form and config.spec.reads_pairs else normalize
    single = clean if config.tokenizer.kind in _KEEPS_SPACE else plain
    if not config.spec.reads_labels:
        return single
    return lambda text: join_texts([single(part) for part in split_texts(text)])


def _normalise(config: Config, raw: Iterable[Pair]) -> Iterator[Pair]:
    normal = cleaning(config)
    return (Pair(normal(pair.source), normal(pair.target), pair.line) for pair in raw)


def held_out(config: Config, split: Split, listener: Listener = NO_LISTENER) -> list[Pair]:
    """Return the normalised pairs of validation or test, without empty ones, whose number is reported."""
    return [pair for view in config.for_directions(split) for pair in _held_out(view, split, listener)]


def _held_out(config: Config, split: Split, listener: Listener) -> list[Pair]:
    """Return the pairs of one direction; see `held_out`."""
    reading = READINGS[config.spec.reads]
    pairs = list(_normalise(config, read_split(config.data, split, config.spec.reads)))
    empty = [pair.line for pair in pairs if reading.fault(pair, config.data) == "empty"]
    filled = [pair for pair in pairs if reading.fault(pair, config.data) != "empty"]
    if empty and filled:
        listener.message(
            f"{len(empty):,} of {len(pairs):,} {reading.noun} of data.{split} have no text and are left out, the "
            f"first in line {empty[0]:,}"
        )
    require_pairs(len(filled), f"data.{split}", noun=reading.noun)
    return filled


def longest_side(config: Config) -> int:
    """Return the longest side of a training pair in tokens: `data.max_length`, or what learned positions hold."""
    symbols = config.multilingual or config.model.init_from  # whose vocabulary may have those of languages
    marks = 2 if symbols and config.spec.decodes else 1  # an end mark, and the symbol of the target language
    return min(config.data.max_length, config.model.position_limit - marks)


def name_limit(config: Config) -> str:
    """Return the setting that limits `longest_side`, with its value."""
    if longest_side(config) < config.data.max_length:
        return f"{longest_side(config)} (model.max_positions = {config.model.max_positions})"
    return f"data.max_length = {config.data.max_length}"


def fitting_pairs(
    config: Config, tokenizers: TokenizerPair, pairs: Sequence[Pair], where: str
) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs into those that learned positions hold, and longer ones.

    Raises:
        DataError: all pairs are longer.
    """
    limit = config.model.position_limit - 1
    if limit >= _LIMITLESS:
        return list(pairs), []
    symbols = len(tokenizers.target.language_prefix(config.data.target))  # at the beginning of each target
    sides = (
        tokenizers.source.encode([pair.source for pair in pairs]),
        tokenizers.target.encode([pair.target for pair in pairs]),
    )
    fits = [max(len(source), len(target) + symbols) <= limit for source, target in zip(*sides, strict=True)]
    short = [pair for pair, fitting in zip(pairs, fits, strict=True) if fitting]
    if not short:
        raise DataError(
            f"every pair of {where} has more than {limit} tokens on a side, and the model has learned positions "
            f"for {limit + 1}. Divide its lines into sentences, or train with a larger model.max_positions."
        )
    return short, [pair for pair, fitting in zip(pairs, fits, strict=True) if not fitting]


def describe_long(config: Config, tokenizers: TokenizerPair, pairs: Sequence[Pair], where: str) -> str:
    """Return a message about the pairs of a held-out text that learned positions do not hold; "" without any."""
    long = fitting_pairs(config, tokenizers, pairs, where)[1]
    if not long:
        return ""
    lines = ", ".join(f"{pair.line:,}" for pair in long[:_NAMED_LINES])
    more = f" and {len(long) - _NAMED_LINES:,} more" if len(long) > _NAMED_LINES else ""
    return (
        f"{len(long):,} of {len(pairs):,} pairs of {_file_names(config, where)} have more than "
        f"{config.model.position_limit - 1} tokens on a side (model.max_positions), and have no loss: line "
        f"{lines}{more}. Divide them into sentences"
    )


def _file_names(config: Config, where: str) -> str:
    """Return "data.valid" or "data.test" with the names of its files; any other name as it is."""
    for split in get_args(Split):
        if where == f"data.{split}" and config.data.dataset is None:
            return f"{where} ({' and '.join(map(str, READINGS[config.spec.reads].files(config.data, split)))})"
    return where


def available_pairs(config: Config, split: Split, most: int) -> list[Pair]:
    """Return the first normalised pairs of a split; none if its text is not on this machine."""
    if (config.data.dataset or "").startswith("hf:") and not config.data.reads_files(split):
        return []
    views = config.for_directions()
    pairs: list[Pair] = []
    for view in views:
        with suppress(DataError, OSError):
            raw = list(islice(read_split(view.data, split, config.spec.reads), -(-most // len(views))))
            pairs += _normalise(view, raw)
    return pairs[:most]


def name_files(config: Config, splits: Sequence[Split], listener: Listener) -> None:
    """Report the files that will be read because a configuration, which others may have written, names them."""
    files: list[Path] = []
    for view in config.for_directions():
        for split in splits:
            if view.data.dataset is None or view.data.reads_files(split):
                with suppress(DataError, OSError):
                    files += READINGS[config.spec.reads].files(view.data, split)
    if files:
        names = ", ".join(map(str, dict.fromkeys(files)))
        listener.message(f"reading {names}, as the configuration of the run says")


def open_corpus(config: Config, run: Path) -> Corpus:
    """Open the text that `read_corpus` stored in a run directory."""
    return Corpus(TextStore(run / _TEXT), held_out(config, "valid"))


def read_corpus(config: Config, run: Path, listener: Listener = NO_LISTENER) -> Corpus:
    """Read and filter the text of a run; text that its directory holds and that has not changed is reused.

    The listener receives the progress.
    """
    data, reading = config.data, READINGS[config.spec.reads]
    valid = held_out(config, "valid", listener)
    test = held_out(config, "test", listener) if data.has_test and data.drop_overlap else []
    held = [*valid, *test]
    if config.multilingual:  # a pair that one direction holds out, no other direction trains on
        held += [pair._replace(source=pair.target, target=pair.source) for pair in held]
    folder, key = run / _TEXT, _text_key(config, held)
    if key is None or not TextStore.has(folder, key):
        counts = []

        def corpora() -> Iterator[Iterable[Pair]]:
            for view in data.directions():  # the same two texts are no duplicates in two directions
                pair_filter = PairFilter(_rules(config), cleaning(config), held)
                for part in training_corpora(view):
                    raw = track(
                        read_split(part, "train", config.spec.reads), listener, "reading the text", unit="pairs"
                    )
                    yield pair_filter.used(raw)
                    counts.append(pair_filter.counts)

        def details() -> dict[str, Any]:
            for name, count in zip(data.corpus_names, counts, strict=True):
                several = len(data.corpus_names) > 1
                require_pairs(count.kept, f"The corpus {name}" if several else "data.train", count, reading.noun)
            return {"counts": [asdict(count) for count in counts]}

        with saving("the text", folder, ""):
            folder.parent.mkdir(parents=True, exist_ok=True)
            TextStore.build(folder, corpora(), key=key or "", details=details)
    return Corpus(TextStore(folder), valid)


def _rules(config: Config) -> FilterRules:
    """Return the filter rules; lines of a whole file are never dropped as duplicates or overlap."""
    rules = READINGS[config.spec.reads].rules(config.data)
    return replace(rules, drop_duplicates=False, drop_overlap=False) if config.whole_files else rules


def _text_key(config: Config, held_out: Iterable[Pair]) -> str | None:
    """Return a key of everything that the text of a run depends on; None for text of a hub, which must be read."""
    data = config.data
    parts = training_corpora(data)
    if any(not part.reads_files("train") and not (part.dataset or "").startswith("builtin:") for part in parts):
        return None
    origin: list[Any] = [__version__]
    files = READINGS[config.spec.reads].files
    for path in chain.from_iterable(files(part, "train") for part in parts if part.reads_files("train")):
        status = path.stat()
        origin.append([str(path.resolve()), status.st_size, status.st_mtime_ns])
    unused = {"root", "valid", "test", "max_length", "weights", "temperature", "augment", "terms"}
    settings = {name: value for name, value in data.model_dump().items() if name not in unused}
    parts_of_key = [
        config.task,
        origin,
        settings,
        config.tokenizer.kind in _KEEPS_SPACE,
        config.tokenizer.normal_form,
        _fingerprint(held_out),
    ]
    return hashlib.sha256(json.dumps(parts_of_key).encode()).hexdigest()


def _fingerprint(pairs: Iterable[Pair]) -> str:
    """Return the SHA-256 of the text of pairs, in hexadecimal."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
    return digest.hexdigest()


def language_profiles(config: Config, text: TextStore) -> dict[str, LanguageProfile]:
    """Return the language profiles of all sides of a text: the most frequent character n-grams."""
    profiles = {}
    parts = training_corpora(config.data)
    for language in dict.fromkeys(chain(*zip(*((part.source, part.target) for part in parts), strict=True))):
        texts: list[str] = []
        for side in (0, 1):
            own = [number for number, part in enumerate(parts) if (part.source, part.target)[side] == language]
            rows = np.flatnonzero(np.isin(text.corpora, own))
            texts += text.text(side, rows[:: max(1, -(-len(rows) // _PROFILED_PAIRS))])
        profiles[language] = make_profile(texts)
    return profiles


def validation_examples(config: Config, valid: Sequence[Pair]) -> list[str]:
    """Return a few short validation texts or beginnings of texts, for the page."""
    most = min(_MAX_BYTES, config.data.max_length - 2)
    texts = [(pair.source or pair.target).strip() for pair in valid[:_TEXTS_READ]]
    texts = [text for text in dict.fromkeys(texts) if len(text.encode()) >= _MIN_BYTES]
    texts.sort(key=lambda text: len(text.encode()) > most)  # whole texts first
    return [_beginning(text, most) for text in texts[:_EXAMPLES]]


def _beginning(text: str, most: int) -> str:
    """Return a text, or its words within this number of bytes."""
    cut = text.encode()[:most].decode(errors="ignore")
    return text if cut == text else cut.rpartition(" ")[0] or cut
