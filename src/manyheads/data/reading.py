"""Define how the text that a task reads (`TaskSpec.reads`) is found, read and filtered.

Plain text is also read here: each line, or the complete file, is a document. A `Pair` then holds a line as its
target, and "" as its source. The lines of a file that is one document keep their line ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bitext.file_names import Split
from bitext.filtering import FilterCounts, FilterRules, fault_of_pair
from bitext.letters import has_text
from bitext.pairs import Pair, not_empty
from manyheads.config.schema import DataConfig
from manyheads.config.schema.tasks import Reads
from manyheads.data.corpus import kept_lines, numbered_lines, read_pairs
from manyheads.data.labelled import labelled_file, read_labelled
from manyheads.data.locate import locate, locate_one
from manyheads.errors import DataError

_text_file = partial(locate_one, endings=(".txt",), need_ending=False)  # the only file of a split, with any ending


def _read_documents(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the lines of a split; at most `data.limit` of train."""
    (path,) = _text_file(config, split)
    return _lines_of(path, config, *kept_lines(config, split, path))


def _lines_of(path: Path, config: DataConfig, first: int = 0, end: int | None = None) -> Iterator[Pair]:
    """Read the lines from `first`, counted from 0, up to `end`."""
    lines = numbered_lines(path, config, first, end)
    pairs = (Pair("", line.text, number, line.replaced) for number, line in lines)
    return not_empty(pairs, f"{path}: no lines. Name a file that holds text.")


def read_text(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the text of a split for a language model, by line; limits of a file-long document count characters."""
    if config.documents == "line":
        return _read_documents(config, split)
    (path,) = _text_file(config, split)
    first, end = kept_lines(config, split, path, partial(_count_characters, config))
    return _slice_lines(_lines_of(path, config), first, end)


def _count_characters(config: DataConfig, path: Path) -> int:
    return sum(len(line.text) + 1 for _, line in numbered_lines(path, config))


def _slice_lines(lines: Iterable[Pair], first: int, end: int | None) -> Iterator[Pair]:
    """Yield lines with their ends, cut to the characters from `first`, counted from 0, up to `end`."""
    offset = 0
    for line in lines:
        text = f"{line.target}\n"
        part = text[max(0, first - offset) : None if end is None else max(0, end - offset)]
        offset += len(text)
        if part:
            yield Pair("", part, line.line, line.replaced)
        if end is not None and offset >= end:
            return


def _fault_of_labelled(pair: Pair, config: DataConfig) -> str | None:
    """Return "empty" if the labelled text is empty, else None."""
    return None if has_text(pair.source) and has_text(pair.target) else "empty"


def _fault_of_document(pair: Pair, config: DataConfig) -> str | None:
    """Return "empty" if the document is empty, else None."""
    return None if has_text(pair.target) else "empty"


def _fault_of_text(pair: Pair, config: DataConfig) -> str | None:
    """Return "empty" if the text of a language model is empty, else None; lines of a file-long document may be."""
    return None if config.documents == "file" else _fault_of_document(pair, config)


@dataclass(frozen=True)
class Reading:
    """Functions that read one kind of text.

    Attributes:
        read: reads the raw examples of a split from its files.
        files: finds the files of a split.
        fault: returns "empty" or "ratio" for an example that is dropped, else None.
        noun: name of the examples in messages.
        other: noun for the part that may differ between two examples with the same source.
    """

    read: Callable[[DataConfig, Split], Iterator[Pair]]
    files: Callable[[DataConfig, Split], tuple[Path, ...]]
    fault: Callable[[Pair, DataConfig], str | None]
    noun: str
    other: str

    def rules(self, config: DataConfig) -> FilterRules:
        """Return the rules by which training examples are dropped."""
        return FilterRules(lambda pair: self.fault(pair, config), config.drop_duplicates, config.drop_overlap)


READINGS: Mapping[Reads, Reading] = MappingProxyType(
    {
        "pairs": Reading(
            read_pairs, locate, lambda pair, config: fault_of_pair(pair, config.max_ratio), "pairs", "translation"
        ),
        "labelled": Reading(read_labelled, labelled_file, _fault_of_labelled, "examples", "label"),
        "stream": Reading(read_text, _text_file, _fault_of_text, "lines", "beginning"),
        "documents": Reading(_read_documents, _text_file, _fault_of_document, "documents", "beginning"),
    }
)


def describe_too_long(kept: int, too_long: int, limit: str, noun: str) -> str:
    """Return a message about the pairs that passed the filters, but have too many tokens."""
    return (
        f"{too_long:,} of the {kept:,} {noun} kept have more than {limit} tokens on a side "
        f"and are left out: {kept - too_long:,} to train on"
    )


def require_pairs(count: int, text: str, counts: FilterCounts | None = None, noun: str = "pairs") -> None:
    """Raise an error if no pairs are left.

    Raises:
        DataError: there are no pairs; the message gives the counts of the dropped pairs.
    """
    if not count:
        what = f": {counts.describe(noun)}" if counts else ""
        languages = ", data.source, data.target" if noun == "pairs" else ""
        raise DataError(f"{text} leaves no {noun}{what}. Check its files{languages} and the limits.")
