"""Text of a tuning: corrections with a held-out part, and general text to replay and to judge by.

The same source is never in two parts. The parts are chosen by a hash of the source, so that a source stays in its
part when the tuning is repeated. The text is written once, as TSV files in a folder that the tuned run keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory, as_json, read_json, write_atomically
from manyheads.config.schema import Config, DataConfig
from manyheads.data.convert import is_parallel, read_parallel
from manyheads.data.corpus import Pair, read_pairs
from manyheads.data.defects import repeats
from manyheads.data.filtering import digest, fault_of_pair
from manyheads.data.formats.text import TextRequest
from manyheads.data.languages import FREQUENT
from manyheads.data.lines import read_lines
from manyheads.data.locate import SINGLE_FILE_KINDS, near_names, strip_compression
from manyheads.data.tsv import join_row
from manyheads.errors import DataError, UsageError
from manyheads.evaluation.outputs import far_longer
from manyheads.files import new_folder
from manyheads.languages import base_language, language_name
from manyheads.tasks.corpus import available_pairs, cleaning, longest_side, name_limit, training_corpora
from manyheads.tasks.translation.grouped import translate_in_groups
from manyheads.tasks.translation.translator import Translator
from manyheads.text.tokenizer import UNK, TokenizerPair
from manyheads.training.log import Listener

LEAST_TO_HOLD_OUT = 20  # corrections
_HELD_OUT_SHARE, _MOST_HELD_OUT = 0.2, 500
_MOST_READ, _MOST_REPLAYED = 500_000, 20_000  # pairs of each general text
_MOST_TRANSLATED = 3_000  # sources that the model translates itself, for want of translations
_PROOF_SHARE, _MOST_PROOF, _MOST_VALID = 0.25, 1_000, 300  # of the general text
_NAMED = 8  # lines in a message
_LEAST_WORDS, _OUTWEIGHED = 20, 2  # frequent words that tell a language, and how many times more of another one
_SUMMARY = "summary.json"

# File of each part in the folder, and attribute of `TuningText`.
CORRECTIONS, HELD_OUT, REPLAY, VALID, GENERAL = (
    "corrections.tsv", "held-out.tsv", "replay.tsv", "valid.tsv", "general.tsv",
)  # fmt: skip


@dataclass(frozen=True)
class TuningText:
    """The parts of the text.

    Attributes:
        corrections: pairs to learn.
        held_out: corrections that are not trained on; empty if there are too few.
        replay: general pairs that are trained on beside the corrections.
        valid: general pairs by which the training ends early.
        general: general pairs of the proof.
        own: whether the targets of the general text are the model's own translations.
        left_out: numbers of the lines that are not used, by the reason.
        unknown_sources: number of corrections whose source has characters without a piece.
    """

    corrections: list[Pair]
    held_out: list[Pair] = field(default_factory=list)
    replay: list[Pair] = field(default_factory=list)
    valid: list[Pair] = field(default_factory=list)
    general: list[Pair] = field(default_factory=list)
    own: bool = False
    left_out: Mapping[str, Sequence[int]] = field(default_factory=dict)
    unknown_sources: int = 0

    def parts(self) -> dict[str, list[Pair]]:
        """Return the pairs of each file; the training ends early by corrections and general text in equal parts."""
        judges = self.held_out or self.corrections
        early = [*self.valid, *judges * max(1, len(self.valid) // len(judges))]
        return {
            CORRECTIONS: self.corrections, HELD_OUT: self.held_out, REPLAY: self.replay, VALID: early,
            GENERAL: self.general,
        }  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """Return the number of pairs of each part, and what was left out."""
        return {
            "corrections": len(self.corrections),
            "held_out": len(self.held_out),
            "replay": len(self.replay),
            "general": len(self.general),
            "own_translations": self.own,
            "left_out": {reason: list(lines) for reason, lines in self.left_out.items()},
            "unknown_sources": self.unknown_sources,
        }

    def lines(self) -> Iterator[str]:
        """Yield the lines for people."""
        held = f"{len(self.held_out):,} held out" if self.held_out else (
            f"fewer than {LEAST_TO_HOLD_OUT}: none is held out, and they are judged by themselves"
        )  # fmt: skip
        yield f"{len(self.corrections) + len(self.held_out):,} corrections, {held}"
        for reason, numbers in self.left_out.items():
            yield f"not used: {_list_lines(numbers)}: {reason}"
        if self.unknown_sources:
            yield f"{self.unknown_sources:,} sources have characters that the vocabulary does not know"
        translated = ", translated by the model itself" if self.own else ""
        yield f"general text{translated}: {len(self.replay):,} pairs replayed, {len(self.general):,} for the proof"


def _list_lines(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    return f"line{'s' * (len(numbers) > 1)} {', '.join(f'{number:,}' for number in numbers[:_NAMED])}{more}"


# --- the folder ---


def write_text(folder: Path, text: TuningText) -> None:
    """Write the parts and their summary into a new folder, which appears when it is complete."""
    with new_folder(folder) as draft:
        for name, pairs in text.parts().items():
            if pairs:
                rows = "".join(f"{join_row((pair.source, pair.target))}\n" for pair in pairs)
                write_atomically(draft / name, rows.encode())
        write_atomically(draft / _SUMMARY, as_json(text.summary()))


def read_part(folder: Path, name: str, data: DataConfig) -> list[Pair]:
    """Read a part; none if it is empty."""
    return list(_read_file(folder / name, data)) if (folder / name).is_file() else []


def read_summary(folder: Path) -> dict[str, Any]:
    """Read the summary of a folder of text."""
    return read_json(folder / _SUMMARY)


# --- corrections ---


def read_corrections(path: Path, config: Config, tokenizers: TokenizerPair) -> TuningText:
    """Read corrections, leave out lines that cannot be learned, and hold some out.

    A .tsv or .jsonl file has one pair a line; a first line with the names of the columns is skipped. Other files are
    read as `manyheads data convert` does. Of several lines with the same source, the last one counts.

    Raises:
        DataError: no line can be used, or the text is not in the languages of the model.
    """
    if not path.is_file():
        raise DataError(f"There is no file {path}. {near_names(path)}.")
    pairs, left_out, unknown = _usable(list(_read_named_pairs(path, config.data)), config, tokenizers)
    if not pairs:
        reasons = "; ".join(f"{_list_lines(lines)}: {reason}" for reason, lines in left_out.items())
        raise DataError(f"{path} holds no correction that can be used{f': {reasons}' if reasons else ''}.")
    _check_languages(path, pairs, config)
    ordered = sorted(pairs, key=lambda pair: digest(pair.source))
    count = 0 if len(pairs) < LEAST_TO_HOLD_OUT else min(_MOST_HELD_OUT, int(_HELD_OUT_SHARE * len(pairs)))
    held = {pair.line for pair in ordered[:count]}
    return TuningText(
        [pair for pair in pairs if pair.line not in held],
        [pair for pair in pairs if pair.line in held],
        left_out=left_out,
        unknown_sources=unknown,
    )


def _read_named_pairs(path: Path, data: DataConfig) -> Iterator[Pair]:
    names = {("source", "target"), (data.source.lower(), data.target.lower())}
    for pair in _read_file(path, data):
        if pair.line > 1 or (pair.source.strip().lower(), pair.target.strip().lower()) not in names:
            yield pair


def _read_file(path: Path, data: DataConfig) -> Iterator[Pair]:
    """Read the pairs of a file; the number is that of its line, or of its unit."""
    if strip_compression(path.name).endswith(SINGLE_FILE_KINDS):
        update = {"root": str(path.parent), "train": path.name, "limit": None, "dataset": None}
        return read_pairs(data.model_copy(update=update), "train")
    return read_parallel([str(path)], TextRequest(data.source, data.target))


def _usable(
    pairs: Sequence[Pair], config: Config, tokenizers: TokenizerPair
) -> tuple[list[Pair], dict[str, list[int]], int]:
    """Return the pairs that can be learned, the lines of the others by reason, and the number of unknown sources."""
    normal, limit = cleaning(config), longest_side(config)
    pairs = [Pair(normal(pair.source), normal(pair.target), pair.line) for pair in pairs]
    sources = tokenizers.source.encode([pair.source for pair in pairs])
    targets = tokenizers.target.encode([pair.target for pair in pairs])
    last = {pair.source: pair.line for pair in pairs}
    reasons = {
        "empty": "no text on a side",
        "ratio": f"one side is more than {config.data.max_ratio:g} times as long as the other",
    }
    kept, left_out, unknown = [], dict[str, list[int]](), 0
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        reason = reasons.get(fault_of_pair(pair, config.data) or "")
        if reason is None and max(len(source), len(target)) > limit:
            reason = f"more than {name_limit(config)} tokens on a side"
        if reason is None and UNK in target:
            reason = "the target has characters that the vocabulary does not know, so that it cannot be produced"
        if reason is None and last[pair.source] != pair.line:
            reason = "a later line has the same source"
        if reason is None:
            kept.append(pair)
            unknown += UNK in source
        else:
            left_out.setdefault(reason, []).append(pair.line)
    return kept, left_out, unknown


def _check_languages(path: Path, pairs: Sequence[Pair], config: Config) -> None:
    """Raise `DataError` if the frequent words of a side are those of another language."""
    for side, texts, own in (
        ("sources", [pair.source for pair in pairs], config.data.source),
        ("targets", [pair.target for pair in pairs], config.data.target),
    ):
        words = Counter(word for text in texts for word in text.lower().split())
        hits = {code: sum(words[word] for word in known.split()) for code, known in FREQUENT.items()}
        best = max(hits, key=lambda code: hits[code])
        own_hits = hits.get(base_language(own), 0)
        if base_language(own) in FREQUENT and hits[best] >= max(_LEAST_WORDS, _OUTWEIGHED * own_hits):
            raise DataError(
                f"{path}: the {side} look like {language_name(best)}, and the model reads {config.data.source} and "
                f"writes {config.data.target}. Put the source first, then its corrected translation."
            )


def check_news(path: Path, text: TuningText, translator: Translator) -> None:
    """Raise `DataError` if the model says already what the corrections say."""
    pairs = [*text.corrections, *text.held_out]
    for start in range(0, len(pairs), 64):
        group = pairs[start : start + 64]
        outputs = translator.translate([pair.source for pair in group])
        if any(output.translation != pair.target for output, pair in zip(outputs, group, strict=True)):
            return
    raise DataError(
        f"{path}: the model says already what the {len(pairs):,} corrections say. Nothing is to be learned."
    )


# --- general text ---


def add_general(
    text: TuningText,
    run: RunDirectory,
    files: Sequence[Path],
    translator: Callable[[], Translator],
    listener: Listener,
    *,
    replay: bool,
) -> TuningText:
    """Add general text: of the files, else of the run's own data. Sources of corrections are left out of it.

    Args:
        text: the corrections.
        run: the model.
        files: a file of pairs, two files of lines, or a file of sources, which the model translates.
        translator: returns the model.
        listener: receives the progress.
        replay: whether general text is trained on; without it, there may be none at all.

    Raises:
        UsageError: there is no general text.
        DataError: a file cannot be read.
    """
    config, own = run.config(), False
    corrected = {pair.source for pair in (*text.corrections, *text.held_out)}

    def others(pairs: Iterable[Pair], used: Iterable[Pair] = ()) -> list[Pair]:
        """Return normalised pairs, one a source, in the order of a hash, without those of corrections or `used`."""
        known = corrected | {pair.source for pair in used}
        unique = {pair.source: pair for pair in pairs if pair.source not in known and not _fault(pair, config)}
        return sorted(unique.values(), key=lambda pair: digest(pair.source))

    if files:
        read, own = _read_general(files, config, translator, listener)
        pairs = others(read)
        count = min(_MOST_PROOF, int(_PROOF_SHARE * len(pairs)))
        early = min(_MOST_VALID, count)
        proof, valid, rest = pairs[:count], pairs[count : count + early], pairs[count + early :]
    else:
        tests, valids = (available_pairs(config, split, _MOST_PROOF) for split in ("test", "valid")) if (
            config.data.test is not None
        ) else ([], available_pairs(config, "valid", _MOST_PROOF + _MOST_VALID))  # fmt: skip
        valid = others(valids, tests)[:_MOST_VALID] if tests else others(valids)[: len(valids) // 4]
        proof = others(tests or valids, valid)[:_MOST_PROOF]
        corpora = [config.model_copy(update={"data": part}) for part in training_corpora(config.data)]
        read = [pair for part in corpora for pair in available_pairs(part, "train", _MOST_READ)] if replay else []
        rest = others(read, [*proof, *valid])
    if files and not (proof and rest):
        raise DataError(
            f"{' and '.join(map(str, files))}: too few lines for general text, once those without text and those of "
            "the corrections are left out. Give some hundred lines at least."
        )
    if replay and not rest:
        raise UsageError(
            f"the text that {run.path} was trained on is not on this machine. Without general text beside the "
            "corrections a model forgets what it knows: give some with --general FILE (pairs, or sources alone), or "
            "say --no-replay, and the proof decides."
        )
    taken = rest[:_MOST_REPLAYED] if replay else []
    return TuningText(
        text.corrections, text.held_out, taken, valid, proof, own, text.left_out, text.unknown_sources
    )


def _fault(pair: Pair, config: Config) -> str | None:
    return fault_of_pair(pair, config.data)


def _read_general(
    files: Sequence[Path], config: Config, translator: Callable[[], Translator], listener: Listener
) -> tuple[list[Pair], bool]:
    """Read general text; return it, and whether the targets are the model's own translations."""
    normal = cleaning(config)
    for path in files:
        if not path.is_file():
            raise DataError(f"There is no file {path}. {near_names(path)}.")
    if len(files) == 1 and not is_parallel(files[0].name):
        sources = list(dict.fromkeys(filter(None, map(normal, read_lines(files[0])))))
        sources = sorted(sources, key=digest)[:_MOST_TRANSLATED]
        listener.message(f"translating {len(sources):,} sentences of {files[0]}, whose translations are replayed")
        with listener.phase("translating", len(sources), "sentences") as advance:
            results = translate_in_groups(translator(), sources, advance)
        outputs = [result.translation for result in results]
        good = [
            Pair(source, output, number)
            for number, (source, output) in enumerate(zip(sources, outputs, strict=True), start=1)
            if not (repeats(output) or far_longer(output, source))
        ]
        return good, True
    if len(files) == 1:
        read: Iterable[Pair] = _read_named_pairs(files[0], config.data)
    else:
        read = read_parallel(list(map(str, files)), TextRequest(config.data.source, config.data.target))
    return [Pair(normal(pair.source), normal(pair.target), pair.line) for pair in islice(read, _MOST_READ)], False


def data_of(folder: Path, config: Config) -> dict[str, Any]:
    """Return the section `[data]` of a tuning on the text of a folder; the general text is its test text."""
    present = {name for name in (REPLAY, GENERAL) if (folder / name).is_file()}
    changed = {
        "root": str(folder.absolute()),
        "dataset": None,
        "train": CORRECTIONS,
        "more": [REPLAY] if REPLAY in present else [],
        "valid": VALID,
        "test": GENERAL if GENERAL in present else None,
        "weights": None,
        "temperature": 1.0,
        "limit": None,
        "drop_overlap": False,  # few corrections are also those that end the training
    }
    augment = config.data.augment  # word pairs are found by alignment, which needs more text
    changed["augment"] = augment and {**augment.model_dump(), "words": 0.0}
    return config.data.model_dump() | changed
