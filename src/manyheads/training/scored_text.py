"""The text on which a run is scored: a split of its own data, or files; and what all scores have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from bitext.file_names import Split
from bitext.letters import has_text
from bitext.lines import read_lines
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.reading import read_text
from manyheads.data.training_text import available_pairs, cleaning, read_split, with_normal_form
from manyheads.errors import DataError, UsageError
from manyheads.evaluation.verdicts import judge_loss
from manyheads.reports import Listener
from manyheads.results import Result
from manyheads.text.normalize import NORMAL_FORM

_COMPARED_PAIRS = 200_000  # training pairs that are compared with the scored ones; read in seconds
_HELD_OUT: tuple[Split, ...] = ("valid", "test")
_VALIDATION_SET = "its validation set (by which its weights were chosen)"


class TokenScores(Result):
    """The part that is common to scores of predicted tokens.

    Attributes:
        loss: nats per token, without label smoothing.
        vocabulary: number of tokens of the vocabulary.
    """

    loss: float
    vocabulary: int

    @property
    def perplexity(self) -> float:
        """Perplexity, exp(loss); it depends on the tokenizer."""
        return math.exp(min(self.loss, 700))

    def verdict(self) -> list[str]:
        """Return the verdict on the scores."""
        return [judge_loss(self.loss, self.vocabulary)]


@dataclass(frozen=True)
class ScoredText:
    """The text on which a run is scored.

    Attributes:
        split: train, valid or test of the run's own data.
        source: file to use in place of a split.
        reference: file with its translations or labels, line by line.
        languages: source and target language, for a translator of several; "" leaves out the choice.
    """

    split: Split = "test"
    source: Path | None = None
    reference: Path | None = None
    languages: tuple[str, str] = ("", "")

    def pairs(self, config: Config) -> tuple[list[str], list[str]]:
        """Read sources and references; two files need the same number of lines.

        References are normalised as in training, but keep their no-break blanks whatever the run writes.
        """
        source, reference, split = self.source, self.reference, self.split
        if (source is None) != (reference is None):
            raise UsageError("a source file and its reference file belong together. Give both, or neither.")
        if source is not None and reference is not None:
            pairs = list(zip_longest(read_lines(source), read_lines(reference)))
            sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            for path, lines in ((source, sources), (reference, references)):
                if None in lines:
                    raise DataError(
                        f"{path} has {lines.index(None):,} lines, but the other file {len(pairs):,}. "
                        "The two files must belong together line by line."
                    )
        else:
            raw = list(self._read_split(config, "two files"))
            sources, references = [pair.source for pair in raw], [pair.target for pair in raw]
        if not sources:
            raise DataError(f"{source or f'data.{split}'} holds no lines. There is nothing to score.")
        return sources, list(map(cleaning(with_normal_form(config, NORMAL_FORM)), references))

    def lines(self, config: Config) -> list[str]:
        """Read the texts, normalised as in training; empty lines are left out.

        Raises:
            UsageError: a reference was given, or the run has no test set.
            DataError: there is no text.
        """
        if self.reference is not None:
            raise UsageError(
                "a language model is scored on one text and needs no reference. Give --source-file alone."
            )
        source, split = self.source, self.split
        raw: Iterable[Pair]
        if source is not None:
            data = config.data.model_copy(update={"root": str(source.parent), "test": source.name})
            raw = read_text(data, "test")
        else:
            raw = self._read_split(config, "--source-file FILE")
        normal = map(cleaning(config), (pair.target for pair in raw))
        lines = [text for text in normal if config.whole_files or has_text(text)]
        if not any(lines):
            raise DataError(f"{source or f'data.{split}'} holds no text. There is nothing to score.")
        return lines

    def _read_split(self, config: Config, files: str) -> Iterable[Pair]:
        """Read the raw examples of the split; without a test set the error names `files` as another way."""
        if self.split == "test" and not config.data.has_test:
            raise UsageError(f"this run names no test set. Give --split valid, --set data.test=..., or {files}.")
        return read_split(config.data, self.split, config.spec.reads)


def training_overlap(config: Config, sources: Sequence[str], references: Sequence[str]) -> tuple[int, int] | None:
    """Count the pairs that are also in the training text, among its first `_COMPARED_PAIRS` pairs.

    Pairs that training drops because they are held out (`data.drop_overlap`) are not searched for.

    Args:
        config: configuration that the run was trained with.
        sources: scored sources.
        references: their references.

    Returns:
        The number of pairs found, and of training pairs compared; None if there are no training pairs to compare.
    """
    normal = cleaning(config)
    pairs = Counter(zip(map(normal, sources), map(normal, references), strict=True))
    if config.data.drop_overlap:
        for split in _HELD_OUT if config.data.has_test else _HELD_OUT[:1]:
            for pair in available_pairs(config, split, _COMPARED_PAIRS):
                pairs.pop((pair.source, pair.target), None)
    train = available_pairs(config, "train", _COMPARED_PAIRS) if pairs else []
    overlapping = {(pair.source, pair.target) for pair in train} & pairs.keys()
    return (sum(pairs[pair] for pair in overlapping), len(train)) if train else None


def first_held_out(run: RunDirectory, config: Config, most: int) -> tuple[list[Pair], str]:
    """Return the first examples of the test set, else of the validation set, and its name; none if not available.

    The validation set of an imported run is not used, because its training did not use it.
    """
    if config.data.has_test:
        return available_pairs(config, "test", most), "its test set"
    if run.metrics_path.is_file():
        return available_pairs(config, "valid", most), _VALIDATION_SET
    return [], ""


def first_bytes(lines: Sequence[str], most: int) -> list[str]:
    """Return the first texts within a number of bytes, and at least one."""
    taken: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode())
        if taken and size > most:
            break
        taken.append(line)
    return taken


def report_cut(lengths: Iterable[int], limit: int, where: str, listener: Listener) -> None:
    """Report the number of texts that are cut at a number of tokens, and the first of them."""
    longer = [length > limit for length in lengths]
    if any(longer):
        listener.message(
            f"{sum(longer):,} of {len(longer):,} texts of {where} are longer than {limit:,} tokens: cut there, the "
            f"first is text {longer.index(True) + 1:,}"
        )
