"""Suggest a configuration for a corpus: by its size, and by the time that its training takes on this machine."""

from __future__ import annotations

import os
import tomllib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bitext.discover import FoundText
from bitext.file_names import Split
from bitext.filtering import PairFilter
from bitext.pairs import Pair
from bitext.report import DataReport, report
from manyheads.checks.plan import duration
from manyheads.config.load import parse_config
from manyheads.config.load.toml import to_toml
from manyheads.config.schema import Config, DataConfig
from manyheads.data.reading import READINGS
from manyheads.data.training_text import read_split
from manyheads.errors import DataError
from manyheads.reports import NO_LISTENER, Listener, track
from manyheads.runs.estimate import MachineSpeed, measure_speed, processors_text
from manyheads.text.normalize import normalize
from manyheads.text.training import possible_size
from manyheads.training.registry import task_of

TOKENS_A_WORD = 1.4  # subwords, approximately, as the number of updates need not be exact
_MIN_EPOCH_SHARE = 0.5  # share of its epochs for which the time must suffice, or a smaller model is suggested
_SAMPLED_PAIRS = 20_000  # pairs that subwords are learned from
_OTHER_PIECES = 261  # bytes, special symbols, and the sign for a blank
_HELD_OUT: tuple[Split, ...] = ("valid", "test")
_HOUR = 60.0  # minutes; a training that takes longer is compared with a training of this time


class Size(NamedTuple):
    """Settings for corpora below a number of pairs.

    The first two sizes are those of the recipes tatoeba-ko-en and multi30k-en-de, the others from the base model of
    the paper, less regularised the more text there is (Sennrich and Zhang 2019; Araabi and Monz 2020).
    """

    pairs: float
    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    layers: int
    dropout: float
    sampling: float
    batch_tokens: int
    epochs: int


_MODEL_SIZES = (
    Size(15_000, 3_000, 192, 384, 4, 3, 0.3, 0.1, 1_024, 40),
    Size(150_000, 6_000, 256, 1_024, 4, 3, 0.3, 0.0, 2_048, 15),
    Size(1_500_000, 16_000, 512, 2_048, 8, 4, 0.2, 0.0, 8_192, 15),
    Size(float("inf"), 32_000, 512, 2_048, 8, 6, 0.1, 0.0, 16_384, 10),
)

_TEMPLATE = Path(__file__).with_name("suggestion.toml.in")
_SAMPLING = "sampling = {}  # so little text is worth more when words are split in many ways\n"
_MAX_LENGTH = "max_length = 256  # one text of a hundred has more than {:.0f} words"
_MAX_MINUTES = "max_minutes = {:g}  # the number of updates is fitted to this time when training begins\n"
_RELATIVE = "  # ./ and ../ start from the folder of this file"


@dataclass(frozen=True)
class Suggestion:
    """A suggested configuration.

    Attributes:
        report: report on the text.
        size: the settings that depend on the size of the text and on the time.
        minutes: time that the training may take; None is without limit.
        speed: measured speed of the model on this machine; None where it was not measured.
        data: the `[data]` settings.
        device: device of the training.
        in_an_hour: the suggestion for an hour of training; None where the training takes no longer.
    """

    report: DataReport
    size: Size
    minutes: float | None
    speed: MachineSpeed | None
    data: dict[str, Any]
    device: str = "auto"
    in_an_hour: Suggestion | None = None

    @property
    def pairs(self) -> int:
        """Number of pairs that training keeps."""
        train = self.report.splits["train"]
        assert train.filtered is not None
        return train.filtered.kept

    @property
    def planned(self) -> int:
        """Number of updates that make all epochs."""
        words = self.report.splits["train"].target.words.mean
        return self.size.epochs * max(1, round(self.pairs * TOKENS_A_WORD * words / self.size.batch_tokens))

    @property
    def hours(self) -> float | None:
        """Hours that all epochs take on this machine, without validations; None where it was not measured."""
        return None if self.speed is None else self.planned * self.speed.seconds(self.size.batch_tokens) / 3600

    def fitting(self, minutes: float) -> int:
        """Return the number of updates that fit into `minutes`, at most the planned number."""
        assert self.speed is not None
        return max(1, min(self.planned, int(60 * minutes / self.speed.seconds(self.size.batch_tokens))))

    @property
    def updates(self) -> int:
        """Number of updates: those planned, or those that fit into the time."""
        limited = self.minutes is not None and self.speed is not None
        return self.fitting(self.minutes or 0) if limited else self.planned

    @property
    def epochs(self) -> float:
        """Number of passes over the text in these updates."""
        return self.size.epochs * self.updates / self.planned

    @property
    def config(self) -> Config:
        """The configuration."""
        return parse_config(tomllib.loads(self.toml), origin="suggestion")

    @property
    def toml(self) -> str:
        """TOML file to edit, with the reasons for the settings in comments."""
        train, size = self.report.splits["train"], self.size
        settings = [f"{key} = {to_toml(value)}" for key, value in self.data.items()]
        if str(self.data["root"]).startswith("."):
            settings[0] += _RELATIVE
        longest = max(side.words.p99 for side in (train.source, train.target))
        if TOKENS_A_WORD * longest > 128:
            settings.append(_MAX_LENGTH.format(longest))
        wide = size.d_model >= 512
        limit = "" if self.minutes is None else f" in {self.minutes:g} minutes on this machine"
        limits = "" if self.minutes is None else _MAX_MINUTES.format(self.minutes)
        limits += "" if self.device == "auto" else f"device = {to_toml(self.device)}\n"
        facts = size._asdict() | {
            "source": self.report.source,
            "target": self.report.target,
            "source_words": train.source.words.mean,
            "target_words": train.target.words.mean,
            "data": "\n".join(settings),
            "pairs": self.pairs,
            "width": f"as wide as {self.pairs:,} pairs can fill{limit}",
            "sampling": _SAMPLING.format(size.sampling) if size.sampling else "",
            "limits": limits,
            "updates": self.planned,
            "learning_rate": 4e-3 if wide else 8e-3,
            "muon_factor": 1.0 if wide else 0.6,
            "warmup_steps": min(400, max(1, self.updates // 10)),
            "save_every": max(1, min(1_000, self.updates // 12)),
        }
        return _TEMPLATE.read_text(encoding="utf-8").format(**facts)

    def lines(self) -> list[str]:
        """Return the measured speed and the number of updates as lines of text; none if nothing was measured."""
        if self.speed is None or self.hours is None:
            return []
        size, speed, processors = self.size, self.speed, processors_text(self.device)
        measured = (
            f"{size.batch_tokens / speed.seconds(size.batch_tokens):,.0f} target tokens/s, measured on random "
            f"tokens with {speed.parameters:,} parameters"
        )
        epochs = f"{self.epochs:.2g} of {size.epochs} epochs"
        if self.minutes is None:
            time = duration(3600 * self.hours)
            lines = [
                f"about {time} on {processors}: {self.planned:,} updates of {size.batch_tokens:,} target tokens"
            ]
        else:
            lines = [f"{self.minutes:g} minutes on {processors}: about {self.updates:,} updates, {epochs}"]
        validations = "validations come on top" if self.minutes is None else "validations take some of the time"
        lines.append(f"  ({measured}; {validations})")
        if self.in_an_hour is not None:
            shorter = self.in_an_hour
            smaller = "" if shorter.size.d_model == size.d_model else f"d_model = {shorter.size.d_model}, "
            lines.append(
                f"with --minutes {_HOUR:g} it would be {smaller}{shorter.updates:,} updates of "
                f"{shorter.size.batch_tokens:,} target tokens, {shorter.epochs:.2g} of {shorter.size.epochs} epochs"
            )
        if speed.disturbed:
            lines.append(
                f"warning: other programs used {1 - speed.free:.0%} of the processors meanwhile; "
                "while they run, it takes more time"
            )
        return lines


def suggest(
    text: FoundText,
    root: Path,
    folder: Path,
    *,
    minutes: float | None = None,
    device: str | None = None,
    listener: Listener = NO_LISTENER,
) -> Suggestion:
    """Measure a text, and suggest settings for it.

    Args:
        text: the text, divided into train and valid.
        root: folder of the text.
        folder: folder of the TOML file, from which a relative root starts.
        minutes: time that the training may take.
        device: device whose speed is measured; None measures nothing, and leaves `minutes` without effect.
        listener: receives the progress.

    Raises:
        DataError: text is missing or cannot be used.
    """
    data: dict[str, Any] = {"root": str(root), "source": text.source, "target": text.target}
    for name, stem in text.splits.items():
        data[name] = stem
    config = DataConfig.model_validate(data)
    splits: dict[str, Iterable[Pair]] = {
        name: track(read_split(config, name, "pairs"), listener, f"reading the text ({name})", unit="pairs")
        for name in text.splits
    }
    words = array("q")
    splits["train"] = _noting_words(splits["train"], words)
    measured = report((text.source, text.target), splits, normalize, READINGS["pairs"].rules(config))
    counts = measured.splits["train"].filtered
    if counts is None or not counts.kept:
        described = f": {counts.describe()}" if counts else ""
        raise DataError(f"{root} holds no pair to train with{described}. Look at its files, line by line.")
    data["root"] = _written_root(root, folder)
    plain = Suggestion(measured, _MODEL_SIZES[0], minutes, None, data, device or "auto")
    plain = replace(plain, size=next(size for size in _MODEL_SIZES if plain.pairs < size.pairs))
    sizes = _possible_vocabularies(plain, config)
    if device is None:
        return replace(plain, size=sizes(plain.size))
    lengths = np.ceil(TOKENS_A_WORD * np.asarray(words).reshape(-1, 2)).astype(np.int64)
    speeds: dict[Size, MachineSpeed] = {}

    def measure_size(size: Size, config: Config) -> MachineSpeed:
        if size not in speeds:
            listener.message(f"measuring a model of d_model = {size.d_model} with {2 * size.layers} layers")
            training = config.training.model_copy(update={"device": device})
            speeds[size] = measure_speed(config.model_copy(update={"training": training}), lengths)
        return speeds[size]

    chosen = _fit_model(plain, minutes, sizes, measure_size)
    if minutes is None and (chosen.hours or 0) * 60 > _HOUR:
        return replace(chosen, in_an_hour=_fit_model(plain, _HOUR, sizes, measure_size))
    return chosen


def _noting_words(pairs: Iterable[Pair], words: array[int]) -> Iterator[Pair]:
    """Yield pairs, and add the number of words of source and target of each to an array."""
    for pair in pairs:
        words.extend((len(pair.source.split()), len(pair.target.split())))
        yield pair


def _possible_vocabularies(plain: Suggestion, data: DataConfig) -> Callable[[Size], Size]:
    """Return a function of a size that returns it with the nearest vocabulary that training accepts.

    Pieces are learned from a sample; the characters of the whole text must fit beside the bytes.
    """
    reserved = tuple(task_of(plain.config).reserved_symbols(plain.config))
    tokenizer = plain.config.tokenizer.model_copy(update={"reserved": reserved})
    held_out = (pair for split in _HELD_OUT if split in plain.data for pair in read_split(data, split, "pairs"))
    kept = PairFilter(READINGS["pairs"].rules(data), normalize, held_out).used(read_split(data, "train", "pairs"))
    step, sample, characters = -(-plain.pairs // _SAMPLED_PAIRS), list[str](), set[str]()
    for number, pair in enumerate(kept):
        characters.update(pair.source, pair.target)
        if number % step == 0:
            sample += [pair.source, pair.target]

    @cache
    def possible(wanted: int) -> int:
        least = len(characters) + len(reserved) + _OTHER_PIECES
        size = possible_size(tokenizer.model_copy(update={"vocab_size": max(wanted, least)}), sample)
        return size if size == wanted else max(least, size - size % 100)

    return lambda size: size._replace(vocab_size=possible(size.vocab_size))


def _fit_model(
    plain: Suggestion,
    minutes: float | None,
    sizes: Callable[[Size], Size],
    measure_size: Callable[[Size, Config], MachineSpeed],
) -> Suggestion:
    """Return the suggestion with the largest model for which the time suffices, else with the smallest one.

    The text decides how large the model may be and how much it is regularised; the time makes it smaller only.

    Args:
        plain: suggestion by the size of the text.
        minutes: time that the training may take; None is without limit.
        sizes: returns a size with a vocabulary that the text allows.
        measure_size: measures a configuration of a size.
    """
    suggestion = plain
    for size in reversed([size for size in _MODEL_SIZES if size.pairs <= plain.size.pairs]):
        size = sizes(size)
        regularised = size._replace(dropout=plain.size.dropout, sampling=plain.size.sampling)
        suggestion = replace(plain, size=regularised, minutes=minutes)
        suggestion = replace(suggestion, speed=measure_size(size, suggestion.config))
        if minutes is None or suggestion.updates >= _MIN_EPOCH_SHARE * suggestion.planned:
            break
    return suggestion


def _written_root(root: Path, folder: Path) -> str:
    """Return `data.root` for a TOML file in a folder, such that the file works from every current folder.

    The path is relative where the text lies in the folder, or both lie in the current one: it then stays valid when
    the project is moved. Else the path is absolute.
    """
    root, folder, current = root.resolve(), folder.resolve(), Path.cwd()
    together = root.is_relative_to(folder) or (root.is_relative_to(current) and folder.is_relative_to(current))
    if not together:
        return str(root)
    relative = Path(os.path.relpath(root, folder)).as_posix()
    return relative if relative.startswith("../") or relative == ".." else f"./{relative}"
