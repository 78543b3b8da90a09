"""What is in the data of a configuration, before anything is trained."""

from __future__ import annotations

from manyheads.config.schema import Config
from manyheads.data.reading import READINGS
from manyheads.data.report import DataReport, report
from manyheads.errors import UsageError
from manyheads.runs.corpus import cleaning, read_split
from manyheads.text.normalize import normalize

__all__ = ["data_report"]


def data_report(config: Config) -> DataReport:
    """Count and measure the splits that a configuration names.

    Raises:
        DataError: text is missing or cannot be used.
        UsageError: it is plain text, without two sides.
    """
    if config.task not in ("translation", "classification"):
        raise UsageError(f'data report measures pairs and texts with labels, not those of task = "{config.task}".')
    pairs = {
        "train": read_split(config.data, "train", config.task),
        "valid": read_split(config.data, "valid", config.task),
    }
    if config.data.test is not None:
        pairs["test"] = read_split(config.data, "test", config.task)
    if config.task == "translation":
        return report(config.data, pairs, normalize)
    named = config.data.model_copy(update={"source": "text", "target": "label"})
    return report(named, pairs, cleaning(config), fault=READINGS[config.task].fault)
