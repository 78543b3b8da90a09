"""Run directories of strangers: no command shows another file of this machine, waits for ever or reads too much."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Printed
from tests.interop.local_hub import use_local_hub
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.parts import make_config, write_corpus

from manyheads.checkpoint import RunDirectory
from manyheads.cli.main import run as run_command
from manyheads.errors import RunError
from manyheads.runs.export import push
from manyheads.runs.train import train

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes in folders are those of POSIX")

SECRET = "hunter2-is-the-secret"
LICENSED = "---\nlicense: mit\n---\n"
SECONDS = 120  # for one command, on a busy machine; one that waits for a pipe never ends


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(make_config(write_corpus(folder / "corpus")), folder / "run")
    shutil.rmtree(folder / "run" / "cache")
    (folder / "run" / "README.md").write_text(LICENSED, encoding="utf-8")
    return folder / "run"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "id_rsa"
    path.write_text(f"{SECRET} {SECRET}\n" * 3, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def end() -> Iterator[None]:
    """End a command that waits for ever with the test."""
    signal.alarm(SECONDS * 20)
    yield
    signal.alarm(0)


def make_sparse(path: Path, _: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2 << 30)


def make_folder(path: Path, secret: Path) -> None:
    path.mkdir()
    shutil.copy(secret, path)


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda path, secret: path.symlink_to(secret),
    "pipe": lambda path, _: os.mkfifo(path),
    "folder": make_folder,
    "sparse": make_sparse,
}
FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.source.model",
    "tokenizer.target.model",
    "environment.json",
    "languages.json",
    "source_model.json",
    "confidence.json",
    "metrics.jsonl",
    "README.md",
]
CHECKPOINT = [
    f"checkpoints/step-12/{name}" for name in ("state.json", "model.safetensors", "optimizer.safetensors")
]
QUICK = ["translate RUN TEXT", "inspect RUN -o OUT/page.html", "curves RUN -o OUT/curves.svg"]
SLOW = [
    "inspect RUN Hund -o OUT/page.html",
    "score RUN TEXT TEXT -o OUT/scores",
    "evaluate RUN -o OUT/outputs",
    "export RUN --to html -o OUT/page",
    "export RUN --to argos -o OUT/package",
    "doctor RUN -o OUT/report.html",
    "train average RUN",
]


def replaced(trained: Path, folder: Path, name: str, kind: str, secret: Path) -> Path:
    """Return a copy of a run in which a file is replaced."""
    run = Path(shutil.copytree(trained, folder / f"{kind}-{name.replace('/', '-')}"))
    (run / name).unlink(missing_ok=True)
    KINDS[kind](run / name, secret)
    return run


def check(command: str, run: Path, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run a command on a run, and check that it ends, with a message for users, and shows no secret."""
    out, text = run.parent / "out", run.parent / "text"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    text.write_text("ein Hund\n", encoding="utf-8")
    names = {"RUN": str(run), "TEXT": str(text)}
    words = [names.get(word, word.replace("OUT", str(out))) for word in command.split()]
    code = run_command([*words, "-q"])
    printed = Printed(*capsys.readouterr())
    where = f"{command} with {run.name}: {printed.err}"
    assert code in (0, 1, 2, 3), where
    assert "fault of manyheads" not in printed.err, where
    outputs = (path for folder in (out, Path(f"{run}-averaged")) for path in folder.rglob("*") if path.is_file())
    shown = [path.read_bytes() for path in outputs] + [printed.out.encode(), printed.err.encode()]
    assert not any(SECRET.encode() in content for content in shown), where
    return printed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*FILES, *(pytest.param(name, marks=pytest.mark.slow) for name in CHECKPOINT)])
@pytest.mark.parametrize("commands", [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)], ids=["quick", "slow"])
def test_no_command_shows_or_waits_for_what_stands_in_the_place_of_a_file(
    commands: list[str],
    name: str,
    kind: str,
    trained: Path,
    tmp_path: Path,
    secret: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = replaced(trained, tmp_path, name, kind, secret)
    for command in commands:
        check(command, run, capsys)


@pytest.mark.parametrize("name", ["README.md", "metrics.jsonl"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [("link", "is a link out of its folder"), ("sparse", "is no file of ours: it has 2,147,483,648 bytes")],
)
def test_a_page_is_not_made_of_a_link_or_of_a_file_without_end(
    name: str,
    kind: str,
    message: str,
    trained: Path,
    tmp_path: Path,
    secret: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = replaced(trained, tmp_path, name, kind, secret)
    printed = check("inspect RUN -o OUT/page.html", run, capsys)
    assert f"{run / name} {message}" in printed.err
    assert not (tmp_path / "out" / "page.html").exists()


@pytest.mark.parametrize("name", ["README.md", "metrics.jsonl", "languages.json", "environment.json"])
def test_no_link_is_uploaded(
    name: str, trained: Path, tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_local_hub(tmp_path / "hub", tmp_path / "cache", monkeypatch)
    secret.write_text(f"{LICENSED}{SECRET}\n", encoding="utf-8")
    run = replaced(trained, tmp_path, name, "link", secret)
    with pytest.raises(RunError, match="is a link out of its folder"):
        push(run, "a/b")
    assert not any(SECRET.encode() in path.read_bytes() for path in (tmp_path / "hub").rglob("*") if path.is_file())


def test_a_page_shows_examples_of_the_run_and_not_of_the_files_that_its_configuration_names(
    tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_labelled(tmp_path / "corpus")
    train(labelled_config(corpus), tmp_path / "run")
    recorded = RunDirectory(tmp_path / "run").recorded()["examples"]
    assert 0 < len(recorded) <= 4
    text = (corpus / "valid.tsv").read_text(encoding="utf-8")
    assert all(example in text for example in recorded)
    (corpus / "valid.tsv").write_text(f"0\t{SECRET}\n" * 4, encoding="utf-8")
    secret.unlink()
    run = tmp_path / "run"
    assert run_command(["export", str(run), "--to", "html", "-o", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "run.html").read_text(encoding="utf-8")
    assert SECRET not in page
    assert recorded[0] in page
    assert f"reading {corpus / 'valid.tsv'}" in capsys.readouterr().err, "what is read is said"


def test_a_file_of_the_kernel_that_a_configuration_names_is_an_empty_text(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/proc/kmsg").is_file():
        pytest.skip("this system has no /proc")
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    config = (run / "config.json").read_text(encoding="utf-8")
    names = '["/proc/kmsg", "/proc/kmsg"]'
    (run / "config.json").write_text(config.replace('"test": "test"', f'"test": {names}'), encoding="utf-8")
    assert names in (run / "config.json").read_text(encoding="utf-8")
    assert "/proc/kmsg: no lines" in check("evaluate RUN", run, capsys).err
