"""A build runs what is missing or out of date, says why, and repeats nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.faults import kill_command
from tests.improve.build.parts import builder_of, plan_of, reasons

from faults import needs_signals
from manyheads.errors import DataError, RunError, SaveError, UsageError
from manyheads.improve.build import runner
from manyheads.improve.build.record import Record
from manyheads.improve.build.runner import Builder

UP_TO_DATE = "up to date"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the plan was built."""
    folder = tmp_path_factory.mktemp("built")
    builder_of(plan_of(folder)).build()
    return folder


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the built folder that a test may change."""
    return Path(shutil.copytree(built, tmp_path / "copy"))


def build_and_list(builder: Builder) -> list[str]:
    """Build, and return the names of the steps that ran."""
    before = {name: Record.read(builder.record_path(name)) for name in builder.plan.steps}
    builder.build()
    return [name for name in builder.plan.steps if Record.read(builder.record_path(name)) != before[name]]


def test_a_built_plan_runs_no_step_again(copy: Path) -> None:
    builder = builder_of(plan_of(copy))
    assert set(reasons(builder).values()) == {UP_TO_DATE}
    assert build_and_list(builder) == []
    assert not (copy / "out" / ".work").exists()


def test_a_changed_setting_is_named_and_only_dependent_steps_run_again(copy: Path) -> None:
    builder = builder_of(plan_of(copy, "steps.back.lines=5"))
    expected = {
        "backward": UP_TO_DATE,
        "back": "settings changed: lines: 7 then, 5 now",
        "mixed": "input back will be made first",
    }
    assert reasons(builder) == expected
    assert build_and_list(builder) == ["back", "mixed"]
    assert len((copy / "out" / "mixed" / "text.de").read_text("utf-8").splitlines()) == 10


def test_a_changed_or_deleted_input_is_named_and_a_touched_one_is_no_change(copy: Path) -> None:
    builder, path = builder_of(plan_of(copy)), copy / "train.en"
    path.touch()
    assert set(reasons(builder).values()) == {UP_TO_DATE}
    path.write_bytes(path.read_bytes() + b"x\n")
    assert reasons(builder)["backward"] == "input changed: parallel"
    path.unlink()
    with pytest.raises(DataError, match=r"step backward: its input parallel is missing: .*train\.en"):
        builder.build()


@pytest.mark.parametrize("damaged", ["missing", "changed"])
def test_a_product_is_made_again_and_dependent_steps_do_not_run_if_it_is_the_same(damaged: str, copy: Path) -> None:
    builder, path = builder_of(plan_of(copy)), copy / "out" / "back" / "text.de"
    path.unlink()
    if damaged == "changed":
        path.write_text("x\n", encoding="utf-8")
    assert reasons(builder)["back"].startswith(f"product {damaged}: ")
    assert build_and_list(builder) == ["back"]


def test_a_chosen_step_runs_alone_and_its_missing_input_is_named(copy: Path, tmp_path: Path) -> None:
    builder = builder_of(plan_of(copy, "steps.back.lines=5"))
    assert list(builder.statuses(["mixed"])) == ["mixed"]
    builder.build(["mixed"])
    assert reasons(builder)["back"] != UP_TO_DATE
    with pytest.raises(UsageError, match=r"has no step mixd; did you mean mixed\?"):
        builder.build(["mixd"])
    with pytest.raises(DataError, match="step mixed reads the product of step back, which is not made"):
        builder_of(plan_of(tmp_path / "new")).build(["mixed"])


def test_a_missing_input_of_a_later_step_is_named_before_the_first_step_runs(tmp_path: Path) -> None:
    builder = builder_of(plan_of(tmp_path, 'text.english.en="gone.en"'))
    with pytest.raises(DataError, match=r"step back: its input english is missing: .*gone\.en"):
        builder.statuses()
    with pytest.raises(DataError, match="step back: its input english is missing"):
        builder.build()
    assert not (tmp_path / "out" / "backward").exists()


@pytest.mark.parametrize("state", ["begun", "made"])
def test_an_interrupted_step_resumes(state: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = builder_of(plan_of(copy, "steps.back.lines=5"))
    text = (copy / "out" / "back" / "text.de").read_bytes()
    write = Record.write

    def killed(record: Record, path: Path) -> None:
        write(record, path)
        if record.state == state:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Record, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            builder.build()
    kept = (copy / "out" / "back" / "text.de").read_bytes()
    assert kept == text, "the old product stays until the new one is complete"
    assert reasons(builder)["back"] == "interrupted: goes on"
    builder.build()
    record = Record.read(builder.record_path("back"))
    assert record is not None
    assert len(record.starts) == 2
    assert set(reasons(builder).values()) == {UP_TO_DATE}


def test_a_full_disk_raises_one_clear_error_and_leaves_no_file_under_a_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_disk_full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "run_step", raise_disk_full)
    with pytest.raises(SaveError, match=r"step backward could not be written to .*No space left on device"):
        builder_of(plan_of(tmp_path)).build()
    assert not (tmp_path / "out" / "backward").exists()


def test_two_builds_in_one_folder_are_refused(copy: Path) -> None:
    builder = builder_of(plan_of(copy))
    with builder.locked(), pytest.raises(RunError, match="is being built by another process"):
        builder_of(plan_of(copy)).build()


SCORE = """
[steps.score]
kind = "evaluate"
model = "backward"
text = "parallel"
"""


@needs_signals
@pytest.mark.parametrize("at", ["records/score.json", "scores.json", "records/.hashes"])
def test_the_drafts_of_a_killed_build_are_removed(copy: Path, at: str) -> None:
    plan = plan_of(copy, more=SCORE)
    kill_command("build", plan.path, "-o", plan.out, at=at)
    assert len(list(plan.out.rglob(".draft-*"))) == 1
    builder_of(plan).build()
    assert list(plan.out.rglob(".draft-*")) == []


def test_workers_beside_a_scheduler_are_refused_before_the_first_step(tmp_path: Path) -> None:
    context = replace(builder_of(plan_of(tmp_path)).context, scheduler="tcp://HOST:8786", workers=2)
    with pytest.raises(UsageError, match="exclude each other"):
        Builder(context).build()
    assert not list((tmp_path / "out").glob("records/*.json"))


def test_an_impossible_export_is_refused_before_the_first_step(tmp_path: Path) -> None:
    export = '[steps.marian]\nkind = "export"\nmodel = "backward"\nto = "huggingface"\nquantization = "int8"\n'
    with pytest.raises(UsageError, match=r"steps\.marian: --quantization int8 goes with --to ctranslate2"):
        builder_of(plan_of(tmp_path, more=export)).build()
    assert not list((tmp_path / "out").glob("records/*.json"))


def test_files_of_an_interrupted_step_are_not_reused_with_other_settings(copy: Path) -> None:
    leftover = copy / "out" / ".work" / "back"
    leftover.mkdir(parents=True)
    (leftover / "text.de").write_text("of other settings\n", encoding="utf-8")
    builder = builder_of(plan_of(copy, "steps.back.lines=5"))
    builder.build()
    assert len((copy / "out" / "back" / "text.de").read_text("utf-8").splitlines()) == 5


def test_a_kill_after_the_renaming_loses_nothing(copy: Path) -> None:
    builder = builder_of(plan_of(copy))
    record = Record.read(builder.record_path("back"))
    assert record is not None
    replace(record, state="made").write(builder.record_path("back"))
    text = (copy / "out" / "back" / "text.en").read_bytes()
    builder.build()
    assert (copy / "out" / "back" / "text.en").read_bytes() == text
    assert set(reasons(builder).values()) == {UP_TO_DATE}
