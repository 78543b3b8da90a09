"""Listeners that write the reports of a training: into a file of metrics, and for TensorBoard."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.errors import require
from manyheads.reports import Advance, Listener, StepReport, ValidationReport


def recording(listener: Listener, run: RunDirectory, config: Config) -> Listener:
    """Return a listener that also writes metrics.jsonl, and TensorBoard files if configured."""
    if config.training.tensorboard:
        listener = _TensorBoardListener(listener, run.path / "tensorboard")
    return _RecordingListener(listener, run.metrics_path)


class ForwardingListener:
    """Forwards all reports to another listener."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def message(self, text: str) -> None:
        """Forward a message."""
        self.listener.message(text)

    def interrupted(self, text: str) -> None:
        """Forward the answer to a signal."""
        self.listener.interrupted(text)

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Forward the progress of a phase."""
        return self.listener.phase(name, total, unit)

    def step(self, report: StepReport) -> None:
        """Forward a log point."""
        self.listener.step(report)

    def validation(self, report: ValidationReport) -> None:
        """Forward a validation."""
        self.listener.validation(report)


class _RecordingListener(ForwardingListener):
    """Forwards all reports, and appends log points and validations to a file, one JSON object a line."""

    def __init__(self, listener: Listener, path: Path) -> None:
        super().__init__(listener)
        self.path = path

    def step(self, report: StepReport) -> None:
        self.append({"kind": "step", **asdict(report)})
        self.listener.step(report)

    def validation(self, report: ValidationReport) -> None:
        self.append({"kind": "validation", **report.plain()})
        self.listener.validation(report)

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a line; values that are not finite become null."""
        plain = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in record.items()
        }
        with saving("the log", self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n")


class _TensorBoardListener(ForwardingListener):
    def __init__(self, listener: Listener, folder: Path) -> None:
        """Open the folder; raises `MissingExtraError` if TensorBoard is not installed."""
        super().__init__(listener)
        require("tensorboard", extra="tensorboard", purpose="training.tensorboard")
        writer = require("torch.utils.tensorboard", extra="tensorboard", purpose="training.tensorboard")
        self.writer = writer.SummaryWriter(str(folder))

    def step(self, report: StepReport) -> None:
        self.scalars("train", report.step, asdict(report))
        self.listener.step(report)

    def validation(self, report: ValidationReport) -> None:
        self.scalars("valid", report.step, report.plain())
        if report.sample is not None:
            self.writer.add_text("sample", "\n\n".join(report.sample), report.step)
        self.writer.flush()
        self.listener.validation(report)

    def scalars(self, group: str, step: int, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if isinstance(value, int | float) and name != "step":
                self.writer.add_scalar(f"{group}/{name}", value, step)
