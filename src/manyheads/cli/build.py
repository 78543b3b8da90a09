"""`build`: make the products of a plan that are missing or out of date."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from manyheads.cli.options import (
    OUTPUT,
    RECIPE,
    AsJson,
    Device,
    Executor,
    Overrides,
    executor_options,
    option,
    pass_options,
)
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import announce_loading, current_settings, echo, verb

if TYPE_CHECKING:
    from manyheads.improve.build.plan import Plan
    from manyheads.improve.build.runner import Builder, StepStatus

_BUILDS = Path("builds")


@dataclass(frozen=True)
class _BuildOptions:
    plan: Annotated[str, click.argument("plan", metavar="PLAN", type=RECIPE)]
    output: Annotated[
        Path | None,
        option("-o", "--output", type=OUTPUT, metavar="DIR", show_default="builds/ and the name of PLAN"),
    ]
    only: Annotated[tuple[str, ...], option("--only", multiple=True, metavar="STEP")]
    dry_run: Annotated[bool, option("--dry-run", is_flag=True)]
    overrides: Overrides
    executor: Annotated[Executor, executor_options("clean and translate", threads=", with all its threads")]
    device: Device
    as_json: AsJson


@verb("build")
@pass_options(_BuildOptions)
def build(options: _BuildOptions) -> None:
    """Run the steps of PLAN whose products are missing or out of date; run the same command again to resume.

    PLAN is a TOML file or the name of a plan that `manyheads recipes` lists. Each step is a table below [steps]
    with a kind: convert, clean, mix, train, translate, distil, fine-tune, export or evaluate. DIR/STEP holds the
    product of a step. DIR/records/STEP.json holds its versions, settings, content hashes and times.
    """
    from manyheads.improve.build.plan import load_plan, resolve_plan

    path = resolve_plan(options.plan)
    plan = load_plan(path, options.output or _BUILDS / path.stem, options.overrides)

    announce_loading()  # imports torch: only once the plan is valid
    from manyheads.improve.build.inputs import BuildContext
    from manyheads.improve.build.runner import Builder

    with progress_display() as progress:
        language = current_settings().language or "en"
        workers, scheduler = options.executor
        builder = Builder(BuildContext(plan, progress, options.device, scheduler, workers, language))
        if options.dry_run:
            document, lines = _described_plan(builder.statuses(options.only), plan)
        else:
            builder.build(options.only)
            document, lines = _described_products(builder, options.only)
    echo(document, lines, as_json=options.as_json)


def _described_plan(statuses: dict[str, StepStatus], plan: Plan) -> tuple[dict[str, Any], list[str]]:
    """Return the reason and the estimated time of each step, as a JSON document and as lines of text."""
    from manyheads.cli.progress_line import duration
    from manyheads.improve.build.estimate import estimate_seconds

    rows = [(status, estimate_seconds(plan, status)) for status in statuses.values()]
    steps = [
        {"step": status.name, "kind": status.kind, "reasons": list(status.reasons), "seconds": seconds}
        for status, seconds in rows
    ]
    names, kinds = (
        max(map(len, column)) for column in zip(*((row[0].name, row[0].kind) for row in rows), strict=True)
    )
    lines = []
    for status, seconds in rows:
        time = "?" if seconds is None else f"about {duration(seconds)}" if status.reasons else ""
        lines.append(f"{status.name:<{names}}  {status.kind:<{kinds}}  {time:<13}  {status.text}")
    due = [seconds for status, seconds in rows if status.reasons]
    known = sum(seconds for seconds in due if seconds is not None)
    unknown = due.count(None)
    more = f", and {unknown} whose time is not known yet" if unknown else ""
    lines.append(f"{len(due)} of {len(rows)} steps to run: about {duration(known)}{more} (validations come on top)")
    return {"plan": str(plan.path), "output": str(plan.out), "steps": steps}, lines


def _described_products(builder: Builder, only: tuple[str, ...]) -> tuple[dict[str, Any], list[str]]:
    """Return the product and the result of each step, as a JSON document and as lines of text."""
    from manyheads.cli.progress_line import duration
    from manyheads.improve.build.record import Record
    from manyheads.improve.build.runner import describe_result

    plan = builder.plan
    records = [(name, Record.read(builder.record_path(name))) for name in plan.steps if not only or name in only]
    steps, lines = [], []
    for name, record in records:
        assert record is not None
        path = str(plan.product(name))
        steps.append(
            {"step": name, "kind": record.kind, "path": path, "key": record.key, "sha256": record.sha256,
             "seconds": record.seconds, "result": dict(record.result)}
        )  # fmt: skip
        lines.append(f"{name}: {path}, {duration(record.seconds)}, {describe_result(record.result)}")
    return {"plan": str(plan.path), "output": str(plan.out), "steps": steps}, lines


VERBS = {"build": build}
