"""Count the files to open to follow one command, and how often its calls climb back to a caller's package.

    python -m tools.walks RUN      train a tiny model into RUN for one update, then translate a line with it

A file counts when one of its functions is called; module bodies, comprehensions and lambdas do not. The walk of an
update begins where the trainer is made, with the files of the callers, and ends with the first step of the
optimiser. A climb is a call from one package into a higher one, to which a caller further up belongs; each pair of
files counts once. Of the C decoder, all files that `decoder.c` includes count, if it is used. One JSON line a walk.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import bitext
import manyheads

SOURCE = Path(manyheads.__file__).parent
BITEXT = Path(bitext.__file__).parent.parent
Function = tuple[str, str]  # file below the package, name
NATIVE = SOURCE / "inference" / "native"
PACKAGES = ["cli", "improve", "runs", "serving", "tasks", "inspection", "checks", "interop", "training", "decoding",
            "web", "inference", "tensors", "checkpoint", "data", "evaluation", "views", "model", "text", "search",
            "config"]  # fmt: skip
TINY = ("training.steps=1", "training.warmup_steps=1", "training.batch_tokens=500", "training.valid_sentences=2",
        "model.d_model=32", "data.limit=300")  # fmt: skip


class Walk:
    """The files of manyheads and bitext in the order of their first call, and the climbs between them."""

    def __init__(self, first: Function | None = None, last: Function | None = None) -> None:
        """Record from the call of `first`, with the files of its callers, until `last` returns; None: all."""
        self.files: dict[str, None] = {}
        self.climbs: set[tuple[str, str]] = set()
        self.first, self.last = first, last
        self.done = False

    def observe(self, frame: FrameType, event: str, argument: Any) -> None:
        """Receive an event of `sys.setprofile`."""
        if self.done or event not in ("call", "return") or frame.f_code.co_name.startswith("<"):
            return
        if (file := file_of(frame)) is None:
            return
        if event == "return":
            self.done = (file, frame.f_code.co_name) == self.last
            return
        callers = [file_of(caller) for caller in callers_of(frame)]
        ours = [caller for caller in callers if caller is not None]
        if self.first is not None:
            if (file, frame.f_code.co_name) != self.first:
                return
            self.first = None
            self.files.update(dict.fromkeys(reversed(ours)))
        self.files.setdefault(file)
        if ours and rank(file) < rank(ours[0]) and package_of(file) in map(package_of, ours[1:]):
            self.climbs.add((ours[0], file))


@contextmanager
def calls_seen(observe: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Give the calls and returns of all threads to a function, inside the context."""
    before = sys.getprofile()
    threading.setprofile(observe)
    sys.setprofile(observe)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def callers_of(frame: FrameType) -> list[FrameType]:
    """Return the frames above a frame, the nearest first."""
    found = []
    while (above := frame.f_back) is not None:
        found.append(above)
        frame = above
    return found


def file_of(frame: FrameType) -> str | None:
    """Return the path of a frame's file below the package, of bitext with its name; None for code of others."""
    name = frame.f_code.co_filename
    root = next((root for root in (SOURCE, BITEXT) if name.startswith(f"{root}/")), None)
    return None if root is None else name[len(str(root)) + 1 :]


def package_of(file: str) -> str:
    """Return the folder that a file is in, below the package."""
    return file.split("/")[0]


def rank(file: str) -> int:
    """Return the place of a file's package, counted from the highest; modules without a package are lowest."""
    package = package_of(file)
    return PACKAGES.index(package) if package in PACKAGES else len(PACKAGES)


def c_files() -> set[str]:
    """Return the files of the C decoder: decoder.c and all that it includes."""
    found: set[str] = set()
    waiting = ["decoder.c"]
    while waiting:
        name = waiting.pop()
        if name not in found and (NATIVE / name).is_file():
            found.add(name)
            waiting += re.findall(r'#include "(.+?)"', (NATIVE / name).read_text(encoding="utf-8"))
    return found


def run_program(*words: str) -> None:
    """Run the command line in this process."""
    from manyheads.__main__ import main

    sys.argv = ["manyheads", *words]
    try:
        main()
    except SystemExit as error:
        if error.code:
            raise


def report(name: str, walk: Walk, code: set[str]) -> None:
    """Print the result of a walk, and its files on stderr."""
    print(
        *walk.files,
        *sorted(f"  climb: {before} -> {after}" for before, after in walk.climbs),
        sep="\n",
        file=sys.stderr,
    )
    counts = {"walk": name, "python_files": len(walk.files), "c_files": len(code), "climbs": len(walk.climbs)}
    print(json.dumps(counts), flush=True)


def main() -> None:
    """Count both walks."""
    run = Path(sys.argv[1])
    settings = [word for setting in TINY for word in ("--set", setting)]
    training = Walk(first=("runs/train.py", "make_trainer"), last=("training/update.py", "step"))
    with calls_seen(training.observe):
        run_program("--quiet", "train", "demo-de-en", "-o", str(run), *settings)
    report("one update of train", training, set())
    text = run.with_suffix(".txt")
    text.write_text("Ein Hund.\n", encoding="utf-8")
    translate = ("--quiet", "translate", str(run), str(text), "-o", str(text.with_suffix(".out")))
    run_program(*translate)  # compiles the decoder
    translation = Walk()
    with calls_seen(translation.observe):
        run_program(*translate)
    used = any("native" in file for file in translation.files)
    report("translate one line", translation, c_files() if used else set())


if __name__ == "__main__":
    main()
