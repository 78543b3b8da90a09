"""Run the steps of a plan that are missing or out of date, one after the other.

`graphlib` sorts the steps. A product is made in DIR/.work/STEP, renamed to DIR/STEP when it is complete, and
described in DIR/records/STEP.json. A step is up to date if its settings and the content of its inputs equal those
in the record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bitext.executors import open_executor
from bitext.files import LOCK, discard, locked, put, refuse_links, remove_drafts
from manyheads.config.load.mistakes import hint
from manyheads.errors import DataError, RunError, UsageError
from manyheads.files import saving
from manyheads.improve.build.inputs import BuildContext, input_files, product_files, settings_of
from manyheads.improve.build.mistakes import RECORDS
from manyheads.improve.build.record import KEPT, Hashes, Record
from manyheads.improve.build.schema import ConvertStep, ExportStep
from manyheads.improve.build.steps import run_step
from manyheads.inference.export_formats import check_format
from manyheads.reports import Advance, Listener
from manyheads.runs.listeners import ForwardingListener

_WORK = ".work"  # folder of unfinished products
_MOST_NAMED = 3  # changed settings in a reason


@dataclass(frozen=True)
class StepStatus:
    """Whether a step must run.

    Attributes:
        name: name of the step.
        kind: its kind.
        reasons: reasons to run the step; empty if it is up to date.
        record: current settings and inputs of the step; None if an input will be made first.
        earlier: record of the existing product, or of an interrupted process.
    """

    name: str
    kind: str
    reasons: tuple[str, ...]
    record: Record | None
    earlier: Record | None

    @property
    def text(self) -> str:
        """The reasons as one text."""
        return "; ".join(self.reasons) or "up to date"


class _StepListener(ForwardingListener):
    """Put the name of the running step before the name of each phase."""

    def __init__(self, listener: Listener, title: str) -> None:
        super().__init__(listener)
        self.title = title

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        return self.listener.phase(f"{self.title}: {name}", total, unit)


class Builder:
    """Examine and run the steps of a plan."""

    def __init__(self, context: BuildContext) -> None:
        self.context = context
        self.plan = context.plan
        self.hashes = Hashes(context.plan.out / RECORDS / ".hashes")

    # --- steps that must run ---

    def record_path(self, name: str) -> Path:
        """Return the file of the record of a step."""
        return self.plan.out / RECORDS / f"{name}.json"

    def statuses(self, only: Sequence[str] = ()) -> dict[str, StepStatus]:
        """Return the status of all steps or of `only` some, in order; products of others are used as they are.

        Raises:
            UsageError: there is no such step.
            DataError, RunError: an input is missing.
        """
        for name in only:
            if name not in self.plan.steps:
                raise UsageError(f"{self.plan.path} has no step {name}{hint(name, self.plan.steps)}")
        statuses: dict[str, StepStatus] = {}
        for name in self.plan.steps:
            if not only or name in only:
                statuses[name] = self.status(name, statuses)
        return statuses

    def status(self, name: str, statuses: Mapping[str, StepStatus]) -> StepStatus:
        """Return the status of a step, from the `statuses` of the steps that it depends on."""
        kind, earlier = self.plan.steps[name].kind, Record.read(self.record_path(name))
        waiting = [step for step in self.plan.needed(name) if step in statuses and statuses[step].reasons]
        if waiting:
            self.check_files(name, waiting)
            made = earlier is not None and earlier.state == "done"
            reasons = [f"input {dependency} will be made first" for dependency in waiting]
            return StepStatus(name, kind, tuple(reasons if made else ["not made yet"]), None, earlier)
        now = Record(kind, settings_of(self.plan, name), self.input_hashes(name))
        return StepStatus(name, kind, tuple(self.reasons(name, now, earlier)), now, earlier)

    def reasons(self, name: str, now: Record, earlier: Record | None) -> Iterator[str]:
        """Yield the reasons for which a step must run."""
        if earlier is None:
            yield "not made yet"
            return
        changed = _differing(earlier.settings, now.settings)
        if changed:
            more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
            yield f"settings changed: {', '.join(changed[:_MOST_NAMED])}{more}"
        for text in sorted({*earlier.inputs, *now.inputs}):
            if earlier.inputs.get(text) != now.inputs.get(text):
                yield f"input changed: {text}"
        if earlier.key != now.key:
            return
        if earlier.state != "done":
            yield "interrupted: goes on"
            return
        folder = self.plan.product(name)
        for file, digest in earlier.product.items():
            if not (folder / file).is_file():
                yield f"product missing: {folder / file}"
                return
            if self.hashes.of_file(folder / file) != digest:
                yield f"product changed: {folder / file}"
                return

    def input_hashes(self, name: str) -> dict[str, str]:
        """Return the content hash of each input of a step.

        Raises:
            DataError: a file is missing, or an earlier step has no product yet.
        """
        files = self.check_files(name)
        hashes = {text: "+".join(map(self.hashes.of_file, paths)) for text, paths in files.items()}
        for model in self.plan.steps[name].models:
            run = self.plan.model(model)
            if not (run / "model.safetensors").is_file():
                raise DataError(self.missing_input(name, model, run))
            hashes[model] = self.hashes.of_model(run)
        return hashes

    def check_files(self, name: str, later: Sequence[str] = ()) -> dict[str, list[Path]]:
        """Return the files of each text that a step reads; the files of the steps `later` may be missing.

        Raises:
            DataError: a file of another text is missing.
        """
        files = input_files(self.plan, name)
        for text, paths in files.items():
            for path in paths if text not in later else ():
                if not path.is_file():
                    raise DataError(self.missing_input(name, text, path))
        return files

    def missing_input(self, name: str, text: str, path: Path) -> str:
        """Return the message about an input that is missing."""
        if text in self.plan.steps:
            return f"step {name} reads the product of step {text}, which is not made: {path}. Add --only {text}."
        if isinstance(self.plan.steps[name], ConvertStep):
            return f"step {name}: its file {path} is missing. Name another one in steps.{name}.files."
        cure = f"Name another file below [text.{text}] of {self.plan.path}, or another root."
        return f"step {name}: its input {text} is missing: {path}. {cure}"

    # --- running ---

    def build(self, only: Sequence[str] = ()) -> list[StepStatus]:
        """Run the steps that are missing or out of date; return the status of each step before the run.

        Raises:
            RunError: another process builds in the same folder.
            UsageError: the scheduler does not answer, or the format of an export does not support its quantization.
            ManyheadsError: a step has failed; the products of finished steps are kept.
        """
        with self.locked():
            first = self.statuses(only)
            self.hashes.save()
            pending = [name for name, status in first.items() if status.reasons]
            if pending:
                with open_executor(self.context.scheduler, self.context.workers):
                    pass  # a wrong address is refused now, and not after hours of training
                self.check_exports(pending)
            ended = []
            for name in first:
                status = self.status(name, {}) if name in pending else first[name]
                ended.append(replace(first[name], record=status.record))
                if status.reasons:
                    self.run(status, f"step {pending.index(name) + 1} of {len(pending)}, {name}")
            self.remove_work()
            return ended

    def check_exports(self, names: Iterable[str]) -> None:
        """Raise `UsageError` if the format of an export does not support its model or its quantization."""
        for name in names:
            step = self.plan.steps[name]
            if isinstance(step, ExportStep) and step.model in self.plan.configs:
                try:
                    check_format(self.plan.configs[step.model].task, step.to, step.quantization, step.model)
                except UsageError as error:
                    raise UsageError(f"{self.plan.path}: steps.{name}: {error}") from error

    def run(self, status: StepStatus, title: str) -> None:
        """Run a step, and record its product."""
        assert status.record is not None
        name, path, folder = status.name, self.record_path(status.name), self.plan.out / _WORK / status.name
        self.context.listener.message(f"{title} ({status.kind}): {status.text}")
        if status.earlier is None or status.earlier.key != status.record.key or status.earlier.state == "done":
            discard(folder)
        record = status.record.begun(status.earlier)
        start = time.monotonic()
        if record.state == "begun":
            record.write(path)
            with saving(f"the product of step {name}", folder, KEPT):
                context = replace(self.context, listener=_StepListener(self.context.listener, name))
                result = run_step(context, name, folder)
                files = self.hashes.product(folder, product_files(self.plan.steps[name], folder))
            seconds = record.seconds + time.monotonic() - start
            record = replace(record, state="made", result=result, product=files, seconds=seconds)
            record.write(path)
        with saving(f"the product of step {name}", self.plan.product(name), KEPT):
            if folder.is_dir():  # otherwise the process was killed after the renaming
                discard(self.plan.product(name))
                put(folder, self.plan.product(name))
        replace(record, state="done", finished=time.time()).write(path)
        self.hashes.save()
        self.context.listener.message(f"{name}: {describe_result(record.result)}")

    def remove_work(self) -> None:
        """Remove the folder of unfinished products if it is empty."""
        work = self.plan.out / _WORK
        if work.is_dir() and not any(work.iterdir()):
            work.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder of the products against other processes."""
        in_use = f"{self.plan.out} is being built by another process. Wait for it, or choose another --output."
        with locked(self.plan.out / LOCK, RunError(in_use)):
            refuse_links(self.plan.out, [_WORK, RECORDS], RunError)
            for folder in (self.plan.out, self.plan.out / RECORDS, *(self.plan.out / _WORK).glob("*")):
                remove_drafts(folder)
            yield


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{key}: {before.get(key)!r} then, {now.get(key)!r} now"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    ]


def describe_result(result: Mapping[str, Any]) -> str:
    """Return a result as one line."""
    return ", ".join(
        f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}" for key, value in result.items()
    )
