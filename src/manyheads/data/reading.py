"""How the text of each task is found, read and filtered: one table of all tasks of `Config.task`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from manyheads.config.schema import DataConfig, Task
from manyheads.data.corpus import Pair, read_pairs
from manyheads.data.documents import read_documents, read_text, text_file
from manyheads.data.filtering import fault_of_document, fault_of_labelled, fault_of_pair, fault_of_text
from manyheads.data.labelled import labelled_file, read_labelled
from manyheads.data.locate import Split, locate

__all__ = ["READINGS", "Reading"]


@dataclass(frozen=True)
class Reading:
    """How to read the text of a task.

    Attributes:
        read: reads the raw examples of a split from its files.
        files: finds these files.
        fault: returns "empty" or "ratio" for an example that is dropped, else None.
        noun: name of the examples in messages.
        other: name of what may differ between two examples with the same source.
    """

    read: Callable[[DataConfig, Split], Iterator[Pair]]
    files: Callable[[DataConfig, Split], tuple[Path, ...]]
    fault: Callable[[Pair, DataConfig], str | None]
    noun: str
    other: str


DOCUMENTS = Reading(read_documents, text_file, fault_of_document, "documents", "beginning")
READINGS: Mapping[Task, Reading] = MappingProxyType(
    {
        "translation": Reading(read_pairs, locate, fault_of_pair, "pairs", "translation"),
        "classification": Reading(read_labelled, labelled_file, fault_of_labelled, "examples", "label"),
        "language-modeling": Reading(read_text, text_file, fault_of_text, "lines", "beginning"),
        "masked-lm": DOCUMENTS,
    }
)
