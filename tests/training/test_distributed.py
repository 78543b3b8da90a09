"""Several processes that train together: the same updates, the same losses, and one that writes."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config
from safetensors.torch import load_file
from tests.runs.parts import SENTENCES, make_config, metrics, write_corpus, write_split
from tests.training.parts import CollectingListener, needs_compiler

from manyheads.cli.recipes import described
from manyheads.config.schema import Config
from manyheads.runs.train import train
from manyheads.training.distributed import ALONE

PATIENCE = 1_200  # seconds for processes that compile on a busy machine; those that hang must end some time


def start(
    config: Config, out: Path, processes: int, *options: str, launch: tuple[str, ...] = ("--standalone",)
) -> subprocess.Popen[str]:
    """Train with `torchrun`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    file = out.parent / f"{out.name}.toml"
    file.write_text("\n".join(described(config)), encoding="utf-8")
    launcher = [sys.executable, "-m", "torch.distributed.run", *launch, "--nproc-per-node", str(processes),
                "--log-dir", str(out.parent / "logs")]  # fmt: skip
    return subprocess.Popen(
        [*launcher, "-m", "manyheads", "train", str(file), "-o", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for a launcher; what it printed on both ways. None of its processes outlives a test that hangs."""
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        for pid in [*children(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)
        raise


def run(config: Config, out: Path, processes: int, *, force: bool = False) -> None:
    """Train by so many processes, forked from one that has imported everything and told what `torchrun` tells."""
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload([__name__])
    world = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    started = [forked.Process(target=train_as, args=(rank, world, config, out, force)) for rank in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join(PATIENCE)
    late = [process.exitcode for process in started].count(None)
    for process in started:
        process.kill()
        process.join()
    assert not late, f"{late} processes were not done after {PATIENCE} seconds"
    assert [process.exitcode for process in started] == [0] * processes


def train_as(rank: int, world: dict[str, str], config: Config, out: Path, force: bool) -> None:
    """What each of several processes does."""
    os.environ.update(world, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    if config.training.compile:  # else each would start a process for every core, to compile in
        torch._inductor.config.compile_threads = 1
    train(config, out, listener=CollectingListener(), force=force)


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def config_of(folder: Path, **training: Any) -> Config:
    """No chance but the order: dropout falls differently in each process.

    Nor biases: those of keys have a gradient of nothing but rounding, which Adam makes a step of.
    """
    root = folder / "corpus"
    corpus = root if root.exists() else write_corpus(root)
    settings = {"log_every": 1, "accumulation": 2, "label_smoothing": 0.1, "steps": 14} | training
    return make_config(corpus, model={"dropout": 0.0, "bias": False}, training=settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributed")


@pytest.fixture(scope="module")
def alone(folder: Path) -> Path:
    train(config_of(folder), folder / "alone", listener=CollectingListener())
    return folder / "alone"


@pytest.fixture(scope="module")
def two(folder: Path) -> Path:
    process = start(config_of(folder), folder / "two", 2)
    printed, told = end(process)
    assert process.returncode == 0, told
    assert printed.count("14 steps") == 1, "one of them speaks"
    return folder / "two"


def losses(path: Path) -> list[float]:
    return [record["loss"] for record in metrics(path)]


def test_two_processes_make_the_updates_of_one(alone: Path, two: Path) -> None:
    """The same global batches, so the same losses, norms, validations; and weights as near as sums can be."""
    for one, other in zip(metrics(alone), metrics(two), strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            if isinstance(value, float) and key != "padding":
                assert other[key] == pytest.approx(value, rel=1e-5, abs=1e-5), key
    expected, found = load_file(alone / "model.safetensors"), load_file(two / "model.safetensors")
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_two_processes_adapt_the_same_factors(folder: Path) -> None:
    """Each draws them alike, freezes alike, and unfreezes at the same update."""
    config = config_of(folder, lora_rank=2, optimizer="adamw", frozen_layers=0, unfreeze_every=3, steps=8)
    train(config, folder / "adapted alone", listener=CollectingListener())
    run(config, folder / "adapted by two", 2)
    expected = load_file(folder / "adapted alone" / "model.safetensors")
    found = load_file(folder / "adapted by two" / "model.safetensors")
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 2)])
@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes(
    folder: Path, alone: Path, two: Path, before: int, after: int
) -> None:
    """The order of the pairs is that of the whole, and nothing is trained twice."""
    out = folder / f"{before}-{after}"
    run(config_of(folder, steps=7), out, before)
    run(config_of(folder), out, after, force=True)
    steps = [record for record in metrics(out) if record["kind"] == "step"]
    assert [record["step"] for record in steps] == list(range(1, 15))
    expected = [record["loss"] for record in metrics(alone) if record["kind"] == "step"]
    assert [record["loss"] for record in steps] == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("ema", [0.0, 0.5])
@pytest.mark.slow
def test_spread_weights_train_as_whole_ones(folder: Path, ema: float) -> None:
    """And are whole in the run directory: one process goes on with them, and two with those of one."""
    settings = {"optimizer": "adamw", "weight_decay": 0.1, "ema": ema, "average_checkpoints": 2}
    one, two = folder / f"whole-{ema}", folder / f"spread-{ema}"
    train(config_of(folder, **settings), one, listener=CollectingListener())
    run(config_of(folder, **settings, shard=True, steps=7), two, 2)
    train(config_of(folder, **settings, steps=10), two, listener=CollectingListener(), force=True)
    run(config_of(folder, **settings, shard=True), two, 2, force=True)
    steps = [[record["loss"] for record in metrics(out) if record["kind"] == "step"] for out in (one, two)]
    assert steps[1] == pytest.approx(steps[0], abs=2e-5)
    expected, found = load_file(one / "model.safetensors"), load_file(two / "model.safetensors")
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-4)


@needs_compiler
@pytest.mark.slow
def test_processes_compile_their_layers(folder: Path, alone: Path) -> None:
    """Each for itself, and together they make the updates of one that does not compile."""
    out = folder / "compiled"
    run(config_of(folder, compile=True, shard=True, steps=4), out, 2)
    found, expected = (
        [record["loss"] for record in metrics(path) if record["kind"] == "step"] for path in (out, alone)
    )
    assert found == pytest.approx(expected[:4], abs=2e-5)


@pytest.mark.slow
def test_two_machines_meet_at_an_address(folder: Path, two: Path) -> None:
    """Two launchers, as each machine of several has one; here both are this machine."""
    address = f"127.0.0.1:{free_port()}"
    meeting = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-id", "7", "--rdzv-endpoint", address)
    machines = [start(config_of(folder), folder / "machines", 1, launch=meeting) for _ in range(2)]
    for machine in machines:
        _, told = end(machine)
        assert machine.returncode == 0, told
    assert losses(folder / "machines") == pytest.approx(losses(two), abs=1e-6)


@pytest.mark.parametrize(
    ("pairs", "parts", "spread"), [pytest.param(1, 1, False, marks=pytest.mark.slow), (3, 2, True)]
)
def test_fewer_pairs_than_parts_leave_some_idle(folder: Path, pairs: int, parts: int, spread: bool) -> None:
    """One process has nothing to do for once; the sums are right, and none waits for the other in vain."""
    plan = {"batch_sentences": pairs, "accumulation": parts, "steps": 5, "optimizer": "adamw"}
    one, two = folder / f"single-{pairs}", folder / f"pair-{pairs}"
    train(config_of(folder, **plan), one, listener=CollectingListener())
    run(config_of(folder, **plan, shard=spread), two, 2)
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.slow
def test_processes_agree_upon_the_updates_that_fit_into_the_time(folder: Path, spread: bool) -> None:
    """Each has a clock of its own: without an agreement one would wait for another for ever."""
    out = folder / f"limited {spread}"
    run(config_of(folder, max_minutes=0.05, steps=10_000, save_every=10, shard=spread), out, 2)
    steps = [record for record in metrics(out) if record["kind"] == "step"]
    assert 1 <= steps[-1]["step"] == steps[-1]["total_steps"] < 10_000


@pytest.mark.slow
def test_when_one_process_dies_the_others_stop_and_the_checkpoint_is_whole(folder: Path) -> None:
    out = folder / "dying"
    config = config_of(folder, steps=100_000, save_every=5, keep_checkpoints=1)
    process = start(config, out, 2)
    while not any((out / "checkpoints").glob("step-*")):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(children(process.pid)[1], signal.SIGKILL)
    end(process)
    assert process.returncode != 0
    found = CollectingListener()
    (last,) = (int(path.name.removeprefix("step-")) for path in (out / "checkpoints").glob("step-*"))
    train(config_of(folder, steps=last + 1, save_every=5, keep_checkpoints=1), out, listener=found, force=True)
    assert f"resuming after step {last:,}" in found.messages


@pytest.mark.parametrize("request_to_stop", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_a_request_to_stop_is_heeded_by_all_however_often_it_comes(
    folder: Path, request_to_stop: signal.Signals
) -> None:
    """A cluster or a terminal tells everybody, and then the launcher tells its processes once more."""
    out = folder / f"asked-{request_to_stop.name}"
    config = config_of(folder, steps=100_000, save_every=50_000)
    process = start(config, out, 2)
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    for pid in [*children(process.pid), process.pid]:
        os.kill(pid, request_to_stop)
    _, told = end(process)
    assert process.returncode != 0
    (last,) = (out / "checkpoints").glob("step-*")
    step = int(last.name.removeprefix("step-"))
    assert f"stopped and saved at step {step:,}" in told
    assert [record["step"] for record in metrics(out)] == list(range(1, step + 1))


@pytest.mark.slow
def test_a_validation_is_interrupted_in_all_processes(folder: Path) -> None:
    """One that went on would wait for the sums of the other for ever."""
    config, out = config_of(folder, steps=100_000, save_every=5, valid_sentences=0), folder / "asked-validating"
    write_split(folder / "corpus", "many", SENTENCES * 400)
    data = config.data.model_copy(update={"valid": "many", "drop_overlap": False})
    config = config.model_copy(update={"data": data})
    process = start(config, out, 2)
    while not (out / "checkpoints" / "step-5").exists():
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGTERM)  # the launcher tells the processes
    _, told = end(process)
    assert process.returncode != 0
    assert re.search("stopping; the checkpoint of step 5 is (being )?saved", told)
    assert "stopped and saved at step 5" in told
    assert {record["kind"] for record in metrics(out)} == {"step"}


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()]


def test_a_process_alone_sends_nothing() -> None:
    assert not torch.distributed.is_initialized()
    assert ALONE.total([1.5, 2]) == [1.5, 2]
    assert ALONE.gather({"a": ["ü", None]}) == [{"a": ["ü", None]}]
    assert ALONE.share([5, 6, 7]) == [5, 6, 7]
    ALONE.wait()
