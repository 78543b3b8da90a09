"""Sizes of a process in memory. Processes whose memory is measured import this module, and so it imports little."""

from __future__ import annotations

import sys
from pathlib import Path


def memory_mib(field: str = "VmHWM", process: int | str = "self") -> float:
    """Return a size of a process in MiB, by its name in /proc; without /proc, its largest resident size so far.

    Args:
        field: VmHWM, the largest resident size so far (getrusage inherits that of the parent); VmRSS, that of now;
            RssAnon, without the pages of files, which the system can take back.
        process: its id.
    """
    status = Path(f"/proc/{process}/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1]) / 1024
    try:
        import resource  # not on Windows
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
