"""Every file, module, option, verb and make target that the documents name exists."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from manyheads.cli.main import program
from manyheads.cli.verbs import VerbWithSubverbs
from transformer_doctor.scan import scan

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "manyheads"
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "README.ko.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "reference" not in page.parts),
    *sorted((ROOT / "design").glob("*.md")),
    *sorted((ROOT / "recipes").glob("*.toml")),
    *sorted((ROOT / "notebooks").rglob("*.ipynb")),
]
# Where a path may begin: at the root of the repository, in the package, or in docs/.
STARTS = (ROOT, PACKAGE, ROOT / "docs", ROOT / "packages" / "bitext" / "src")
# Folders of the repository. A path that begins with one of them, or with a package, must exist.
FOLDERS = {
    "benchmarks",
    "design",
    "docs",
    "notebooks",
    "recipes",
    "src",
    "tests",
    "tools",
    ".github",
    ".ci",
    ".devcontainer",
}
# Packages that share their name with folders of a user: only paths of source files are checked.
USERS = {"build", "checkpoint", "data", "runs"}
SOURCE = (".py", ".c", ".h", ".js")

PLACEHOLDERS = {
    "src/manyheads/a/b.py": "any module",
    "tests/a/test_b.py": "the tests of any module",
    "docs/ko/PAGE.md": "any Korean page",
}
OTHERS_FILES = {"scripts/average_checkpoints.py": "a script of fairseq", "./manyheads.js": "of an exported module"}
FILES_NOT_MODULES = {
    "manyheads.schema.json", "manyheads.fish", "manyheads.service", "manyheads.js", "manyheads.d.ts",
    "manyheads.translate",  # of window, in an exported page
}  # fmt: skip
REMOVED_OPTIONS = {"--compile": "design names it as removed", "--geometric": "the changelog names it as removed"}
OTHERS_OPTIONS = {
    "fairseq": {
        "--activation-dropout", "--arch", "--attention-dropout", "--clip-norm", "--dropout", "--encoder-embed-dim",
        "--encoder-ffn-embed-dim", "--encoder-normalize-before", "--fp16", "--label-smoothing", "--lenpen",
        "--lr-scheduler", "--max-epoch", "--max-update", "--patience", "--remove-bpe", "--share-all-embeddings",
        "--share-decoder-input-output-embed", "--update-freq", "--warmup-init-lr", "--warmup-updates",
    },
    "Locomotive": {
        "--bleu", "--byte_fallback_off", "--inflight", "--pivot", "--reverse",
        "--toy",
    },
    "Marian": {
        "--beam-size", "--dec-depth", "--enc-depth", "--exponential-smoothing", "--guided-alignment",
        "--learn-rate", "--lr-decay-inv-sqrt", "--lr-warmup", "--mini-batch-fit", "--normalize",
        "--optimizer-params", "--tied-embeddings-all", "--transformer-heads",
    },
    "pip": {"--group"},
    "uv": {"--torch-backend"},
    "pytest": {"--cov"},
    "torchrun": {"--nnodes", "--nproc-per-node", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id"},
    "Slurm": {"--gpus-per-node", "--nodes", "--ntasks-per-node", "--signal"},
    "Dask": {"--nthreads", "--nworkers"},
    "Docker": {"--build-arg", "--rm", "--user"},
    "curl": {"--data-urlencode"},
    "argos-translate": {"--from-lang", "--to-lang"},
    "libretranslate": {"--load-only"},
    "sacreBLEU": {"--paired-bs"},
    "systemctl": {"--now"},
    "Weblate": {"--configuration", "--service"},
}  # fmt: skip

WORD = re.compile(r"(?<![\w/.-])((?:[\w.*-]+/)+[\w.*-]*)")
MODULE = re.compile(r"\bmanyheads(?:\.[a-zA-Z_]\w*)+")
IMPORT = re.compile(r"^\s*from (manyheads[\w.]*) import ([\w, ]+)$", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
VERB = re.compile(r"(?:^|`|\s|/)manyheads ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
TARGET = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.MULTILINE)
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@cache
def text_of(document: Path) -> str:
    """Return the text of a document, or of the cells of a notebook."""
    text = document.read_text(encoding="utf-8")
    if document.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells)
    return text


def code_of(document: Path) -> Iterator[str]:
    """Yield the code of a document: blocks, words in backticks, and the comments of a recipe."""
    text = text_of(document)
    if document.suffix == ".toml":
        yield from re.findall(r"#.*", text)
        return
    yield from (block for _, block in FENCE.findall(text))
    yield from CODE.findall(FENCE.sub("", text))


# --- files ---


def named_paths(text: str) -> Iterator[str]:
    """Yield the paths in a text that must exist."""
    for path in WORD.findall(text):
        path = path.rstrip(".")
        first = path.split("/")[0]
        packages = {folder.parent.name for folder in PACKAGE.glob("*/__init__.py")}
        source = path.endswith(SOURCE)
        ours = first in FOLDERS or (first in packages and (source or first not in USERS)) or source
        if ours and path not in PLACEHOLDERS and path not in OTHERS_FILES:
            yield path


def exists(path: str) -> bool:
    return any(next(start.glob(path.rstrip("/")), None) is not None for start in STARTS)


def test_every_path_in_code_exists() -> None:
    for document in DOCUMENTS:
        named = {path for code in code_of(document) for path in named_paths(code)}
        assert not [path for path in sorted(named) if not exists(path)], document


def test_every_document_that_the_source_names_exists() -> None:
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml", ".json", ".js", ".c", ".h")]
    named = {
        (path.name, page)
        for path in sources
        for page in re.findall(r"\bdocs/[\w./-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert named
    assert not [(file, page) for file, page in named if not (ROOT / page).is_file()]


# --- modules ---


@cache
def names_in(module: Path) -> set[str]:
    """Return the names that a module defines, including imports and lazy names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def resolves(dotted: str) -> bool:
    """Return whether a dotted name is a module of the package or a name in one; attributes are not checked."""
    path = PACKAGE
    parts = dotted.split(".")[1:]
    for index, part in enumerate(parts):
        if (path / part / "__init__.py").is_file():
            path = path / part
        elif (path / f"{part}.py").is_file():
            module = path / f"{part}.py"
            return index + 1 == len(parts) or parts[index + 1] in names_in(module)
        else:
            return part in names_in(path / "__init__.py")
    return True


def test_every_module_and_name_of_the_package_exists() -> None:
    for document in DOCUMENTS:
        text = text_of(document)
        named = {dotted for code in (*code_of(document), text) for dotted in MODULE.findall(code)}
        for module, names in IMPORT.findall(text):
            named |= {f"{module}.{name.strip().split(' ')[0]}" for name in names.split(",")}
        assert not [dotted for dotted in sorted(named - FILES_NOT_MODULES) if not resolves(dotted)], document


# --- options, verbs and targets ---


@cache
def known_options() -> frozenset[str]:
    """Return the options of every verb, and of the scripts in benchmarks, tests and tools."""
    found: set[str] = {"--help", "--version", "--debug", "--lang"}
    waiting: list[click.Command] = [program, scan]
    while waiting:
        command = waiting.pop()
        context = click.Context(command)
        for parameter in command.get_params(context):
            found |= {*parameter.opts, *parameter.secondary_opts}
        if isinstance(command, click.Group):
            waiting += [command.get_command(context, name) for name in command.list_commands(context)]  # type: ignore[misc]
    for folder in ("benchmarks", "tests", "tools"):
        for script in (ROOT / folder).rglob("*.py"):
            text = script.read_text(encoding="utf-8")
            found |= {*re.findall(r'add_argument\(\s*"(--[\w-]+)"', text)}
            found |= {*re.findall(r'"(--[\w-]+)": (?:\w*option|settings|out|ROOT)\b', text)}
    return frozenset(found)


def test_every_option_exists() -> None:
    others = set().union(*OTHERS_OPTIONS.values()) | set(REMOVED_OPTIONS)
    for document in DOCUMENTS:
        named = {option for code in code_of(document) for option in OPTION.findall(code)}
        assert not sorted(named - known_options() - others), document


def test_every_verb_exists() -> None:
    context = click.Context(program)
    for document in DOCUMENTS:
        for verb, inner in sorted({found for code in code_of(document) for found in VERB.findall(code)}):
            command = program.get_command(context, verb)
            assert command is not None, f"{document}: manyheads {verb}"
            if isinstance(command, click.Group) and not isinstance(command, VerbWithSubverbs) and inner:
                assert inner in command.list_commands(context), f"{document}: manyheads {verb} {inner}"


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        named = {target for code in code_of(document) for target in TARGET.findall(code)}
        assert not sorted(named - targets), document
