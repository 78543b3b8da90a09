"""Run directories: restored exactly, written atomically, and damaged files are named."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import portalocker
import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from faults import FAILURES, each_failure
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.checkpoints import Checkpoint, TrainingRun
from manyheads.config.schema import Config
from manyheads.errors import RunError, SaveError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.tokenizer import TokenizerPair
from manyheads.text.training import train_tokenizers

GERMAN, KOREAN = ["ein Hund läuft", "der Hund schläft"], ["개가 달린다", "개가 잔다"]
FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


def make_config(**sections: dict[str, Any]) -> Config:
    """Return a configuration with D = 16, 1 + 1 layers and a character tokenizer."""
    values: dict[str, dict[str, Any]] = {
        "data": {"source": "de", "target": "ko"},
        "tokenizer": {"kind": "characters"},
        "model": {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
    }
    for name, section in sections.items():
        values[name] = values.get(name, {}) | section
    return Config.model_validate(values)


def make_tokenizers(config: Config) -> TokenizerPair:
    return train_tokenizers(config.tokenizer, GERMAN, KOREAN, config.data.source, config.data.target)


def make_model(config: Config, seed: int = 1) -> EncoderDecoder:
    torch.manual_seed(seed)
    tokenizers = make_tokenizers(config)
    return EncoderDecoder(config.model, tokenizers.source.size, tokenizers.target.size)


def named_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def begin_run(path: Path, config: Config | None = None) -> TrainingRun:
    """Create a run directory with its configuration and tokenizers."""
    config = config or make_config()
    run = TrainingRun(path)
    run.begin(config, make_tokenizers(config), {"corpus_sha256": "ab", "größe": "1,5"})
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return begin_run(tmp_path)


def make_checkpoint(step: int) -> Checkpoint:
    """Return a checkpoint whose tensors depend on its step, with every type a checkpoint holds."""
    rng = torch.Generator().manual_seed(step)
    weights = {"layer.weight": torch.randn(5, 3, generator=rng), "layer.bias": torch.randn(5, generator=rng)}
    copies = {f"{name}.exp_avg": tensor.double() for name, tensor in weights.items()}
    copies |= {"layer.weight.step": torch.tensor(float(step)), "torch_generator": rng.get_state()}
    state = {"progress": {"step": step, "best": -1 / 3, "none": None}, "precision": "fp32", "name": "größe"}
    return Checkpoint(step, weights, copies, state)


def equal_tensors(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) and tensor.dtype == second[name].dtype for name, tensor in first.items()
    )


def assert_holds(run: TrainingRun, step: int) -> None:
    found, expected = run.checkpoints.read(step), make_checkpoint(step)
    assert (found.step, found.state) == (step, expected.state)
    assert equal_tensors(found.model, expected.model)
    assert equal_tensors(found.optimizer, expected.optimizer)


def leftover_drafts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".") or "draft" in path.name]


# --- writing and reading ---


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"tokenizer": {"kind": "characters", "joint": False}, "model": {"tied_embeddings": "none"}},
        {"tokenizer": {"kind": "bytes"}},
        {"tokenizer": {"kind": "bpe", "vocab_size": 300}},
        {"data": {"train": ("a.de", "a.ko"), "limit": 0.5}, "training": {"betas": (0.9, 0.98), "patience": 3}},
    ],
    ids=["characters", "two vocabularies", "bytes", "bpe", "lists and options"],
)
def test_configuration_and_tokenizers_are_restored(tmp_path: Path, sections: dict[str, dict[str, Any]]) -> None:
    config = make_config(**sections)
    before = make_tokenizers(config)
    begin_run(tmp_path / "run", config)
    run = RunDirectory.existing(tmp_path / "run")
    assert run.config() == config
    after = run.tokenizers(run.config())
    assert (after.source.sha256, after.target.sha256) == (before.source.sha256, before.target.sha256)
    assert after.joint == before.joint
    assert after.source.encode(GERMAN) == before.source.encode(GERMAN)
    assert after.target.encode(KOREAN) == before.target.encode(KOREAN)
    sums = [before.source.sha256, before.target.sha256]
    assert run.environment() == {"corpus_sha256": "ab", "größe": "1,5", "tokenizer_sha256": sums}


def test_a_checkpoint_is_restored_bit_for_bit(run: RunDirectory) -> None:
    run.checkpoints.save(make_checkpoint(40), keep=1)
    assert_holds(TrainingRun.existing(run.path), 40)
    assert equal_tensors(run.checkpoints.weights(40), make_checkpoint(40).model)
    assert sorted(path.name for path in run.checkpoints.folder_of(40).iterdir()) == sorted(FILES)
    assert leftover_drafts(run.path) == []


def test_a_run_exists_once_all_of_its_first_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration is written last, and a directory without it is no run."""
    run = RunDirectory(tmp_path)
    written: list[tuple[str, bool]] = []
    replace = os.replace

    def record_replace(source: Path, target: Path) -> None:
        written.append((Path(target).name, run.exists))
        replace(source, target)

    monkeypatch.setattr(os, "replace", record_replace)
    begin_run(tmp_path)
    assert written[-1] == ("config.json", False)
    assert run.exists
    assert {name for name, _ in written} == {
        "tokenizer.source.json", "tokenizer.target.json", "environment.json", "config.json",
    }  # fmt: skip


# --- which checkpoints are kept ---


def test_the_last_checkpoints_by_step_are_kept(run: RunDirectory) -> None:
    kept = []
    for step in (2, 9, 10, 100):
        run.checkpoints.save(make_checkpoint(step), keep=2)
        kept.append(run.checkpoints.steps())
    assert kept == [[2], [2, 9], [9, 10], [10, 100]]
    for step in run.checkpoints.steps():
        assert_holds(run, step)


def test_other_folders_beside_the_checkpoints_are_not_removed(run: RunDirectory) -> None:
    for name in ("step-x", "notes", "step-7-copy"):
        (run.path / "checkpoints" / name).mkdir(parents=True)
    run.checkpoints.save(make_checkpoint(3), keep=1)
    assert run.checkpoints.steps() == [3]
    assert len(list((run.path / "checkpoints").iterdir())) == 4


def test_a_damaged_later_checkpoint_is_removed_in_place_of_the_new_one(run: RunDirectory) -> None:
    """Training that rolled back to step 20 saves step 30; the damaged step 40 must not be kept instead."""
    for step in (20, 40):
        run.checkpoints.save(make_checkpoint(step), keep=2)
    (run.checkpoints.folder_of(40) / "model.safetensors").write_bytes(b"")
    run.checkpoints.save(make_checkpoint(30), keep=1)
    assert run.checkpoints.steps() == [30]
    assert_holds(run, 30)


# --- kills, full disks ---


@pytest.mark.parametrize(("step", "failure"), [(2, FAILURES[0]), (3, FAILURES[-1])])
def test_a_failure_at_any_moment_of_a_save_loses_no_checkpoint(
    tmp_path: Path, step: int, failure: BaseException
) -> None:
    """Step 2 has a checkpoint already; saving step 3 removes step 1."""
    runs: list[TrainingRun] = []
    other = replace(make_checkpoint(step), state={"progress": {"step": step}, "again": True})

    template = begin_run(tmp_path / "template")
    for earlier in (1, 2):
        template.checkpoints.save(make_checkpoint(earlier), keep=2)

    def prepare() -> Callable[[], None]:
        runs.append(TrainingRun(shutil.copytree(template.path, tmp_path / str(len(runs)))))
        return lambda: runs[-1].checkpoints.save(other, keep=2)

    for number in each_failure(prepare, failure):
        checkpoints = runs[-1].checkpoints
        for _ in range(2):
            steps = checkpoints.steps()
            assert 2 in steps
            assert steps == checkpoints.found()
            for listed in steps:
                found = checkpoints.read(listed)
                assert found.state in (make_checkpoint(listed).state, other.state)
            with runs[-1].locked():  # the next start
                assert leftover_drafts(checkpoints.folder) == []
                assert not any(checkpoints.folder.glob("*.new"))
        assert number < 200
    assert checkpoints.read(step).state == other.state
    assert checkpoints.steps() == ([1, 2] if step == 2 else [2, 3])


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_without_all_files_is_no_step_and_is_named(run: RunDirectory, name: str) -> None:
    for step in (1, 2):
        run.checkpoints.save(make_checkpoint(step), keep=2)
    (run.checkpoints.folder_of(2) / name).unlink()
    for strange in ("step-²", "step-01", "step-", "step-x", "steps"):
        (run.checkpoints.folder / strange).mkdir()
    assert run.checkpoints.steps() == [1]
    assert run.checkpoints.found() == [1, 2]
    with pytest.raises(RunError, match=f"{name} .*missing"):
        run.checkpoints.read(2)
    run.checkpoints.save(make_checkpoint(3), keep=2)
    assert run.checkpoints.found() == [1, 3]


@pytest.mark.parametrize("name", ["model", "optimizer"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_checkpoint_with_values_that_are_not_finite_is_not_good(tmp_path: Path, name: str, value: float) -> None:
    run, checkpoint = begin_run(tmp_path), make_checkpoint(1)
    next(iter(getattr(checkpoint, name).values()))[0] = value
    run.checkpoints.save(checkpoint, keep=1)
    with pytest.raises(
        RunError, match=rf"step-1/{name}\.safetensors cannot be used: layer\.weight\S* holds values"
    ):
        run.checkpoints.read(1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and modes of POSIX")
@pytest.mark.parametrize("name", ["cache", "checkpoints", "tensorboard", "metrics.jsonl", ".lock"])
def test_a_run_directory_with_links_writes_and_removes_nothing_outside(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    (outside / "text").mkdir(parents=True)
    for mine in (outside / "step-1", outside / "text" / "mine", outside / ".draft-1"):
        mine.touch()
    run = begin_run(tmp_path / "run")
    (run.path / name).symlink_to(outside if "." not in name[1:] and name != ".lock" else outside / "step-1")
    with pytest.raises(RunError, match=r"link"), run.locked():
        raise AssertionError
    assert sorted(path.name for path in outside.rglob("*")) == [".draft-1", "mine", "step-1", "text"]
    assert (outside / "step-1").read_bytes() == b""


def test_drafts_of_killed_processes_are_removed_at_the_next_start(run: RunDirectory) -> None:
    run.checkpoints.save(make_checkpoint(1), keep=1)
    for folder in (run.path, run.path / "cache", run.path / "checkpoints", run.path / "checkpoints" / "step-1"):
        (folder / ".draft-of-a-killed-process").mkdir(parents=True)
        (folder / ".draft-of-a-killed-process" / ".tmpXXXXXX").write_text("of a model's size")
    with run.locked():
        assert not any(run.path.rglob(".draft*"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="modes of POSIX")
def test_the_files_of_a_run_have_the_permissions_of_the_umask(tmp_path: Path) -> None:
    umask, mode = 0o027, 0o640
    before = os.umask(umask)
    try:
        run = begin_run(tmp_path / "run")
        run.publish(named_tensors(make_model(make_config())))
        run.checkpoints.save(make_checkpoint(1), keep=1)
    finally:
        os.umask(before)
    written = [path for path in run.path.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in written} == {mode}
    folders = [path for path in run.path.rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o777 & ~umask}


@pytest.mark.parametrize("failure", [FAILURES[0], FAILURES[-1]])
def test_a_failure_at_any_moment_of_publishing_leaves_complete_weights(
    tmp_path: Path, failure: BaseException
) -> None:
    config = make_config()
    run, old, new = begin_run(tmp_path), *(named_tensors(make_model(config, seed)) for seed in (1, 2))

    def prepare() -> Callable[[], None]:
        run.publish(old)
        return lambda: run.publish(new)

    published = []
    for _ in each_failure(prepare, failure):
        found = load_file(tmp_path / "model.safetensors")
        published.append(equal_tensors(found, new))
        assert published[-1] or equal_tensors(found, old)
    assert not published[0]
    assert published[-1]


def test_files_are_synced_before_they_get_their_final_name(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut keeps synced data alone: first the content, then the name, then the folder are synced."""
    run.checkpoints.save(make_checkpoint(1), keep=1)
    synced: dict[int, int] = {}
    events: list[str] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def record_sync(handle: int) -> None:
        status = os.fstat(handle)
        synced[status.st_ino] = status.st_size
        events.append(f"sync {status.st_ino}")
        fsync(handle)

    def check(source: Path) -> None:
        status = source.stat()
        assert status.st_ino in synced, f"{source.name} is not synced"
        assert source.is_dir() or synced[status.st_ino] == status.st_size

    def record_replace(source: Path, target: Path) -> None:
        check(source)
        replace(source, target)

    def record_rename(source: Path, target: Path) -> None:
        if source.name == "step-1":
            events.append("old removed")
        else:
            check(source)
            assert {path.name for path in source.iterdir()} == set(FILES)
            events.append("renamed")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_replace)
    monkeypatch.setattr(os, "rename", record_rename)
    run.checkpoints.save(make_checkpoint(2), keep=1)
    folder = (run.path / "checkpoints").stat().st_ino
    assert events.index("renamed") < events.index(f"sync {folder}") < events.index("old removed")


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_space_in_safetensors(*_: object) -> None:
    raise SafetensorError("I/O error: No space left on device (os error 28)")


FULL_DISKS = [
    (safetensors.torch, "save_file", no_space_in_safetensors),
    (safetensors.torch, "save_file", no_space),
    (os, "fsync", no_space),
    (os, "replace", no_space),
    (os, "rename", no_space),
    (os, "mkdir", no_space),
]


@pytest.mark.parametrize(
    ("owner", "name", "failure"), FULL_DISKS, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_full_disk_keeps_the_last_checkpoint_and_leaves_no_draft(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, failure: Callable[..., None]
) -> None:
    run.checkpoints.save(make_checkpoint(1), keep=1)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failure)
        with pytest.raises(
            SaveError, match=r"the checkpoint of step 2 could not be written .*No space left"
        ) as caught:
            run.checkpoints.save(make_checkpoint(2), keep=1)
    assert str(run.path / "checkpoints") in str(caught.value)
    assert run.checkpoints.steps() == [1]
    assert_holds(run, 1)
    assert leftover_drafts(run.path) == []


def test_a_full_disk_is_the_reported_reason_that_weights_are_not_published(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(SaveError, match=r"model\.safetensors could not be written"):
        run.publish(named_tensors(make_model(make_config())))
    assert leftover_drafts(run.path) == []


def test_a_run_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(SaveError, match="the beginning of the run could not be written"):
        begin_run(tmp_path / "file" / "run")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 200 KiB."""
    mount = shutil.which("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [mount or "", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_file_system_keeps_the_last_checkpoint(small_disk: Path) -> None:
    run = begin_run(small_disk / "run")
    large = {"weight": torch.zeros(30 * 256)}  # 30 KiB
    run.checkpoints.save(Checkpoint(1, large, large, {"step": 1}), keep=9)

    def save_seven() -> None:
        for step in range(2, 9):
            run.checkpoints.save(Checkpoint(step, large, large, {"step": step}), keep=9)

    with pytest.raises(SaveError, match="No space left"):
        save_seven()
    assert leftover_drafts(small_disk) == []
    for step in run.checkpoints.steps():
        assert run.checkpoints.read(step).state == {"step": step}


# --- damage ---


def truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip_a_bit(content: bytes) -> bytes:
    index = len(content) - 9
    return content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :]


def empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty, None])
def test_a_damaged_or_missing_file_of_a_checkpoint_is_named(
    run: RunDirectory, name: str, damage: Callable[[bytes], bytes] | None
) -> None:
    run.checkpoints.save(make_checkpoint(7), keep=1)
    path = run.checkpoints.folder_of(7) / name
    content = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(content))
    with pytest.raises(RunError) as caught:
        run.checkpoints.read(7)
    assert str(path) in str(caught.value)
    if name != "optimizer.safetensors":
        with pytest.raises(RunError):
            run.checkpoints.weights(7)


@pytest.mark.parametrize(("old", "new"), [("7", "8"), ("0.333", "0.334"), ("null", "true"), ("fp32", "bf16")])
def test_a_state_with_changed_values_is_refused_although_it_is_valid_json(
    run: RunDirectory, old: str, new: str
) -> None:
    run.checkpoints.save(make_checkpoint(7), keep=1)
    path = run.checkpoints.folder_of(7) / "state.json"
    head, _, tail = path.read_text(encoding="utf-8").rpartition(old)
    path.write_text(head + new + tail, encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(RunError, match=r"state\.json is missing or damaged"):
        run.checkpoints.read(7)


@pytest.mark.parametrize("content", [b"[1]", b"{}", b'{"sha256": {}}', b"\xff", b"[" * 100_000, b"3"])
def test_an_invalid_state_is_named(run: RunDirectory, content: bytes) -> None:
    run.checkpoints.save(make_checkpoint(7), keep=1)
    (run.checkpoints.folder_of(7) / "state.json").write_bytes(content)
    with pytest.raises(RunError, match=r"step-7/state\.json"):
        run.checkpoints.read(7)


def test_a_missing_tokenizer_is_named(run: RunDirectory) -> None:
    (run.path / "tokenizer.target.json").unlink()
    with pytest.raises(RunError, match=r"has no tokenizer\.target\.\* file"):
        run.tokenizers(run.config())


# --- directories that are no run ---


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(RunError, match="is not a directory") as caught:
            RunDirectory.existing(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("wrong", ["runs", "runs/multi30k-de-e", "runs/multi30k-de-en/checkpoints"])
def test_an_error_on_a_wrong_path_suggests_a_run_nearby(wrong: str, tmp_path: Path) -> None:
    begin_run(tmp_path / "runs" / "multi30k-de-en")
    (tmp_path / "runs" / "bert").mkdir()
    (tmp_path / "runs" / "bert" / "config.json").write_text("{}")
    with pytest.raises(RunError, match=r"Did you mean \S*runs/multi30k-de-en\?$"):
        RunDirectory.existing(tmp_path / wrong)


# --- locks, tokenizers of other runs, unplanned checkpoints ---


def test_a_run_directory_is_locked_while_it_is_written(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path / "run")
    with run.locked():
        with pytest.raises(RunError, match=r"run is being trained by another process") as caught, run.locked():
            pass
        assert not isinstance(caught.value, SaveError)
    with run.locked():
        pass


def test_a_process_that_waited_for_the_lock_locks_out_all_others(run: RunDirectory) -> None:
    """The lock file must not be removed: two files of that name could be locked by two processes."""
    with run.locked():
        waiting = (run.path / ".lock").open("a")
    with waiting:
        portalocker.lock(waiting, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        with pytest.raises(RunError, match="is being trained by another process"), run.locked():
            pass


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_tokenizer_of_another_run_is_refused(tmp_path: Path, side: str) -> None:
    """The vocabulary has the same size, so the weights would fit."""
    config = make_config(tokenizer={"kind": "characters", "joint": False}, model={"tied_embeddings": "none"})
    run = begin_run(tmp_path, config)
    (path,) = tmp_path.glob(f"tokenizer.{side}.*")
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["symbols"][-2:] = reversed(stored["symbols"][-2:])
    path.write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(RunError, match=rf"tokenizer\.{side}\.\* in .* is not the one this run was begun with"):
        run.tokenizers(config)


def test_an_unplanned_checkpoint_does_not_replace_a_planned_one(run: RunDirectory) -> None:
    kept = []
    for step in (4, 8, 9, 10, 12, 14):
        run.checkpoints.save(make_checkpoint(step), keep=2, every=4)
        kept.append(run.checkpoints.steps())
    assert kept == [[4], [4, 8], [8, 9], [8, 10], [8, 12], [12, 14]]
