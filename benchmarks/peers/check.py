"""Check that every contender of the peer benchmarks still runs, JoeyNMT and Eole from PyPI too, on a tiny size.

    make benchmarks-check        # or: python benchmarks/peers/check.py

The toolkits that manyheads does not need are installed into build/peers, once; that environment also sees the
packages of the Python that runs this, torch above all, so that all contenders compute with the same one. Where the
toolkits cannot be installed, as without a network, a line names the contenders that are not checked.
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
PACKAGES = ["joeynmt==2.3.0", "importlib_metadata", "eole==0.6.4", "aiohttp", "accelerate"]
SCRIPTS = {
    "train_peers": ["--joeynmt", "{python}", "--eole", "{python}"],
    "decode_peers": ["--joeynmt", "{python}"],
}


def python_with_peers() -> str | None:
    """Return a Python that has the toolkits; None where they cannot be installed."""
    python = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = FOLDER / "ready.json"
    if ready.is_file() and json.loads(ready.read_text()) == [sys.executable, *PACKAGES]:
        return str(python)
    venv.create(FOLDER, with_pip=True, clear=True)
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    inside = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    ours = sysconfig.get_path("purelib")
    (Path(inside) / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *PACKAGES]
    done = subprocess.run(install, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"JoeyNMT, Eole and accelerate cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        return None
    ready.write_text(json.dumps([sys.executable, *PACKAGES]))
    return str(python)


def run(script: str, python: str | None) -> dict[str, Any]:
    """Run a script on its tiny size; return its document."""
    more = [] if python is None else [option.format(python=python) for option in SCRIPTS[script]]
    command = [python or sys.executable, str(BENCHMARKS / f"{script}.py"), "--tiny", "--json", *more]
    document: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return document


def main() -> None:
    python = python_with_peers()
    missing = []
    for script in SCRIPTS:
        document = run(script, python)
        rows = document["rows"]
        names = rows if isinstance(rows, dict) else dict.fromkeys(row["contender"] for row in rows)
        print(f"{script}: {', '.join(names)} run ({document['versions']})")
        missing += [f"{script} {name}" for name in document["left out"]]
    if missing:
        print(f"Not checked: {', '.join(missing)}")
    if missing and python is not None:
        raise SystemExit("error: all toolkits are installed, and yet these contenders do not run")


if __name__ == "__main__":
    main()
