"""Every command of the README and of the book runs as it is typed there, and prints what is shown below it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("huggingface_hub")

from tests.clusters import Cluster
from tests.docs.book import (
    APART,
    DOCS,
    DRAWN,
    FILES,
    MINE,
    PAGES,
    ROOT,
    bare,
    configurations,
    english_of,
    examples,
    loose,
    name_of,
    python,
    typed,
    unseen_examples,
)
from tests.docs.commands import CANNOT_BE_RUN, INSTEAD, RUNNERS, close_clusters, parsed, split
from tests.docs.console import BEGINS, Command, commands, fences, joined
from tests.docs.desk import Desk
from tests.docs.pages import Block, blocks, new_names
from tests.docs.workbench import Workbench
from tests.interop.local_hub import use_local_hub

from manyheads.config.load import load_config
from manyheads.config.schema import ModelConfig
from manyheads.data import builtin, download
from manyheads.data.discover import find_text
from manyheads.doctor.plugin import Doctor
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.runs.suggest import suggest

# What the names in the examples of `--help` are.
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
MINE_IN_HELP = {"classify": "runs/fine-tuned", "generate": "runs/writer"}
# Pages whose commands and code take seconds of a processor.
LONG_PAGES = {
    "classifying.md", "doctor.md", "exporting.md", "gallery.md", "generating.md", "howto/compare-two-systems.md",
    "howto/fine-tune-opus-mt.md", "howto/on-a-cluster.md", "howto/own-language-pair.md",
    "howto/prepare-a-corpus.md", "howto/python-api.md", "howto/two-million-pairs.md", "howto/what-users-type.md",
    "inspecting.md", "start/engineer.md", "tutorial/teaching.md",
}  # fmt: skip
# The file model.py that pages examine as a stranger's.
STRANGER = """
from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_decoder import EncoderDecoder

def build_model():
    config = ModelConfig(d_model=16, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    return EncoderDecoder(config, 1000, 1000, pad=0)
"""
INLINE = re.compile(r"`manyheads ([^`\n]+)`")
LANGUAGES = {"bash", "console", "html", "ini", "js", "json", "nginx", "python", "text", "toml", "yaml"}  # of blocks


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """What the pages name. The hub and the addresses of public text are folders of it; built-in text is less."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            patch.delenv(name, raising=False)
        shorter = {name: builtin.load_texts(name) for name in builtin.BUILTIN}
        shorter = {name: texts | {"train": texts["train"][:2_000]} for name, texts in shorter.items()}
        patch.setattr(builtin, "load_texts", shorter.__getitem__)
        bench = Workbench(tmp_path_factory.mktemp("workbench"))
        handler = partial(Quiet, directory=str(bench.whole))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            corpus = bench.multi30k(f"http://127.0.0.1:{server.server_port}")
            patch.setattr(download, "CORPORA", {**download.CORPORA, "multi30k": corpus})
            use_local_hub(bench.shelf, bench.root / "cache", patch)
            yield bench
            server.shutdown()
            thread.join()


class StandInCluster(Cluster):
    """Stands for a cluster of dask-jobqueue or dask-kubernetes: two workers of this machine."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Path(tempfile.mkdtemp()), 2)

    @property
    def scheduler_address(self) -> str:
        return self.address

    def scale(self, jobs: int) -> None:
        """Nothing."""


def names_for(page: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the Python of a page takes from its reader."""
    if page.name == "on-a-cluster.md":
        for name, cluster in (("dask_jobqueue", "SLURMCluster"), ("dask_kubernetes.operator", "KubeCluster")):
            module = ModuleType(name)
            setattr(module, cluster, StandInCluster)
            patch.setitem(sys.modules, name, module)
        patch.setitem(sys.modules, "dask_kubernetes", ModuleType("dask_kubernetes"))
    if page.name != "doctor.md":
        return {}
    config = ModelConfig(d_model=16, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    make = partial(EncoderDecoder, config, 1000, 1000, pad=0)
    theirs = make()
    theirs.generator = torch.nn.Identity()
    return {"model": make(), "MyModel": make, "theirs": theirs}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] if name_of(page) in LONG_PAGES else [])
        for page in PAGES
        if typed(page) or python(page)
    ],
)
def test_what_stands_on_a_page_runs_and_prints_what_is_shown(
    page: Path, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_of(page)
    folder = workbench.bench(name.replace("/", "-"), page.read_text(encoding="utf-8"), MINE.get(name))
    monkeypatch.chdir(folder)
    Path("model.py").write_text(STRANGER, encoding="utf-8")
    for file, content in configurations(page).items():
        Path(file).write_text(content, encoding="utf-8")
        load_config(Path(file))
    desk = Desk(page)
    names = new_names() | names_for(page, monkeypatch)
    try:
        desk.work([*typed(page), *python(page)], names)
    finally:
        close_clusters()
    if "test_my_model" in names:
        names["test_my_model"](Doctor())
    assert not desk.wrong, "\n\n".join(desk.wrong)
    if desk.lacking:
        pytest.skip(", ".join(desk.lacking))


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
def test_a_page_that_says_what_is_not_so_is_found(content, workbench, tmp_path, monkeypatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(content, encoding="utf-8")
    monkeypatch.chdir(workbench.whole)
    desk = Desk(page)
    steps: list[Command | Block] = [*commands(fences(page)), *blocks(content)]
    try:
        desk.work(steps, new_names())
    except (AssertionError, SystemExit):
        return
    assert len(desk.wrong) == 1


def test_every_block_of_a_page_is_code_or_typed_or_printed() -> None:
    languages = {block.language for page in PAGES for block in fences(page) if "ko" not in page.parts}
    assert languages <= {*LANGUAGES, "{include} ../CHANGELOG.md", "{toctree}"}
    known = (*APART, *DRAWN)
    assert not [
        f"{name_of(page)}:{block.line}"
        for page in PAGES
        for block in loose(page)
        if not block.text.startswith(known)
    ]


def test_a_block_of_commands_holds_nothing_else() -> None:
    others = [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for block in fences(page)
        if block.language == "bash"
        for _, line in joined(block.text, block.line)
        if line.strip() and not line.startswith("#") and not BEGINS.match(line)
    ]
    assert not others


def test_every_command_is_one_that_is_run_or_said_why_not() -> None:
    every = {one.text for page in PAGES for one in commands(fences(page))}
    special = ("curl ", "eval ")  # asked of the server above them; read by a shell
    left = [text for text in every if not text.startswith((*CANNOT_BE_RUN, *special))]
    assert not {split(text)[0][0] for text in left} - set(RUNNERS)
    assert len(left) > 100


def test_no_list_of_exceptions_holds_what_no_page_says() -> None:
    texts = [bare(one.text) for page in PAGES for one in commands(fences(page))]
    for beginning in CANNOT_BE_RUN:
        assert any(text.startswith(beginning) for text in texts), beginning
    helped = [text for _, text in examples()]
    for word in INSTEAD:
        assert any(word in text.split() for text in (*texts, *helped)), word
    shown = [block.text for page in PAGES for block in loose(page)]
    for beginning in (*APART, *DRAWN):
        assert any(text.startswith(beginning) for text in shown), beginning
    for name in (*MINE, *FILES):
        assert (DOCS / name).is_file()
    assert all("runs/mine" in (DOCS / name).read_text(encoding="utf-8") for name in MINE)


def test_every_command_in_running_text_has_a_verb_and_options_that_exist() -> None:
    found = [match[1] for page in PAGES for match in INLINE.finditer(page.read_text(encoding="utf-8"))]
    assert len(found) > 50
    for text in found:
        try:
            parsed(split(f"manyheads {text}")[0][1:])
        except (
            click.MissingParameter,
            click.exceptions.Exit,
        ):  # the name of a verb without its arguments, or --help
            continue


def test_every_example_of_the_help_has_options_that_exist() -> None:
    found = [text for _, text in examples() if not text.startswith("curl")]
    assert len(found) > 50
    for text in found:
        parsed(split(text)[0][1:])


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


@pytest.mark.slow
def test_examples_of_the_help_in_a_form_that_no_page_has_run(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = list(unseen_examples())
    folder = workbench.bench("help", " ".join(text for _, text in new))
    monkeypatch.chdir(folder)
    desk = Desk(Path("help"))
    for verb, text in new:
        for name, original in HELP.items():
            if name in text:
                remove(folder / name)
                workbench.place(folder, name, MINE_IN_HELP.get(verb, original))
                desk.placed.add(Path(name))
        desk.type(Command(0, text), [])
    assert not desk.wrong, "\n\n".join(desk.wrong)


def test_the_lines_of_a_shell_are_lines_of_a_shell() -> None:
    script = "\n".join(one.text for page in PAGES for one in commands(fences(page)))
    assert not subprocess.run(["bash", "-n", "-c", script], capture_output=True, check=False).stderr


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in PAGES if english_of(page)])
def test_both_languages_hold_the_same_commands_with_the_same_output(page: Path) -> None:
    english = english_of(page)
    assert english is not None
    mine, theirs = ([(bare(one.text), one.shown) for one in commands(fences(one))] for one in (page, english))
    assert mine == theirs


def test_the_configuration_that_is_chosen_for_a_text_has_the_settings_that_the_page_explains(
    workbench: Workbench,
) -> None:
    page = DOCS / "howto" / "own-language-pair.md"
    shown = next(tomllib.loads(block.text) for block in fences(page) if block.language == "toml")
    root = workbench.whole / "data" / "ko-en"
    chosen = tomllib.loads(suggest(find_text(root), root, root).toml)
    assert {section: list(settings) for section, settings in shown.items()} == {
        section: [name for name in chosen[section] if name in shown[section]] for section in shown
    }


def test_the_folders_that_the_readme_draws_are_those_that_there_are() -> None:
    for readme in (ROOT / "README.md", ROOT / "README.ko.md"):
        drawn = next(block.text for block in loose(readme) if block.text.startswith("src/manyheads/"))
        names = set(re.findall(r"^  (\S+)", drawn, re.MULTILINE))
        there = {f"{path.parent.name}/" for path in (ROOT / "src" / "manyheads").glob("*/__init__.py")}
        assert names == there | {"errors.py"}
