"""Distributed training: the updates and losses of one process, and one process that writes."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config
from safetensors.torch import load_file
from tests.runs.parts import SENTENCES, make_config, metrics, write_corpus, write_split
from tests.tolerances import approx, assert_close
from tests.training.parts import CollectingListener
from torch import Tensor

from manyheads.cli.recipes import _describe
from manyheads.config.schema import Config
from manyheads.runs.train import train
from manyheads.training.distributed import ALONE

LARGEST = 8.0  # times the largest weight: Adam scales small gradients to full steps, with their rounding
TIMEOUT = 1_200  # seconds; processes that compile on a busy machine take long, and those that hang must end


def start(
    config: Config, out: Path, processes: int, *options: str, launch: tuple[str, ...] = ("--standalone",)
) -> subprocess.Popen[str]:
    """Start a training with `torchrun`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    file = out.parent / f"{out.name}.toml"
    file.write_text("\n".join(_describe(config)), encoding="utf-8")
    launcher = [sys.executable, "-m", "torch.distributed.run", *launch, "--nproc-per-node", str(processes),
                "--log-dir", str(out.parent / "logs")]  # fmt: skip
    return subprocess.Popen(
        [*launcher, "-m", "manyheads", "train", str(file), "-o", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def wait_for_end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for a launcher and return its stdout and stderr; kill all its processes at a timeout."""
    try:
        return process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        for pid in [*children(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)
        raise


def fork(config: Config, out: Path, processes: int, *, force: bool = False) -> list[ForkServerProcess]:
    """Start a training in processes of a fork server, with the environment variables of `torchrun`."""
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload([__name__])
    world = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    started = [forked.Process(target=train_as, args=(rank, world, config, out, force)) for rank in range(processes)]
    for process in started:
        process.start()
    return started


def exit_codes(started: list[ForkServerProcess]) -> list[int | None]:
    """Return the exit codes of processes; None for one that hangs, which is killed."""
    for process in started:
        process.join(TIMEOUT)
    found = [process.exitcode for process in started]
    for process in started:
        process.kill()
        process.join()
    return found


def run(config: Config, out: Path, processes: int, *, force: bool = False) -> None:
    """Train in several processes."""
    assert exit_codes(fork(config, out, processes, force=force)) == [0] * processes


def train_as(rank: int, world: dict[str, str], config: Config, out: Path, force: bool) -> None:
    """Train as the process of this rank."""
    os.environ.update(world, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    train(config, out, listener=CollectingListener(), force=force)


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def config_of(folder: Path, **training: Any) -> Config:
    """Return settings without dropout, which differs between processes."""
    root = folder / "corpus"
    corpus = root if root.exists() else write_corpus(root)
    settings = {"log_every": 1, "accumulation": 2, "label_smoothing": 0.1, "steps": 14} | training
    return make_config(corpus, model={"dropout": 0.0}, training=settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributed")


@pytest.fixture(scope="module")
def run_of_one(folder: Path) -> Path:
    train(config_of(folder), folder / "alone", listener=CollectingListener())
    return folder / "alone"


@pytest.fixture(scope="module")
def run_of_two(folder: Path) -> Path:
    process = start(config_of(folder), folder / "two", 2)
    printed, errors = wait_for_end(process)
    assert process.returncode == 0, errors
    assert printed.count("14 steps") == 1, "one process prints"
    return folder / "two"


def weights(path: Path) -> dict[str, Tensor]:
    """Return the weights of a run without the biases of keys.

    Their gradient is rounding error alone, and Adam would scale it to full steps.
    """
    found = load_file(path / "model.safetensors")
    for name, tensor in found.items():
        if name.endswith("project_in.bias"):
            queries, _, values = tensor.chunk(3)
            found[name] = torch.cat([queries, values])
    return found


def losses(path: Path) -> list[float]:
    return [record["loss"] for record in metrics(path)]


@pytest.mark.slow
def test_two_processes_make_the_updates_of_one_process(run_of_one: Path, run_of_two: Path) -> None:
    """Equal global batches give equal losses, norms and validations, and weights equal up to rounding."""
    for expected_record, record in zip(metrics(run_of_one), metrics(run_of_two), strict=True):
        assert expected_record.keys() == record.keys()
        for key, value in expected_record.items():
            if isinstance(value, float) and key != "padding":
                assert record[key] == approx(value, magnitude=max(LARGEST, abs(value))), key
    assert_close(weights(run_of_two), weights(run_of_one), magnitude=LARGEST)


@pytest.mark.slow
@pytest.mark.weekly
def test_two_processes_train_the_same_lora_factors(folder: Path) -> None:
    """Both draw equal factors, and freeze equal layers."""
    config = config_of(folder, lora_rank=2, optimizer="adamw", steps=8)
    train(config, folder / "adapted alone", listener=CollectingListener())
    run(config, folder / "adapted by two", 2)
    assert_close(weights(folder / "adapted by two"), weights(folder / "adapted alone"), magnitude=LARGEST)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_run_is_resumed_with_another_number_of_processes(folder: Path, run_of_one: Path) -> None:
    """The order of pairs is that of an uninterrupted run; sharded weights ask the same each time (below)."""
    out = folder / "resumed"
    train(config_of(folder, steps=5), out, listener=CollectingListener())
    run(config_of(folder, steps=10), out, 2, force=True)
    train(config_of(folder), out, listener=CollectingListener(), force=True)
    steps = [record for record in metrics(out) if record["kind"] == "step"]
    assert [record["step"] for record in steps] == list(range(1, 15))
    expected = [record["loss"] for record in metrics(run_of_one) if record["kind"] == "step"]
    assert [record["loss"] for record in steps] == approx(expected, magnitude=LARGEST)


@pytest.mark.slow
def test_sharded_weights_train_as_unsharded_weights_and_resume_with_any_number_of_processes(folder: Path) -> None:
    """Checkpoints are unsharded: one process resumes from those of two, and two from those of one.

    The order of pairs is that of an uninterrupted run, and no update is repeated.
    """
    settings = {"optimizer": "adamw", "weight_decay": 0.1, "ema": 0.5, "average_checkpoints": 2}
    run_of_one, run_of_two = folder / "unsharded", folder / "sharded"
    train(config_of(folder, **settings), run_of_one, listener=CollectingListener())
    run(config_of(folder, **settings, shard=True, steps=7), run_of_two, 2)
    train(config_of(folder, **settings, steps=10), run_of_two, listener=CollectingListener(), force=True)
    run(config_of(folder, **settings, shard=True), run_of_two, 2, force=True)
    whole, resumed = (
        {record["step"]: record["loss"] for record in metrics(out) if record["kind"] == "step"}
        for out in (run_of_one, run_of_two)
    )
    assert [*resumed] == [*range(1, 15)]
    assert [*resumed.values()] == approx([*whole.values()], magnitude=LARGEST)
    assert_close(weights(run_of_two), weights(run_of_one), magnitude=LARGEST)


@pytest.mark.slow
@pytest.mark.weekly
def test_two_machines_train_together_by_a_rendezvous_address(folder: Path, run_of_two: Path) -> None:
    """Each machine has a launcher of its own; here both run on this machine."""
    address = f"127.0.0.1:{free_port()}"
    rendezvous = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-id", "7", "--rdzv-endpoint", address)
    machines = [start(config_of(folder), folder / "machines", 1, launch=rendezvous) for _ in range(2)]
    for machine in machines:
        _, errors = wait_for_end(machine)
        assert machine.returncode == 0, errors
    assert losses(folder / "machines") == approx(losses(run_of_two), magnitude=LARGEST)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "parts", "sharded"), [(1, 1, False), pytest.param(3, 2, True, marks=pytest.mark.weekly)]
)
def test_fewer_pairs_than_micro_batches_leave_a_process_idle(
    folder: Path, pairs: int, parts: int, sharded: bool
) -> None:
    """A process without pairs in an update does not block the other, and the sums are right."""
    plan = {"batch_sentences": pairs, "accumulation": parts, "steps": 3, "optimizer": "adamw"}
    run_of_one, run_of_two = folder / f"single-{pairs}", folder / f"pair-{pairs}"
    train(config_of(folder, **plan), run_of_one, listener=CollectingListener())
    run(config_of(folder, **plan, shard=sharded), run_of_two, 2)
    assert losses(run_of_two) == approx(losses(run_of_one), magnitude=LARGEST)


@pytest.mark.slow
def test_processes_agree_on_the_number_of_updates_that_fit_into_the_time(folder: Path) -> None:
    """Each process measures its own time; different numbers of updates would block for ever."""
    out = folder / "limited"
    run(config_of(folder, max_minutes=0.02, steps=10_000, save_every=10, shard=True), out, 2)
    steps = [record for record in metrics(out) if record["kind"] == "step"]
    assert 1 <= steps[-1]["step"] == steps[-1]["total_steps"] < 10_000


@pytest.mark.slow
def test_when_one_process_is_killed_the_others_stop_and_the_last_checkpoint_is_complete(folder: Path) -> None:
    out = folder / "killed"
    config = config_of(folder, steps=100_000, save_every=5)
    first, second = fork(config, out, 2)
    while not any((out / "checkpoints").glob("step-*")):
        assert first.is_alive()
        time.sleep(0.05)
    second.kill()
    assert exit_codes([first]) not in ([0], [None])
    found = CollectingListener()
    *_, last = sorted(int(path.name.removeprefix("step-")) for path in (out / "checkpoints").glob("step-*"))
    train(config_of(folder, steps=last + 1, save_every=5), out, listener=found, force=True)
    assert f"resuming after step {last:,}" in found.messages


@pytest.mark.slow
@pytest.mark.weekly
def test_repeated_signals_to_stop_end_all_processes_after_one_checkpoint(folder: Path) -> None:
    """A terminal signals every process, and the launcher signals its processes again.

    A cluster sends SIGTERM, as the test of a validation below does.
    """
    out = folder / "stopped"
    config = config_of(folder, steps=100_000, save_every=50_000)
    process = start(config, out, 2)
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    for pid in [*children(process.pid), process.pid]:
        os.kill(pid, signal.SIGINT)
    _, errors = wait_for_end(process)
    assert process.returncode != 0
    (last,) = (out / "checkpoints").glob("step-*")
    step = int(last.name.removeprefix("step-"))
    assert f"stopped and saved at step {step:,}" in errors
    assert [record["step"] for record in metrics(out)] == list(range(1, step + 1))


@pytest.mark.slow
@pytest.mark.weekly
def test_a_validation_is_interrupted_in_all_processes(folder: Path) -> None:
    """A process that continued alone would wait for the sums of the other for ever."""
    config, out = config_of(folder, steps=100_000, save_every=5, valid_sentences=0), folder / "stopped-validating"
    write_split(folder / "corpus", "many", SENTENCES * 400)
    data = config.data.model_copy(update={"valid": "many", "drop_overlap": False})
    config = config.model_copy(update={"data": data})
    process = start(config, out, 2)
    while not (out / "checkpoints" / "step-5").exists():
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGTERM)  # the launcher signals its processes
    _, errors = wait_for_end(process)
    assert process.returncode != 0
    assert re.search("stopping; the checkpoint of step 5 is (being )?saved", errors)
    assert "stopped and saved at step 5" in errors
    assert {record["kind"] for record in metrics(out)} == {"step"}


def children(pid: int) -> list[int]:
    """Return the ids of the child processes."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()]


def test_a_single_process_communicates_with_no_other() -> None:
    assert not torch.distributed.is_initialized()
    assert ALONE.total([1.5, 2]) == [1.5, 2]
    assert ALONE.gather({"a": ["ü", None]}) == [{"a": ["ü", None]}]
    assert ALONE.share([5, 6, 7]) == [5, 6, 7]
    ALONE.wait()
