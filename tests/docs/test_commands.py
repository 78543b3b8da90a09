"""Every command of the README and of the documentation runs as written, and prints the output shown below it."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import click
import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("huggingface_hub")

from tests.docs.book import (
    DOCS,
    PAGES,
    ROOT,
    RUNS_MINE,
    configurations,
    english_of,
    name_of,
    page_commands,
    python_blocks,
    unattached_blocks,
    untested_examples,
    without_comment,
)
from tests.docs.commands import (
    CANNOT_BE_RUN,
    CLUSTERS,
    RUNNERS,
    close_clusters,
    parse_command,
    split,
)
from tests.docs.console import Command, commands, fences
from tests.docs.page_files import PageFiles
from tests.docs.page_runner import PageRunner
from tests.interop.local_hub import use_local_hub
from tools.pages import Block, blocks, new_names

from bitext import download
from bitext.discover import find_text
from manyheads.config.load import load_config
from manyheads.config.schema import ModelConfig
from manyheads.data import builtin
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.runs.estimate import MachineSpeed
from manyheads.runs.suggest import suggest
from transformer_doctor.plugin import Doctor

# The files that replace the names in the examples of `--help`.
HELP = {
    "runs/mine": "runs/multi30k-de-en",
    "runs/de-en": "runs/multi30k-de-en",
    "runs/en-de": "runs/multi30k-en-de",
    "runs/multi30k-en-de-tiny": "runs/multi30k-en-de",
    "runs/shakespeare-char": "runs/writer",
    "new.en": "my-text/test.en",
    "new.de": "my-text/test.de",
    "text.en": "my-text/test.en",
    "keys.json": "keys.json",
}
RUNS_MINE_IN_HELP = {"classify": "runs/fine-tuned", "generate": "runs/writer"}
# The file model.py that pages examine as the model of a user.
USER_MODEL = """
from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_decoder import EncoderDecoder

def build_model():
    config = ModelConfig(d_model=16, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    return EncoderDecoder(config, 1000, 1000, pad=0)
"""
INLINE = re.compile(r"`manyheads ([^`\n]+)`")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Do nothing."""


@pytest.fixture(scope="module")
def page_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageFiles]:
    """Return the files of the pages.

    Its folders replace the hub and the addresses of public text; built-in text is shortened. The speed of this
    machine is not measured: tests/runs/test_estimate.py does it. A tuning has few updates and lines of a proof:
    tests/improve judges it.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            patch.delenv(name, raising=False)
        shorter = {name: builtin._load_texts(name) for name in builtin.BUILTIN}
        shorter = {name: texts | {"train": texts["train"][:600]} for name, texts in shorter.items()}
        patch.setattr(builtin, "_load_texts", shorter.__getitem__)
        speed = MachineSpeed(pass_seconds=2e-4, update_seconds=0.02, parameters=8_000_000, free=1.0)
        for module in ("runs.suggest", "improve.build.estimate"):
            patch.setattr(f"manyheads.{module}.measure_speed", lambda config, lengths: speed)
        patch.setattr("manyheads.improve.tune._LEAST_STEPS", 4)
        patch.setattr("manyheads.improve.tune_text._MOST_PROOF", 20)
        patch.setattr("manyheads.improve.proof._CHALLENGE_LINES", 5)
        files = PageFiles(tmp_path_factory.mktemp("page-files"))
        handler = partial(QuietHandler, directory=str(files.complete))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            corpus = files.multi30k(f"http://127.0.0.1:{server.server_port}")
            patch.setattr(download, "CORPORA", {**download.CORPORA, "multi30k": corpus})
            use_local_hub(files.hub, files.root / "cache", patch)
            yield files
            server.shutdown()
            thread.join()


class LocalCluster:
    """A replacement of a cluster of dask-jobqueue or dask-kubernetes: that of the `dask` commands of the page."""

    def __init__(self, **options: Any) -> None:
        self.scheduler_address = CLUSTERS[-1].address

    def scale(self, jobs: int) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cluster to `close_clusters`."""


def names_for(page: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names that the Python of a page expects of its reader."""
    if page.name == "translating.md":
        for name, cluster in (("dask_jobqueue", "SLURMCluster"), ("dask_kubernetes.operator", "KubeCluster")):
            module = ModuleType(name)
            setattr(module, cluster, LocalCluster)
            patch.setitem(sys.modules, name, module)
        patch.setitem(sys.modules, "dask_kubernetes", ModuleType("dask_kubernetes"))
    if page.name != "doctor.md":
        return {}
    config = ModelConfig(d_model=16, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    make = partial(EncoderDecoder, config, 1000, 1000, pad=0)
    theirs = make()
    theirs.generator = torch.nn.Identity()
    return {"model": make(), "MyModel": make, "theirs": theirs}


@pytest.mark.slow
@pytest.mark.usefixtures("short_examinations")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page_commands(page) or python_blocks(page)], ids=name_of
)
def test_the_commands_and_the_code_of_a_page_print_the_shown_output(
    page: Path, page_files: PageFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_of(page)
    folder = page_files.copy_named(name.replace("/", "-"), page.read_text(encoding="utf-8"), RUNS_MINE.get(name))
    monkeypatch.chdir(folder)
    Path("model.py").write_text(USER_MODEL, encoding="utf-8")
    for file, content in configurations(page).items():
        Path(file).write_text(content, encoding="utf-8")
        load_config(Path(file))
    runner = PageRunner(page)
    names = new_names() | names_for(page, monkeypatch)
    try:
        runner.run_page([*page_commands(page), *python_blocks(page)], names)
    finally:
        close_clusters()
    if "test_my_model" in names:
        names["test_my_model"](Doctor())
    assert not runner.failures, "\n\n".join(runner.failures)
    if runner.not_installed:
        pytest.skip(", ".join(runner.not_installed))


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "```\nmanyheads recipes --jsom\n```\n",
        "```\nmanyheads translate runs/multi30k-de-en nowhere.de\n```\n",
        "```\nmanyheads show-config\n```\n```\n[sampling]\n```\n",
        '```\nmanyheads recipes --json\n```\n```\n{"recipes": []}\n```\n',
        "```\nmake everything\n```\n",
        '```\npip install "manyheads[gpu]"\n```\n',
        "```\ntorchrun --processes 2 -m manyheads train demo-de-en\n```\n",
        "```python\nfrom manyheads import Transformer\n```\n",
        "```python\nprint(2)\n```\n```text\n3\n```\n",
    ],
)
def test_a_page_with_a_wrong_statement_is_reported(content, page_files, tmp_path, monkeypatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(content, encoding="utf-8")
    monkeypatch.chdir(page_files.complete)
    runner = PageRunner(page)
    steps: list[Command | Block] = [*commands(fences(page)), *blocks(content)]
    try:
        runner.run_page(steps, new_names())
    except (AssertionError, SystemExit):
        return
    assert len(runner.failures) == 1


def test_every_command_has_a_runner_or_a_reason_why_it_cannot_run() -> None:
    every = {command.text for page in PAGES for command in commands(fences(page))}
    special = ("curl ", "eval ")  # sent to the server above them; evaluated by a shell
    left = [text for text in every if not text.startswith((*CANNOT_BE_RUN, *special))]
    assert not {split(text)[0][0] for text in left} - set(RUNNERS)
    assert len(left) > 100


def test_every_command_in_running_text_has_a_verb_and_options_that_exist() -> None:
    found = [match[1] for page in PAGES for match in INLINE.finditer(page.read_text(encoding="utf-8"))]
    assert len(found) > 50
    for text in found:
        try:
            parse_command(split(f"manyheads {text}")[0][1:])
        except (
            click.MissingParameter,
            click.exceptions.Exit,
        ):  # the name of a verb without its arguments, or --help
            continue


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


@pytest.mark.slow
def test_examples_of_the_help_with_options_that_no_page_has_run(
    page_files: PageFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = list(untested_examples())
    folder = page_files.copy_named("help", " ".join(text for _, text in new))
    monkeypatch.chdir(folder)
    runner = PageRunner(Path("help"))
    for verb, text in new:
        for name, original in HELP.items():
            if name in text:
                remove(folder / name)
                page_files.copy(folder, name, RUNS_MINE_IN_HELP.get(verb, original))
                runner.prepared.add(Path(name))
        runner.run_command(Command(0, text), [])
    assert not runner.failures, "\n\n".join(runner.failures)


def test_both_languages_hold_the_same_commands_with_the_same_output() -> None:
    for page in PAGES:
        mine, theirs = (
            [(without_comment(command.text), command.shown) for command in commands(fences(document))]
            for document in (page, english_of(page) or page)
        )
        assert mine == theirs, page


@pytest.mark.slow
def test_the_configuration_that_is_chosen_for_a_text_has_the_settings_that_the_page_explains(
    page_files: PageFiles,
) -> None:
    page = DOCS / "howto" / "own-language-pair.md"
    shown = next(tomllib.loads(block.text) for block in fences(page) if block.language == "toml")
    root = page_files.complete / "data" / "ko-en"
    chosen = tomllib.loads(suggest(find_text(root), root, root).toml)
    assert {section: list(settings) for section, settings in shown.items()} == {
        section: [name for name in chosen[section] if name in shown[section]] for section in shown
    }


def test_the_packages_are_those_in_the_readme_and_in_the_table_of_contributing() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "manyheads").glob("*/__init__.py")}
    for readme in (ROOT / "README.md", ROOT / "README.ko.md"):
        drawn = next(block.text for block in unattached_blocks(readme) if block.text.startswith("src/manyheads/"))
        assert set(re.findall(r"^  (\S+)/", drawn, re.MULTILINE)) == packages
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Where things are")[1].split("###")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {name.split("/")[0] for row in rows for name in re.findall(r"`([\w/]+)`", row)} == packages
