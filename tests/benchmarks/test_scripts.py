"""Every script of benchmarks/ runs on a tiny size, and prints a document of the measurement and the machine.

A new script uses `benchmarks/harness.py`, which has `--tiny`, `--isa` and `--json`, and data that
`benchmarks/material.py` makes; it has a row in `SCRIPTS` below and one in docs/benchmarks.md. With `--tiny --json`
it prints nothing but a JSON document. No figure is compared: a tiny size measures nothing.

These tests run one contender of each kind. `python benchmarks/peers/check.py` runs all of
them, JoeyNMT and Eole too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.serving.browser import open_browser

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
SHARED = {"harness", "material", "resident"}  # modules of the scripts
TIMEOUT = 1_200  # seconds; a script takes some, and many times as long on a busy machine

# For each script: the path of a figure in its document, with "*" for all entries of a list or an object; options.
SCRIPTS: dict[str, tuple[str, list[str]]] = {
    "augment": ("rows/*/*/updates", []),
    "build": ("rows/kills/*/kills", []),
    "busy": ("rows", []),
    "cluster": ("two workers against one/*/by processor time", []),
    "clean": ("rates/pairs a second/*", []),
    "confidence": ("rows/lines", []),
    "decoding_speed": ("rows/*/median", []),
    "decode_peers": ("rows/*/median", ["--contenders", "manyheads:fp32", "ctranslate2:float32"]),
    "directions": ("bytes/*", []),
    "doctor": ("sound/examinations", []),
    "documents": ("rows/*/words", []),
    "exports": ("rows", []),
    "finetune": ("times as fast", []),
    "gpu_check": ("rows/*/result", ["--device", "cpu"]),
    "html_page": ("rows/equal/*/equal", []),
    "language_model": ("rows/*/tokens_per_second", []),
    "layers": ("rows/*/*/median", []),
    "marked_text": ("rows/*", []),
    "memory": ("sides", []),
    "observatory": ("rows/*/examined", []),
    "parent": ("rows/*", []),
    "quality": ("rows/*/perplexity", []),
    "speedrun": ("processor seconds/references/*", []),
    "scale": ("from text/largest MiB", []),
    "serve": ("memory/mib/*", []),
    "startup": ("rows/*/median", []),
    "suggestions": ("rows/*/*/junk", []),
    "techniques": ("rows/*/*/perplexity", []),
    "terms": ("rows/speed/*/median", []),
    "unlike_training": ("rows/all outside", []),
    "tune": ("rows/*/*/seconds", []),
    "watch_overhead": ("rows/*/median", []),
    "training_speed": ("median", []),
    "train_peers": ("rows/*/median", ["--contenders", "manyheads:fp32", "marian:fp32"]),
}
NAMES = sorted({path.stem for path in FOLDER.glob("*.py")} - SHARED)
MARIAN = "transformers.models.marian.modeling_marian"
QUICK = {"layers"}  # takes three seconds of a processor; the others up to a minute
WEEKLY = [pytest.mark.slow, pytest.mark.weekly]


def figures(document: Any, path: str) -> list[Any]:
    """Return the values at a path of a document."""
    found = [document]
    for name in path.split("/"):
        if name == "*":
            found = [entry for value in found for entry in (value.values() if isinstance(value, dict) else value)]
        else:
            found = [value[name] for value in found]
    return found


def refuse_constant(constant: str) -> NoReturn:
    """Fail on a constant that `json.dumps` writes and JSON does not have, such as NaN."""
    raise AssertionError(f"{constant} is no JSON")


def run_script(name: str, options: list[str], out: Path) -> None:
    """Run a script in this process like `python benchmarks/NAME.py`, with its output written to files."""
    os.setsid()  # so that it can be ended together with the processes that it starts
    for number, stream in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(out / stream, os.O_WRONLY | os.O_CREAT), number)
    path = FOLDER / f"{name}.py"
    sys.path[:0] = [str(FOLDER), str(ROOT)]
    sys.argv = [str(path), *options]
    runpy.run_path(str(path), run_name="__main__")


def document_of(name: str, folder: Path) -> dict[str, Any]:
    """Run a script with `--tiny --json`; return its document.

    The script is forked from a process that has imported the modules that most scripts need, to save seconds.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "manyheads.runs"] + [MARIAN] * (name not in QUICK))
    process = processes.Process(target=run_script, args=(name, ["--tiny", "--json", *SCRIPTS[name][1]], folder))
    process.start()
    process.join(TIMEOUT)
    if process.exitcode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    assert process.exitcode == 0, (folder / "stderr").read_text(encoding="utf-8")
    return json.loads((folder / "stdout").read_text(encoding="utf-8"), parse_constant=refuse_constant)


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=WEEKLY) for name in NAMES])
def test_a_script_runs_and_reports_its_figures_and_the_machine(name: str, tmp_path: Path) -> None:
    if name == "html_page":
        with open_browser():  # skips the test if there is no Chromium
            pass
    document = document_of(name, tmp_path)
    found = figures(document, SCRIPTS[name][0])
    assert found
    assert all(found), found  # neither 0 nor empty
    for key in ("unit", "device", "instructions", "date"):
        assert isinstance(document[key], str), key
        assert document[key], key
    assert document["device"] != "x86_64"  # the model name of the processor
    assert document["threads"] >= 1
    assert {"python", "manyheads", "torch"} <= set(document["versions"])
    assert "left out" not in document or document["left out"] == []


def test_every_script_has_a_row_and_every_row_a_script() -> None:
    assert set(SCRIPTS) == set(NAMES)


@pytest.mark.slow
@pytest.mark.weekly
def test_isa_limits_torch_and_the_other_libraries(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import harness\nharness.main(lambda arguments: {}, 'A script.', {}, unit='s')\n")
    command = [sys.executable, str(script), "--json", "--isa", "avx2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), str(ROOT / "src")])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:  # a processor without AVX2 is refused by name
        assert "--isa avx2" in done.stderr
        return
    document = json.loads(done.stdout)
    assert document["instructions"] == "AVX2"
    assert set(document["limited by"]) == {
        "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "CT2_FORCE_CPU_ISA",
    }  # fmt: skip


def test_the_gpu_check_fails_in_one_line_without_its_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--tiny", "--device", "cuda:99"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / "gpu_check.py"), run_name="__main__")
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert re.fullmatch(r"error: torch finds no device cuda:99 here; .*\n", printed.err)


def test_the_documentation_names_every_script_and_no_missing_script() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*.toml")]
    named = {name for page in pages for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text("utf-8"))}
    table = set(re.findall(r"benchmarks/(\w+)\.py", (ROOT / "docs" / "benchmarks.md").read_text("utf-8")))
    assert named <= set(NAMES)
    assert table == set(NAMES)
