"""The processors that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path


def available_processors() -> int:
    """Return the number of processors in the affinity of this process, at most its quota of processor time."""
    return processor_quota() or allowed_processors()


def allowed_processors() -> int:
    """Return the number of processors on which this process may run, a quota left aside."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_quota(root: Path = Path("/")) -> int | None:
    """Return the processors whose time the control groups leave to this process, None where they leave all.

    `docker run --cpus 1.5` sets such a quota; a part of a processor counts as one. Each group and those above it
    are read, in both versions of the interface. A container may see the path that its group has outside: there only
    the uppermost folder exists.

    Args:
        root: folder that holds `proc` and `sys`.
    """
    try:
        text = (root / "proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:  # another system, or no /proc
        return None
    shares = []
    for _, controllers, path in (line.split(":", 2) for line in text.split("\n") if line):
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        group = mount / path.lstrip("/")
        folders = [folder for folder in (group, *group.parents) if folder.is_relative_to(mount)]
        shares += [share for folder in folders for share in _shares(folder)]
    quota = min(shares, default=math.inf)
    return max(1, math.ceil(quota)) if quota < allowed_processors() else None


def _shares(folder: Path) -> list[float]:
    """Return the processors that a control group may keep busy: one number, or none where it sets no limit."""
    try:
        if (limit := folder / "cpu.max").exists():
            quota, period = limit.read_text(encoding="utf-8").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8")
        return [int(quota) / int(period)] if int(quota) > 0 else []
    except (OSError, ValueError):  # "max"; a group without this controller
        return []
