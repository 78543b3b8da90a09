"""A plain `pip install manyheads`, without torch: it translates, classifies, generates, serves and exports to HTML.

The processes of these tests refuse to import any package of the extra train.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.inference.native.build import library
from tests.inference.native.test_classifier import save_classifier
from tests.inference.native.test_language_model import save_generator
from tests.inference.test_classifier import make_classifier
from tests.inference.translation.test_translator import make_translator, save_run

ROOT = Path(__file__).parent.parent
CONTRACT = "The light half imports no package of the extra train"
REFUSE = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformer_doctor", "sacrebleu", "defusedxml"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""
IMPORT_ALL = """
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
        importlib.import_module(found.name)
"""
PROGRAM = "from manyheads.__main__ import main\nmain()"
# Run command lines with the same stdin in one process, and print the exit code, stdout and stderr of each.
COMMANDS = """
import io, json
from manyheads.cli.main import run

answers, given = [], sys.stdin.read()
printed = sys.stdout
for words in json.loads(sys.argv[1]):
    sys.stdin, out, err = (io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8") for text in (given, "", ""))
    sys.stdout, sys.stderr = out, err
    answers.append([run(words)])
    for stream in (out, err):
        stream.flush()
        answers[-1].append(stream.buffer.getvalue().decode())
json.dump(answers, printed)
"""
SERVE = """
import socket, threading, time, urllib.request, json
from manyheads.serving.server import serve
from manyheads.serving.settings import ServeSettings
from pathlib import Path

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]

def ask(path, **fields):
    body = json.dumps(fields).encode() if fields else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

def client():
    while True:
        try:
            if ask("/health")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.05)
    loaded = {*sys.modules}
    name = Path(sys.argv[1]).name
    answers = [
        ask("/translate", q="abc", source="de", target="en", alternatives=2),
        ask("/translate", q="<b>abc</b> de", source="de", target="en", format="html"),
        ask("/classify", q="abc"),
        ask("/v1/completions", prompt="ab", max_tokens=3),
        ask("/api/translate", model=name, q="abc", changes={}),
        ask("/api/next", model=Path(sys.argv[3]).name, q="abc"),
        ask("/api/inspect", model=name, q="abc"),
    ]
    print(json.dumps([sorted(loaded & {"markdown_it"}), *answers]), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

import os, signal
threading.Thread(target=client, daemon=True).start()
serve([Path(run) for run in sys.argv[1:]], ServeSettings(port=port), lambda line: None)
"""


def run_light(
    program: str, *arguments: object, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python program that cannot import torch."""
    return subprocess.run(
        [sys.executable, "-c", REFUSE + program, *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def manyheads(*commands: Sequence[object], given: str = "", **environment: str) -> list[tuple[int, str, str]]:
    """Run commands in one process that cannot import torch; return the exit code, stdout and stderr of each."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = run_light(COMMANDS, words, given=given, **environment)
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a translator, a classifier and a language model."""
    folder = tmp_path_factory.mktemp("light")
    save_run(make_translator(), folder / "translator")
    save_classifier(make_classifier(), folder / "classifier")
    save_generator(folder / "generator", positions="rotary")
    return folder


def test_every_module_of_the_contract_is_imported_without_torch() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (modules,) = (contract["source_modules"] for contract in contracts if contract["name"] == CONTRACT)
    done = run_light(IMPORT_ALL, *modules)
    assert done.returncode == 0, done.stderr


def test_a_function_that_needs_torch_names_the_pip_line() -> None:
    done = run_light("import manyheads\nmanyheads.Translator, manyheads.inspect\nmanyheads.train")
    assert done.stderr.splitlines()[-1].startswith(
        "bitext.errors.MissingExtraError: manyheads.train needs the package torch, which is not installed."
    )


compiled = pytest.mark.skipif(library() is None, reason="no C compiler here")


@compiled
def test_a_run_translates(runs: Path) -> None:
    options: list[tuple[object, ...]] = [
        ("--beam", 1),
        ("--n-best", 2),
        ("--sample", "--seed", 3),
        ("--stream",),
        ("--precision", "int8"),
        ("--alternatives", 2, "--alignment", "--json"),
    ]
    found = manyheads(
        *(("-q", "translate", runs / "translator", *words) for words in options), given="abc\n\ndef\n"
    )
    assert [code for code, *_ in found] == [0] * len(options), found
    *texts, with_alternatives = (out for _, out, _ in found)
    assert [len(text.splitlines()) for text in texts] == [3, 4, 3, 3, 3]
    lines = json.loads(with_alternatives)
    assert len(lines) == 3
    assert len(lines[0]["hypotheses"][0]["alternatives"][0]) == 2
    assert lines[0]["alignment"]


@compiled
def test_given_translations_are_scored(runs: Path, tmp_path: Path) -> None:
    for name, text in (("a", "abc\ndef\n"), ("b", "cba\nfed\n")):
        (tmp_path / name).write_text(text)
    ((code, out, _),) = manyheads(("score", runs / "translator", tmp_path / "a", tmp_path / "b"))
    assert code == 0
    assert all(float(line) < 0 for line in out.splitlines())
    assert len(out.splitlines()) == 2


@compiled
def test_translating_a_line_imports_nothing_that_only_other_work_needs(runs: Path) -> None:
    manyheads(["-q", "translate", runs / "translator"], given="abc\n")  # compiles the decoder if it must
    listing = f"import atexit\natexit.register(lambda: print(*sys.modules))\n{PROGRAM}"
    done = run_light(listing, "-q", "translate", runs / "translator", given="abc\n")
    unneeded = {
        "asyncio",
        "multiprocessing",
        "rich",
        "portalocker",
        "starlette",
    }  # what other packages import varies
    assert unneeded & set(done.stdout.split()) == set()


@compiled
def test_runs_classify_and_generate(runs: Path) -> None:
    generate = ("generate", runs / "generator", "--prompt", "ab", "--max-tokens", 5, "--json")
    (_, classes, _), (_, text, _) = manyheads(("classify", runs / "classifier"), generate, given="abc\n")
    assert classes.count("\t") == 1
    assert json.loads(text)[0]["samples"][0]["tokens"]


@compiled
def test_a_run_is_exported_to_html(runs: Path, tmp_path: Path) -> None:
    tasks = ("translator", "classifier", "generator")
    manyheads(*(("export", runs / task, "--to", "html", "-o", tmp_path / f"{task}.html") for task in tasks))
    for task in tasks:
        assert "manyheads-tensors" in (tmp_path / f"{task}.html").read_text("utf-8")


@compiled
def test_runs_are_served_and_what_needs_torch_says_so(runs: Path) -> None:
    done = run_light(SERVE, *(runs / name for name in ("translator", "classifier", "generator")))
    assert done.returncode == 0, done.stderr
    loaded, *answers, (status, refusal) = json.loads(done.stdout)
    assert loaded == [], "a server starts without the code of inspections"
    assert [code for code, _ in answers] == [200] * len(answers)
    assert len(answers[0][1]["alternatives"]) == 2
    assert answers[1][1]["translatedText"].startswith("<b>")
    assert status == 501
    assert refusal["error"].startswith("Inspection needs the package torch, which is not installed.")
    assert 'pip install "manyheads[train]"' in refusal["error"]


def test_a_command_that_needs_torch_ends_with_the_pip_line(runs: Path, tmp_path: Path) -> None:
    run = runs / "translator"
    (tmp_path / "phrases").write_text("b\n")
    found = manyheads(
        ("train", "demo-de-en", "-o", tmp_path / "run"),
        ("evaluate", run),
        ("inspect", run, "abc"),
        ("doctor",),
        ("demo",),
        ("export", run, "--to", "ctranslate2", "-o", tmp_path / "out"),
        ("translate", run, "--ensemble", run),
        ("translate", run, "--device", "cuda"),
        ("translate", run, "--require-file", tmp_path / "phrases"),
        given="abc\n",
    )
    for code, out, error in found:
        assert (code, out, error.count("\n")) == (4, "", 1), error
        assert error.startswith("error: ")
        assert 'is not installed. Install it with: pip install "manyheads[train]"' in error


def test_without_the_c_decoder_the_reason_and_the_pip_line_are_given(runs: Path) -> None:
    commands = (("translate", "translator"), ("classify", "classifier"), ("generate", "generator"))
    for code, _, error in manyheads(
        *((command, runs / run) for command, run in commands), given="abc\n", MANYHEADS_NATIVE="0"
    ):
        assert code == 4
        assert error.startswith(
            "error: Computing without the C decoder (MANYHEADS_NATIVE=0) needs the package torch"
        )


@compiled
def test_damaged_weights_are_named_without_torch(runs: Path, tmp_path: Path) -> None:
    for name, changed in (("model.safetensors", b"damaged"), ("config.json", None)):
        run = tmp_path / name
        run.mkdir()
        for path in (runs / "translator").iterdir():
            (run / path.name).write_bytes(path.read_bytes())
        if changed is None:
            config = json.loads((run / name).read_text("utf-8"))
            (run / name).write_text(json.dumps(config | {"format": 99}), encoding="utf-8")
        else:
            (run / name).write_bytes(changed)
        ((code, _, error),) = manyheads(("translate", run), given="abc\n")
        assert (code, str(run) in error, error.count("\n")) == (3, True, 1)


def test_a_compiler_that_fails_is_an_error_with_the_pip_line(runs: Path, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    done = run_light(PROGRAM, "translate", runs / "translator", given="abc\n", CC="false", **cache)
    assert (done.returncode, done.stdout) == (4, "")
    assert "needs the package torch" in done.stderr.splitlines()[-1]
