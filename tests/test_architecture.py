"""Packages import only from lower rows, only some open files, and the doctor imports torch alone.

The contracts of imports are in pyproject.toml (`[tool.importlinter]`); here is what import-linter cannot express.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from manyheads.config.schema import TASKS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "manyheads"
BITEXT = ROOT / "packages" / "bitext" / "src"
DOCTOR = ROOT / "packages" / "transformer-doctor" / "src"

MAY_OPEN_FILES = {"__main__", "checkpoint", "cli", "config.load", "data", "documents.container", "files", "improve",
                  "inference.native", "inference.threads", "inference.translation", "interop", "processors", "runs",
                  "serving", "web"}  # fmt: skip
OPENERS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "save_file", "load_file", "memmap"}
LEGACY = "interop.weights"
# Values of a setting that some table leaves out, on purpose.
_RULES = "boilerplate copy cut duplicate encoding language length lexical numbers placeholders repetition"
LEFT_OUT = [
    set(values.split())
    for values in (
        "bytes characters huggingface marian moses-bpe words",  # tokenizers that do not learn pieces
        "bpe bytes characters marian moses-bpe unigram",  # that do not keep white space
        *("train", "test"),  # of held-out text; of the text of a training
        *("loss", "accuracy macro_f1", "bleu chrf"),  # of scores; of the metrics of a task
        *("swiglu", "gelu-tanh swiglu"),  # of the activations of other programs
        *("encoder-decoder", "decoder encoder-decoder", "decoder masked-encoder", "distilbert gpt2"),
        *("html", "html javascript sentence-transformers"),  # of formats with a card; of a translator's
        *("argos ctranslate2 html javascript", "argos ctranslate2 huggingface sentence-transformers"),
        "html huggingface javascript sentence-transformers",  # of formats with number formats
        "html javascript sentence-transformers",  # of programs with other search settings
        "argos html javascript sentence-transformers",  # of programs that do not split lines
        "ctranslate2 huggingface javascript sentence-transformers",  # of formats of one file
        "masked-encoder",  # of the models of a page
        "adamw",  # has returned before
        "bf16",  # of a browser's precisions
        "entities",  # have a finding of their own
        *(_RULES, f"{_RULES} typography"),  # of cleaning, that repair; that need no module of `text`
        "files",  # of two words that are no products of a plan
    )
]
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}


@functools.cache
def nodes_of(name: str) -> list[ast.AST]:
    """Return the nodes of a parsed module, which is the first."""
    return list(ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"), str(MODULES[name]))))


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_contracts_of_imports_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Layers, no circle inside packages either, a doctor without manyheads, a schema without torch, no pickle."""
    monkeypatch.chdir(ROOT)
    code = lint_imports(no_cache=True, no_logo=True)
    assert code == 0, capsys.readouterr().out


def test_the_doctor_imports_torch_alone() -> None:
    """It names the pip line of an optional package where it is missing; pytest imports its plugin."""
    optional = {"click", "sacrebleu", "transformers", "pytest"}
    allowed = {*sys.stdlib_module_names, "transformer_doctor", "torch", *optional}
    files = sorted(DOCTOR.rglob("*.py"))
    assert files
    for path in files:
        names = imported_modules(ast.parse(path.read_text(encoding="utf-8")))
        assert {name.partition(".")[0] for name in names} <= allowed, path


def test_bitext_needs_numpy_and_two_small_packages() -> None:
    """Of its other packages, which its extras hold, no module imports one at its top."""
    allowed = {*sys.stdlib_module_names, "bitext", "numpy", "portalocker", "langcodes"}
    for path in sorted(BITEXT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        command = {"click"} if path.stem in ("cli", "commands") else set()
        assert {name.partition(".")[0] for name in imported_modules(top)} <= allowed | command, path


def may_open_files(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in MAY_OPEN_FILES or ".".join(parts[:2]) in MAY_OPEN_FILES


def test_only_some_packages_open_files() -> None:
    for name in MODULES:
        found = [] if may_open_files(name) else nodes_of(name)
        imports = [node for node in found if isinstance(node, ast.ImportFrom)]
        ours = [alias for node in imports if str(node.module).startswith("manyheads") for alias in node.names]
        own = {alias.asname or alias.name for alias in ours}  # `read_text` of `data.reading`, say
        for node in found:
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if isinstance(node.func, ast.Name) and called in own:
                    continue
                assert called not in OPENERS, f"manyheads.{name}, line {node.lineno}: {called}() opens a file"


def test_search_calls_two_methods_of_a_model() -> None:
    """A model needs these two methods of `Stepper` to be searched."""
    classes = (node for node in nodes_of("search.interface") if isinstance(node, ast.ClassDef))
    stepper = next(node for node in classes if node.name == "Stepper")
    assert [node.name for node in stepper.body if isinstance(node, ast.FunctionDef)] == ["step", "select"]


def test_torch_reads_no_pickle_but_legacy_weights() -> None:
    """One call reads the pickle of a legacy model after --trust-pickle, by the restricted reader of torch."""
    for name in MODULES:
        for node in nodes_of(name):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
                allowed = name == LEGACY and node.attr == "load"
                assert allowed or node.attr not in ("load", "save"), f"manyheads.{name}: torch.{node.attr}"
    calls = [node for node in nodes_of(LEGACY) if isinstance(node, ast.Call)]
    loads = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "load"]
    assert len(loads) == 1
    restricted = {option.arg: option.value for option in loads[0].keywords}["weights_only"]
    assert isinstance(restricted, ast.Constant)
    assert restricted.value is True


def task_name_constants(node: ast.AST) -> list[ast.Constant]:
    """Return the names of tasks with which something is compared, or by which it is looked up.

    "translation" is also a word and a column of data, so that it counts in comparisons alone.
    """
    if isinstance(node, (ast.Compare, ast.MatchValue)):
        found, names = ast.walk(node), set(TASKS)
    elif isinstance(node, ast.Dict):
        found, names = iter(filter(None, node.keys)), TASKS.keys() - {"translation"}
    elif isinstance(node, ast.Subscript):
        found, names = iter([node.slice]), TASKS.keys() - {"translation"}
    else:
        return []
    return [part for part in found if isinstance(part, ast.Constant) and part.value in names]


def test_what_differs_between_tasks_is_asked_of_the_task_and_not_of_its_name() -> None:
    """A new task is then a folder and an entry in the registry: no other module knows its name."""
    for name in MODULES.keys() - {"config.schema.tasks"}:
        for node in nodes_of(name):
            for constant in task_name_constants(node):
                raise AssertionError(f'manyheads.{name}, line {constant.lineno}: "{constant.value}" is compared')


def constants_of(nodes: Sequence[ast.AST | None]) -> set[str]:
    """Return the values of nodes that are all texts; the empty set for others."""
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    texts = {value for value in values if isinstance(value, str)}
    return texts if len(texts) == len(nodes) else set()


def tables_of(name: str) -> Iterator[tuple[int, set[str], bool]]:
    """Yield line and values of each table of a module: keys, elements, cases; whether it is a `Literal`."""
    literals = [
        node.slice
        for node in nodes_of(name)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
    ]
    for node in nodes_of(name):
        if isinstance(node, ast.Dict):
            yield node.lineno, constants_of(node.keys), False
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield node.lineno, constants_of(node.elts), node in literals
        elif isinstance(node, ast.Match):
            patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
            values = [pattern.value for pattern in patterns if isinstance(pattern, ast.MatchValue)]
            yield node.lineno, constants_of(values), False


def script_tables() -> Iterator[tuple[str, set[str]]]:
    """Yield name and values of each array of texts in the JavaScript."""
    for path in sorted((SOURCE / "web").rglob("*.js")):
        for array in re.findall(r'\[("[\w-]+"(?:, "[\w-]+")+)\]', path.read_text(encoding="utf-8")):
            yield path.name, set(re.findall(r'"([\w-]+)"', array))


def test_a_table_that_holds_values_of_a_setting_holds_all_of_them() -> None:
    """A value that is added to a setting then names every table that lacks it; mypy names every `match`."""
    tables = [(f"{name}, line {line}", *rest) for name in MODULES for line, *rest in tables_of(name)]
    settings = [values for name, values, is_literal in tables if is_literal]
    partial = {
        f"{name}: {sorted(values)} lacks {sorted(setting - values)}"
        for name, values in [*(table[:2] for table in tables), *script_tables()]
        for setting in settings
        if len(values) > 1 and values < setting and values not in settings and setting - values not in LEFT_OUT
    }
    assert not partial, "\n".join(sorted(partial))
