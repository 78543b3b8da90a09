"""What is in the data of a configuration, before anything is trained."""

from __future__ import annotations

from manyheads.config.schema import Config
from manyheads.data.report import DataReport, report
from manyheads.runs.corpus import read_split
from manyheads.text.normalize import normalize

__all__ = ["data_report"]


def data_report(config: Config) -> DataReport:
    """Count and measure the splits that a configuration names.

    Raises:
        DataError: text is missing or cannot be used.
    """
    pairs = {
        "train": read_split(config.data, "train", config.task),
        "valid": read_split(config.data, "valid", config.task),
    }
    if config.data.test is not None:
        pairs["test"] = read_split(config.data, "test", config.task)
    return report(config.data, pairs, normalize)
