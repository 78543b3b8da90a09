"""Text of a tuning: corrections with a held-out part, and general text to replay and to judge by.

The same source is never in two parts. The parts are chosen by a hash of the source, so that a source stays in its
part when the tuning is repeated. The text is written once, as TSV files in a folder that the tuned run keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bitext.convert import is_parallel, read_parallel
from bitext.defects import repeats
from bitext.file_names import SINGLE_FILE_KINDS, near_names, strip_compression
from bitext.filtering import digest, fault_of_pair
from bitext.formats.text import TextRequest
from bitext.lines import read_lines
from bitext.pairs import Pair
from bitext.tsv import join_row, names_columns, without_quotes
from manyheads.checkpoint import RunDirectory, as_json, read_json, write_atomically
from manyheads.config.schema import Config, DataConfig
from manyheads.data.corpus import read_pairs
from manyheads.data.training_text import available_pairs, cleaning, longest_side, name_limit, training_corpora
from manyheads.errors import DataError, UsageError
from manyheads.evaluation.outputs import far_longer
from manyheads.files import new_folder
from manyheads.improve.tune_checks import check_languages
from manyheads.inference.translation.grouped import translate_in_groups
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener
from manyheads.text.tokenizer import UNK, TokenizerPair

CORRECTIONS, HELD_OUT, GENERAL = "corrections.tsv", "held-out.tsv", "general.tsv"
_REPLAY, _VALID, _SUMMARY = "replay.tsv", "valid.tsv", "summary.json"
_LEAST_TO_HOLD_OUT, _HELD_OUT_SHARE, _MOST_HELD_OUT = 20, 0.2, 500  # of the corrections
_MOST_READ, _MOST_REPLAYED, _MOST_TRANSLATED = 500_000, 20_000, 3_000  # general pairs
_CORRECTED_LETTERS = 0.5  # letters of corrections for one of general text, in the text that ends the training early
_PROOF_SHARE, _MOST_PROOF, _MOST_VALID = 0.25, 1_000, 300  # of the general text
_NAMED = 8  # lines in a message


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
        unknown: number of corrections whose source has characters that the vocabulary does not know.
        doubts: what looks wrong about the corrections (`tune_checks.doubts`).
    """

    corrections: list[Pair]
    held_out: list[Pair] = field(default_factory=list)
    replay: list[Pair] = field(default_factory=list)
    valid: list[Pair] = field(default_factory=list)
    general: list[Pair] = field(default_factory=list)
    own: bool = False
    left_out: Mapping[str, Sequence[int]] = field(default_factory=dict)
    unknown: int = 0
    doubts: Sequence[str] = field(default_factory=list)

    def parts(self) -> dict[str, list[Pair]]:
        """Return the pairs of each file; a third of the text that ends the training early are corrections."""
        judges = self.held_out or self.corrections
        count = len(judges)
        if self.valid:
            letters, others = (sum(len(pair.target) for pair in pairs) for pairs in (judges, self.valid))
            count = max(1, round(_CORRECTED_LETTERS * others * len(judges) / letters))
        early = [*self.valid, *islice(cycle(judges), count)]
        names = (CORRECTIONS, HELD_OUT, _REPLAY, _VALID, GENERAL)
        return dict(zip(names, (self.corrections, self.held_out, self.replay, early, self.general), strict=True))

    def summary(self) -> dict[str, Any]:
        """Return the number of pairs of each part, and what was left out."""
        counts = {name: len(vars(self)[name]) for name in ("corrections", "held_out", "replay", "general")}
        others = {name: vars(self)[name] for name in ("own", "left_out", "unknown", "doubts")}
        return {**counts, **others}

    def lines(self) -> Iterator[str]:
        """Yield the lines for people."""
        held = f"{len(self.held_out):,} held out"
        if not self.held_out:
            held = f"none held out, because there are fewer than {_LEAST_TO_HOLD_OUT}: they judge themselves"
        yield f"{len(self.corrections) + len(self.held_out):,} corrections, {held}"
        yield from (f"not used: {reason}" for reason in self.reasons())
        if self.unknown:
            yield f"{self.unknown:,} sources have characters that the vocabulary does not know"
        made = ", translated by the model itself" if self.own else ""
        yield f"general text{made}: {len(self.replay):,} pairs to replay, {len(self.general):,} for the proof"

    def reasons(self) -> Iterator[str]:
        """Yield each reason why lines are left out, with their numbers."""
        for reason, numbers in self.left_out.items():
            more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
            yield f"line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:_NAMED]))}{more}: {reason}"


def write_text(folder: Path, text: TuningText) -> None:
    """Write the parts and their summary into a new folder, which appears when it is complete."""
    with new_folder(folder) as draft:
        for name, pairs in text.parts().items():
            if pairs:
                rows = "".join(f"{join_row((pair.source, pair.target))}\n" for pair in pairs)
                write_atomically(draft / name, rows.encode())
        write_atomically(draft / _SUMMARY, as_json(text.summary()))


def read_text(folder: Path, data: DataConfig) -> tuple[TuningText, dict[str, Any]]:
    """Return the parts that the proof needs, and the summary."""
    summary = read_json(folder / _SUMMARY)
    parts = [
        list(_read_file(folder / name, data)) if (folder / name).is_file() else []
        for name in (CORRECTIONS, HELD_OUT, GENERAL)
    ]
    text = TuningText(parts[0], parts[1], general=parts[2], own=summary["own"], doubts=summary["doubts"])
    return text, summary


def data_of(folder: Path, config: Config) -> dict[str, Any]:
    """Return the section `[data]` of a tuning on the text of a folder; the general text is its test text."""
    present = {name for name in (_REPLAY, GENERAL) if (folder / name).is_file()}
    return config.data.model_dump() | {
        "root": str(folder.absolute()), "dataset": None, "train": CORRECTIONS, "valid": _VALID,
        "more": [_REPLAY] if _REPLAY in present else [], "test": GENERAL if GENERAL in present else None,
        "weights": None, "limit": None,
        "drop_overlap": False,  # few corrections judge themselves
    }  # fmt: skip


# --- corrections ---


def read_corrections(path: Path, config: Config, tokenizers: TokenizerPair) -> TuningText:
    """Read corrections, leave out lines that cannot be learned, and hold some out.

    A .tsv or .jsonl file has one pair a line; a first line with the names of the columns is skipped. Other files
    are read as `manyheads data convert` does. Of several lines with the same source, the last one counts.

    Raises:
        DataError: no line can be used, or the text is not in the languages of the model.
    """
    rows = list(_read_rows(path, config.data))
    if len(rows) > 1 and all('"' in text for row in rows for text in row[:2]):  # a spreadsheet has quoted all texts
        rows = [row._replace(source=without_quotes(row.source), target=without_quotes(row.target)) for row in rows]
    text = _usable(rows, config, tokenizers)
    pairs = text.corrections
    if not pairs:
        reasons = "; ".join(text.reasons())
        raise DataError(f"{path} holds no correction that can be used{f': {reasons}' if reasons else ''}.")
    check_languages(path, pairs, config)
    count = 0 if len(pairs) < _LEAST_TO_HOLD_OUT else min(_MOST_HELD_OUT, int(_HELD_OUT_SHARE * len(pairs)))
    held = {pair.source for pair in sorted(pairs, key=lambda pair: digest(pair.source))[:count]}
    return replace(
        text,
        corrections=[pair for pair in pairs if pair.source not in held],
        held_out=[pair for pair in pairs if pair.source in held],
    )


def _read_rows(path: Path, data: DataConfig) -> Iterator[Pair]:
    """Read the pairs of a file of the user, without a first line that names the columns."""
    if not path.is_file():
        raise DataError(f"There is no file {path}. {near_names(path)}.")
    for pair in _read_file(path, data):
        if pair.line > 1 or not names_columns(pair.source, pair.target, (data.source, data.target)):
            yield pair


def _read_file(path: Path, data: DataConfig) -> Iterator[Pair]:
    """Read the pairs of a file; the number is that of the line, or of the unit."""
    if strip_compression(path.name).endswith(SINGLE_FILE_KINDS):
        update = {"root": str(path.parent), "train": path.name, "limit": None, "dataset": None}
        return read_pairs(data.model_copy(update=update), "train")
    return read_parallel([str(path)], TextRequest(data.source, data.target))


def _usable(pairs: Sequence[Pair], config: Config, tokenizers: TokenizerPair) -> TuningText:
    """Return the normalised pairs that can be learned, with the lines of the others by reason."""
    normal, limit = cleaning(config), longest_side(config)
    pairs = [pair._replace(source=normal(pair.source), target=normal(pair.target)) for pair in pairs]
    sources = tokenizers.source.encode([pair.source for pair in pairs])
    targets = tokenizers.target.encode([pair.target for pair in pairs])
    last = {pair.source: pair.line for pair in pairs}
    faults = {
        "empty": "no text on a side",
        "ratio": f"a side is more than {config.data.max_ratio:g} times the other",
    }
    kept, left_out, unknown = [], dict[str, list[int]](), 0
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        reason = faults.get(fault_of_pair(pair, config.data.max_ratio) or "")
        if reason is None and max(len(source), len(target)) > limit:
            reason = f"more than {name_limit(config)} tokens on a side"
        if reason is None and UNK in target:
            reason = "the target has characters that the vocabulary does not know, so it cannot be produced"
        if reason is None and last[pair.source] != pair.line:
            reason = "a later line has the same source"
        if reason is None:
            kept.append(pair)
            unknown += UNK in source
        else:
            left_out.setdefault(reason, []).append(pair.line)
    return TuningText(kept, left_out=left_out, unknown=unknown)


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
        DataError: a file cannot be read, or is too short.
    """
    config, own = run.config(), False
    corrected = {pair.source for pair in (*text.corrections, *text.held_out)}

    def others(pairs: Iterable[Pair], used: Iterable[Pair] = ()) -> list[Pair]:
        """Return pairs, one a source, in the order of a hash, without those of corrections or `used`."""
        known = corrected | {pair.source for pair in used}
        unique = {
            pair.source: pair
            for pair in pairs
            if pair.source not in known and not fault_of_pair(pair, config.data.max_ratio)
        }
        return sorted(unique.values(), key=lambda pair: digest(pair.source))

    if files:
        read, own = _read_general(files, config, translator, listener)
        pairs = others(read)
        count = min(_MOST_PROOF, int(_PROOF_SHARE * len(pairs)))
        early = count + min(_MOST_VALID, count)
        proof, valid, rest = pairs[:count], pairs[count:early], pairs[early:]
        if not (proof and rest):
            raise DataError(
                f"{' and '.join(map(str, files))}: too few lines for general text, without empty ones and those of "
                "the corrections. Give some hundreds at least."
            )
    else:
        judges = others(available_pairs(config, "valid", _MOST_PROOF + _MOST_VALID))
        if config.data.test is not None:
            proof = others(available_pairs(config, "test", _MOST_PROOF))
            valid = others(judges, proof)[:_MOST_VALID]
        else:
            count = min(_MOST_VALID, len(judges) // 4)
            valid, proof = judges[:count], judges[count:][:_MOST_PROOF]
        corpora = [config.model_copy(update={"data": part}) for part in training_corpora(config.data) if replay]
        read = [pair for corpus in corpora for pair in available_pairs(corpus, "train", _MOST_READ)]
        rest = others(read, [*proof, *valid])
    if replay and not rest:
        raise UsageError(
            f"the text that {run.path} was trained on is not on this machine. Without general text beside the "
            "corrections a model forgets what it knows: give some with --general FILE (pairs, or sources alone), "
            "or say --no-replay, and the proof decides."
        )
    return replace(text, replay=rest[: _MOST_REPLAYED * replay], valid=valid, general=proof, own=own)


def _read_general(
    files: Sequence[Path], config: Config, translator: Callable[[], Translator], listener: Listener
) -> tuple[list[Pair], bool]:
    """Read general text; return it, and whether the targets are the model's own translations."""
    normal = cleaning(config)
    for path in files:
        if not path.is_file():
            raise DataError(f"There is no file {path}. {near_names(path)}.")
    if len(files) == 1 and not is_parallel(files[0].name):
        sources = {text for line in read_lines(files[0]) if (text := normal(line))}
        chosen = sorted(sources, key=digest)[:_MOST_TRANSLATED]
        with listener.phase(f"translating {files[0]}", len(chosen), "sentences") as advance:
            results = translate_in_groups(translator(), chosen, advance)
        pairs = [Pair(source, result.translation, 0) for source, result in zip(chosen, results, strict=True)]
        return [pair for pair in pairs if not (repeats(pair.target) or far_longer(pair.target, pair.source))], True
    if len(files) == 1:
        read = _read_rows(files[0], config.data)
    else:
        read = read_parallel(list(map(str, files)), TextRequest(config.data.source, config.data.target))
    return [Pair(normal(pair.source), normal(pair.target), pair.line) for pair in islice(read, _MOST_READ)], False
