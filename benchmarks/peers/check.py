"""Check that every contender of the peer benchmarks still runs, JoeyNMT and Eole from PyPI too, on a tiny size.

    python benchmarks/peers/check.py

Each toolkit that manyheads does not need is installed into an environment of its own in build/peers, once, as their
requirements contradict each other. These environments also see the packages of the Python that runs this, torch
above all, so that all contenders compute with the same version. If a toolkit cannot be installed, for example
without a network, a line names the contenders that are not checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[1]
FOLDER = BENCHMARKS.parent / "build" / "peers"
PACKAGES = {
    "joeynmt": ["joeynmt==2.3.0", "importlib_metadata"],
    "eole": ["eole==0.6.4", "aiohttp"],
}
SCRIPTS = {
    "train_peers": ["joeynmt", "eole"],
    "decode_peers": ["joeynmt"],
}  # toolkits whose Python an option of the script names


def python_with(name: str) -> str | None:
    """Install a toolkit into an environment unless it is there; return its Python, or None if that fails."""
    folder, packages = FOLDER / name, PACKAGES[name]
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / "ready.json"
    if ready.is_file() and json.loads(ready.read_text()) == [sys.executable, *packages]:
        return str(python)
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site_packages = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    own_packages = sysconfig.get_path("purelib")
    (Path(site_packages) / "ours.pth").write_text(f"import site; site.addsitedir({own_packages!r})\n")
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *packages]
    completed = subprocess.run(install, stderr=subprocess.PIPE, text=True)
    if completed.returncode != 0:
        print(f"{packages[0]} cannot be installed: {completed.stderr.strip().splitlines()[-1]}")
        return None
    ready.write_text(json.dumps([sys.executable, *packages]))
    return str(python)


def run(script: str, toolkits: list[str], pythons: dict[str, str | None]) -> dict[str, Any]:
    options = [part for name in toolkits if (python := pythons[name]) for part in (f"--{name}", python)]
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), "--tiny", "--json", *options]
    completed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


def main() -> None:
    pythons = {name: python_with(name) for name in PACKAGES}
    missing = []
    for script, toolkits in SCRIPTS.items():
        document = run(script, toolkits, pythons)
        rows = document["rows"]
        names = rows if isinstance(rows, dict) else dict.fromkeys(row["contender"] for row in rows)
        print(f"{script}: {', '.join(names)} run ({document['versions']})")
        missing += [f"{script} {name}" for name in document["left out"]]
    if missing:
        print(f"Not checked: {', '.join(missing)}")
    if missing and all(pythons.values()):
        raise SystemExit("error: all toolkits are installed, and yet these contenders do not run")


if __name__ == "__main__":
    main()
