"""The labels of a classifier's text: found, numbered, and doubted where they look like a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.labelled import BETWEEN
from manyheads.errors import DataError
from manyheads.runs.corpus import Corpus
from manyheads.tasks.classification import Labels

__all__ = ["check_labels", "doubts", "found_labels", "in_order", "label_numbers"]

FEW = 10  # so many labels are nothing strange, however few the examples


def found_labels(corpus: Corpus) -> Labels:
    """The labels of the training text, in order: numbers by their value, else as texts."""
    texts, names = corpus.train.sides()
    found = set(names)
    if len(found) < 2:
        raise DataError(
            f'every training example has the label "{found.pop()}": there is nothing to tell apart. '
            "Give examples of at least two labels."
        )
    two = any(BETWEEN in text for text in texts)
    return Labels(tuple(sorted(found, key=in_order(found))), 2 if two else 1)


def in_order(labels: Iterable[str]) -> Callable[[str], Any]:
    """What labels are sorted by."""
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        return str
    return lambda label: (values[label], label)


def check_labels(pairs: Sequence[Pair], names: Sequence[str], where: str) -> None:
    """Raise `DataError` for labels that training has not seen, with the line where each is first."""
    known, unknown = set(names), dict[str, int]()
    for pair in pairs:
        if pair.target not in known:
            unknown.setdefault(pair.target, pair.line)
    if unknown:
        raise DataError(unseen([f'"{name}" (line {unknown[name]:,})' for name in sorted(unknown)], names, where))


def label_numbers(labels: Iterable[str], names: Sequence[str], where: str) -> NDArray[np.int64]:
    """The class of each label (N,).

    Raises:
        DataError: there are labels that training has not seen; they are named.
    """
    place = {name: number for number, name in enumerate(names)}
    given = list(labels)
    unknown = sorted(set(given) - place.keys())
    if unknown:
        raise DataError(unseen([f'"{name}"' for name in unknown], names, where))
    return np.array([place[label] for label in given], np.int64)


def unseen(unknown: Sequence[str], names: Sequence[str], where: str) -> str:
    """What is wrong with labels that training has not seen, and what to do."""
    shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return (
        f"{where} has labels that training has not seen: {shown}. It has seen: {known}. "
        "Mend those labels, or train on examples of them too."
    )


def doubts(config: Config, corpus: Corpus, names: Sequence[str]) -> Iterator[str]:
    """What looks like a mistake in the text, though it can be trained on."""
    count = len(corpus.train)
    if len(names) > max(FEW, count // 2):
        yield (
            f"{len(names):,} labels in {count:,} examples: hardly any comes twice. A line is label<TAB>text; are "
            "the columns the other way round?"
        )
    found = {pair.target for pair in corpus.valid}
    if len(found) == 1:
        cure = "Shuffle the lines of train" if isinstance(config.data.valid, float) else "Take others"
        yield (
            f'all {len(corpus.valid):,} examples of data.valid have the label "{found.pop()}": whoever always says '
            f"that is always right. {cure}."
        )
