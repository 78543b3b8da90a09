"""Quotas of processor time count as processors, in both versions of the control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.processors import allowed_processors, available_processors, processor_quota

V1 = "sys/fs/cgroup/cpu,cpuacct"


def write(root: Path, groups: str, quotas: dict[str, str]) -> None:
    """Write the files of a system: /proc/self/cgroup, and quota and period of each folder."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups, encoding="utf-8")
    for name, limit in quotas.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        if name.startswith(V1):
            for kind, number in zip(("quota", "period"), limit.split(), strict=True):
                (folder / f"cpu.cfs_{kind}_us").write_text(f"{number}\n", encoding="utf-8")
        else:
            (folder / "cpu.max").write_text(f"{limit}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("groups", "quotas", "expected"),
    [
        ("0::/\n", {"sys/fs/cgroup": "200000 100000"}, 2),
        ("0::/\n", {"sys/fs/cgroup": "150000 100000"}, 2),
        ("0::/\n", {"sys/fs/cgroup": "5000 100000"}, 1),
        ("0::/\n", {"sys/fs/cgroup": "max 100000"}, None),
        ("0::/\n", {"sys/fs/cgroup": "9900000 100000"}, None),
        ("0::/a/b\n", {"sys/fs/cgroup/a": "300000 100000", "sys/fs/cgroup/a/b": "max 100000"}, 3),
        ("0::/docker/1f\n", {"sys/fs/cgroup": "100000 100000"}, 1),
        ("5:memory:/x\n3:cpu,cpuacct:/x\n0::/\n", {f"{V1}/x": "400000 200000", V1: "-1 100000"}, 2),
        ("3:cpu,cpuacct:/docker/1f\n", {V1: "50000 100000"}, 1),
        ("3:cpu,cpuacct:/\n2:cpuset:/\n", {V1: "-1 100000"}, None),
        ("", {}, None),
    ],
)
def test_the_smallest_quota_of_a_group_and_those_above_it_is_the_number_of_processors(
    tmp_path: Path, groups: str, quotas: dict[str, str], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.processors.allowed_processors", lambda: 64)
    write(tmp_path, groups, quotas)
    assert processor_quota(tmp_path) == expected


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert processor_quota(tmp_path) is None
    assert 1 <= available_processors() <= allowed_processors() <= (os.cpu_count() or 1)


@pytest.fixture
def limited_group() -> Iterator[Path]:
    """Make a control group that may use half a processor, where this user may make one."""
    version_1, version_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    group = (version_1 if version_1.is_dir() else version_2) / f"manyheads-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control group can be made here")
    try:
        if version_1.is_dir():
            (group / "cpu.cfs_quota_us").write_text("50000")
        else:
            (group / "cpu.max").write_text("50000 100000")
        yield group
    except OSError:
        pytest.skip("no control group can be limited here")
    finally:
        group.rmdir()


@pytest.mark.skipif(allowed_processors() == 1, reason="a quota takes nothing from one processor")
def test_the_program_in_a_group_with_half_a_processor_computes_with_one_thread(limited_group: Path) -> None:
    code = (
        "import os, sys\n"
        f"open({str(limited_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        "sys.argv[1:] = ['doctor']\n"
        "from manyheads.__main__ import main\nmain()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    expected = f"1 on 1 processors (the quota of its container; {allowed_processors()} without it)"
    assert expected in done.stdout, done.stderr
