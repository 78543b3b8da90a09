"""Gathers what `manyheads doctor` judges: opens a configuration's text or a run, and takes its numbers."""

from manyheads.runs.examination.configuration import examine_config
from manyheads.runs.examination.trained import examine_run

__all__ = ["examine_config", "examine_run"]
