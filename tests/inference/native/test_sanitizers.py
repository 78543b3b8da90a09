"""Sanitizers find no error in the C code: no access outside of arrays, no undefined behaviour, no data race.

`driver.c` runs greedy search, beam search and continuous batching with several threads and callers, on models of
odd sizes, in arrays of exactly the size that the library may use. `PYTHON` does the same with arrays of Python.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.inference.native.processors import compile_driver

from manyheads.inference.native import build

OPTIONS = ("-O1", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")
RUN_TIME = {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "TSAN_OPTIONS": "halt_on_error=1"}
TRIVIAL = "int main(void) { return 0; }\n"

PYTHON = """
import sys
import torch
from tests.model.samples import scrambled_model
from manyheads.inference.native import build
from manyheads.inference.native.beams import NativeBeams
from manyheads.decoding.prepare import pack_native
from manyheads.search.interface import never_cancelled
from manyheads.search.options import Constraints, Sampling, SearchOptions

build._load = lambda: build._open_library(sys.argv[1])
torch.set_num_threads(3)
with torch.no_grad():
    for positions, width, heads, precision in [
        ("rotary", 64, 4, "fp32"), ("sinusoidal", 30, 3, "int8"), ("learned", 30, 3, "bf16")
    ]:
        tensors = scrambled_model(positions=positions, d_model=width, num_heads=heads).float()
        model = pack_native(tensors, precision)
        assert model is not None, build.why_none()
        for search in ({}, {"beam_size": 5}, {"beam_size": 5, "no_repeat_ngram": 2, "min_length_ratio": 0.5},
                       {"sampling": Sampling(), "n_best": 2}, {"sampling": Sampling(top_k=9, top_p=0.7)},
                       {"sampling": Sampling(top_p=0.5)}):
            lengths = {"length_penalty": 1.0, "max_length_ratio": 0.5, "max_length_offset": 20}
            options = {"beam_size": 1} | lengths | search
            beams = NativeBeams(model, SearchOptions(**options))
            for length in (1, 7, 39):
                constraints = [Constraints(), Constraints((5,) * (length // 2), ((6,), (7, 8), (5, 5)))]
                beams.add([[5] * length] * 2, never_cancelled, lambda index, outputs: None, constraints)
                beams.step()
            while beams.running:
                beams.step()
"""


@functools.cache
def find_sanitizer(sanitizer: str) -> tuple[str, tuple[str, ...]] | None:
    """Return a compiler that has a sanitizer, and the command that starts its programs; None if there is none.

    The thread sanitizers of some compilers cannot run with address space layout randomization.
    """
    for compiler in filter(shutil.which, ("gcc", "clang")):
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "trivial.c"), str(Path(folder, "trivial"))
            source.write_text(TRIVIAL, encoding="utf-8")
            command = [compiler, f"-fsanitize={sanitizer}", str(source), "-o", program]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                continue
            for start in ((), ("setarch", platform.machine(), "-R")):
                possible = not start or shutil.which(start[0])
                if possible and subprocess.run([*start, program], capture_output=True, check=False).returncode == 0:
                    return compiler, start
    return None


@pytest.mark.parametrize(
    ("sanitizer", "waiting"),
    [
        ("address,undefined", ()),
        pytest.param("address,undefined", ("-DNO_FUTEX",), marks=pytest.mark.weekly),
        pytest.param("thread", (), marks=pytest.mark.weekly),
        pytest.param("thread", ("-DNO_FUTEX",), marks=pytest.mark.weekly),
    ],
    ids=["address, futex", "address, condition variables", "thread, futex", "thread, condition variables"],
)
@pytest.mark.slow
def test_a_sanitizer_finds_no_error_in_any_search(sanitizer, waiting, tmp_path: Path) -> None:
    if (found := find_sanitizer(sanitizer)) is None:
        pytest.skip(f"needs a compiler with -fsanitize={sanitizer}")
    compiler, start = found
    vectors = build._VECTORS.get(build.instruction_set(), ())
    program = compile_driver(compiler, tmp_path, (*vectors, *OPTIONS, *waiting, f"-fsanitize={sanitizer}"))
    done = subprocess.run([*start, program], env=os.environ | RUN_TIME, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=600, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.weekly
def test_the_arrays_that_python_allocates_are_large_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (found := find_sanitizer("address,undefined")) is None or found[0] != "gcc":
        pytest.skip("needs gcc with -fsanitize=address,undefined")
    name = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    monkeypatch.setenv("CC", "gcc")
    source = Path(build.__file__).with_name("decoder.c")
    library = build._compile_library(source, tmp_path / "decoder.so", (*OPTIONS, "-fsanitize=address,undefined"))
    environment = os.environ | RUN_TIME | {"LD_PRELOAD": name.stdout.strip()}
    command = [sys.executable, "-c", PYTHON, str(library)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
