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
from tests.decoding.native.processors import compile_driver

from manyheads.decoding.native import build

OPTIONS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")
RUN_TIME = {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "TSAN_OPTIONS": "halt_on_error=1"}
TRIVIAL = "int main(void) { return 0; }\n"

PYTHON = """
import sys
import torch
from tests.model.samples import BOS, EOS, TARGET_SIZE, random_ids, scrambled_model
from manyheads.decoding.native import build
from manyheads.decoding.native.beams import NativeBeams
from manyheads.decoding.prepare import pack
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.search.beam_state import divisors

build._load = lambda: build._open_library(sys.argv[1])
torch.set_num_threads(3)
with torch.no_grad():
    for positions, width, heads, precision in [
        ("rotary", 64, 4, "fp32"), ("sinusoidal", 30, 3, "int8"), ("learned", 30, 3, "bf16")
    ]:
        tensors = scrambled_model(positions=positions, d_model=width, num_heads=heads).float()
        model = pack(tensors, precision)
        assert model.native is not None, build.why_none()
        stepper, tokens = EncoderDecoderStepper(model, random_ids(3, 7, TARGET_SIZE)), torch.full((3,), BOS)
        for _ in range(40):
            tokens = stepper.step(tokens).argmax(-1)
        for beam_size in (1, 5):
            beams = NativeBeams(model.native, model.native.read, divisors(40, 1.0), beam_size=beam_size, n_best=1,
                                bos=BOS, eos=EOS, suppressed=(0, 1))
            for length in (1, 7, 40):
                beams.add([[5] * (length - 1) + [EOS]] * 2, [40 - length, 39])
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


@pytest.mark.parametrize("waiting", [(), ("-DNO_FUTEX",)], ids=["futex", "condition variables"])
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
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
