"""Check that every contender of the peer benchmarks still runs, JoeyNMT and Eole from PyPI too, on a tiny size.

    python benchmarks/peers/check.py

Each toolkit that manyheads does not need is installed into an environment of its own in build/peers, once, as their
requirements contradict each other. These environments also see the packages of the Python that runs this, torch
above all, so that all contenders compute with the same version. If a toolkit cannot be installed, for example
without a network, a line names the contenders that are not checked.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1]
sys.path.insert(0, str(BENCHMARKS))

from harness import environment, script  # noqa: E402

PACKAGES = {
    "joeynmt": ["joeynmt==2.3.0", "importlib_metadata"],
    "eole": ["eole==0.6.4", "aiohttp"],
}
# Toolkits whose Python an option of the script names.
SCRIPTS = {"train_peers": ["joeynmt", "eole"], "decode_peers": ["joeynmt"]}


def main() -> None:
    pythons, ours, missing = {}, Path(sysconfig.get_path("purelib")), []
    for name, packages in PACKAGES.items():
        try:
            pythons[name] = environment(BENCHMARKS.parent / "build" / "peers" / name, *packages, beside=ours)
        except subprocess.CalledProcessError as error:
            print(f"{packages[0]} cannot be installed: {error.stderr.strip().splitlines()[-1]}")
    for name, toolkits in SCRIPTS.items():
        options = [
            part for toolkit in toolkits if toolkit in pythons for part in (f"--{toolkit}", pythons[toolkit])
        ]
        document = script(name, "--tiny", *options)
        rows = document["rows"]
        names = rows if isinstance(rows, dict) else dict.fromkeys(row["contender"] for row in rows)
        print(f"{name}: {', '.join(names)} run ({document['versions']})")
        missing += [f"{name} {contender}" for contender in document["left out"]]
    if missing:
        print(f"Not checked: {', '.join(missing)}")
    if missing and len(pythons) == len(PACKAGES):
        raise SystemExit("error: all toolkits are installed, and yet these contenders do not run")


if __name__ == "__main__":
    main()
