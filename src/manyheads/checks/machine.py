"""Examine the machine: versions, device, memory, disk, threads and optional packages."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import torch

from manyheads import __version__
from manyheads.checks.catalogue import in_korean, machine_finding
from manyheads.inference.native.build import instruction_set, library, origin, why_none
from manyheads.processors import allowed_processors, available_processors, processor_quota
from manyheads.tensors.devices import pick_device, pick_precision
from transformer_doctor.report import Diagnosis, Finding, make_report

_GIB = 1 << 30
_LEAST_PYTHON = (3, 11)
_LEAST_MEMORY, _LEAST_DISK = 2.0, 2.0  # GiB; training Multi30k with the default recipe takes about 1.5 and 0.5


@dataclass(frozen=True)
class _Machine:
    """Properties of a machine.

    Attributes:
        device: default device of training; precision: its number format there.
        memory_gib, free_memory_gib: total and free memory; None where the system does not report them.
        disk_gib: free disk space in the working directory.
        threads: threads of torch; processors: processors that this process may use.
        limited_from: processors that it might use without the quota of its container; None without a quota.
        decoding: code that computes the steps of decoding on the CPU, and the reason.
        extras: missing packages of each extra of the package.
    """

    manyheads: str
    python: str
    torch: str
    system: str
    device: str
    device_name: str
    precision: str
    processors: int
    limited_from: int | None
    threads: int
    decoding: str
    memory_gib: float | None
    free_memory_gib: float | None
    disk_gib: float
    extras: Mapping[str, Sequence[str]]

    def facts(self) -> dict[str, str]:
        memory, free = _gib(self.memory_gib), _gib(self.free_memory_gib)
        quota = f" (the quota of its container; {self.limited_from} without it)" if self.limited_from else ""
        return {
            "manyheads": self.manyheads,
            "Python": f"{self.python} on {self.system}",
            "torch": self.torch,
            "device": f"{self.device} ({self.device_name}), {self.precision}",
            "threads": f"{self.threads} on {self.processors} processors{quota}",
            "decoding on the CPU": self.decoding,
            "memory": f"{memory}, {free} free",
            "disk": f"{_gib(self.disk_gib)} free here",
            **{f"extra {name}": _describe_extra(name, missing) for name, missing in self.extras.items()},
        }


def examine_machine(folder: Path | None = None) -> Diagnosis:
    """Examine this machine; the disk is that of a folder, by default the working directory."""
    machine = _describe_machine(folder or Path.cwd())
    report = in_korean(make_report(_machine_findings(machine), ["Python", "torch", "memory", "disk"]))
    return Diagnosis(machine.facts(), report, {"machine": asdict(machine)})


def _describe_machine(folder: Path) -> _Machine:
    device = pick_device("auto")
    name = (
        torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    )
    total, free = memory(device)
    return _Machine(
        manyheads=__version__,
        python=platform.python_version(),
        torch=torch.__version__,
        system=platform.platform(terse=True),
        device=device.type,
        device_name=name,
        precision=pick_precision("auto", device),
        processors=available_processors(),
        limited_from=allowed_processors() if processor_quota() else None,
        threads=torch.get_num_threads(),
        decoding=_describe_decoding(),
        memory_gib=total,
        free_memory_gib=free,
        disk_gib=shutil.disk_usage(folder).free / _GIB,
        extras=_missing_packages(),
    )


def _describe_decoding() -> str:
    """Say whether C (and its file) or torch (and why) computes decoding steps on the CPU."""
    if (code := library()) is None:
        return f"torch; the C decoder is off: {why_none()}"
    return f"the C decoder for {instruction_set()} ({origin(code)})"


def memory(device: torch.device) -> tuple[float | None, float | None]:
    """Return total and free memory in GiB, of the GPU if training would use it; None where unknown."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return total / _GIB, free / _GIB
    try:
        page = os.sysconf("SC_PAGE_SIZE") / _GIB
        return os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page
    except (AttributeError, ValueError, OSError):  # Windows; a system without these figures
        return None, None


def _missing_packages() -> dict[str, list[str]]:
    """Return the missing packages of each extra of the installed package except "all", for this system."""
    missing: dict[str, list[str]] = {}
    for extra, package in _packages_of_extras("manyheads"):
        if extra != "all":
            installed = importlib.util.find_spec(package.replace("-", "_")) is not None
            missing.setdefault(extra, []).extend([] if installed else [package])
    return missing


def _packages_of_extras(distribution: str) -> Iterator[tuple[str, str]]:
    """Yield extra and package of each requirement of an extra, on this system; bitext[zstd] is what it requires."""
    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return
    for line in requirements:
        extra = re.search(r"""extra == ['"]([\w-]+)['"]""", line)
        package = re.match(r"([\w.-]+)(?:\[([\w-]+)\])?", line)
        not_on = re.search(r"""sys_platform != ['"](\w+)['"]""", line)
        if (not_on and not_on[1] == sys.platform) or not (extra and package):
            continue
        yield extra[1], package[1]
        if package[2] and package[1] != distribution:
            yield from ((extra[1], name) for other, name in _packages_of_extras(package[1]) if other == package[2])


def _describe_extra(name: str, missing: Sequence[str]) -> str:
    """Return whether an extra is installed, or what is missing and the command that installs it."""
    return f'missing: {", ".join(missing)}; pip install "manyheads[{name}]"' if missing else "installed"


def _machine_findings(machine: _Machine) -> Iterator[Finding]:
    """Yield a finding for each quantity that is too small, and for a GPU that is not used."""
    if sys.version_info < _LEAST_PYTHON:
        yield machine_finding("old-python", f"Python is {machine.python}")
    if machine.memory_gib is not None and machine.memory_gib < _LEAST_MEMORY:
        yield machine_finding("little-memory", f"{machine.memory_gib:.1f} GiB of memory")
    if machine.disk_gib < _LEAST_DISK:
        yield machine_finding("little-disk", f"{machine.disk_gib:.1f} GiB free here")
    if machine.device == "cpu" and shutil.which("nvidia-smi") is not None:
        evidence = f"an NVIDIA driver is installed, but torch {machine.torch} uses the CPU"
        yield machine_finding("gpu-not-used", evidence)
    if machine.threads > machine.processors:
        evidence = f"torch computes with {machine.threads} threads on {machine.processors} processors"
        yield machine_finding("too-many-threads", evidence, processors=machine.processors)


def _gib(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} GiB"
