"""The notebooks run from the extra `notebooks`, keep their promises, and are stored with their outputs."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from tests.docs.book import extension
from tools.notebooks import (
    DIGEST,
    LOCAL_PATHS,
    PROMISES,
    TRIALS,
    code_digest,
    code_of,
    execute,
    notebook,
    real_encoder,
    run,
)

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
ENGLISH = sorted(NOTEBOOKS.glob("*.ipynb"))
ALL = [*ENGLISH, *sorted(NOTEBOOKS.glob("ko/*.ipynb"))]
MAX_BYTES = 300_000
WRITE = "run and store them again: python -m tools.notebooks --write notebooks/*.ipynb notebooks/ko/*.ipynb"
# matplotlib reads tensors by a protocol of numpy that torch does not know in full
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
)
every_notebook = pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}-{path.stem}")


# --- the stored notebooks ---


@every_notebook
def test_the_stored_outputs_are_those_of_the_present_code(path: Path) -> None:
    document = notebook(path)
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), WRITE
    assert document["metadata"].get(DIGEST) == code_digest(document), WRITE


@every_notebook
def test_the_outputs_hold_pictures_and_no_errors_and_are_small(path: Path) -> None:
    outputs = [output for cell in notebook(path)["cells"] for output in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/png") >= 4
    assert kinds.count("image/svg+xml") <= kinds.count(
        "image/png"
    )  # Jupyter shows PNG in untrusted notebooks, and no SVG
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    assert path.stat().st_size < MAX_BYTES


@every_notebook
def test_no_stored_output_names_a_local_path(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [local for local in LOCAL_PATHS if local in text]
    assert not re.search(r"\b0x[0-9a-f]{8,}", text)  # an address in memory, different in each run
    cells = notebook(path)["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)


# --- the extra ---


def imports(path: Path) -> set[str]:
    """Return the packages that the code of a notebook imports, including its solutions."""
    trees = [ast.parse(code) for code in code_of(notebook(path), solutions=True)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    modules |= {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return {module.split(".")[0] for module in modules}


@every_notebook
def test_a_notebook_imports_only_requirements_of_the_package_or_its_extra(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *extras["notebooks"], *extras["train"]]
    named = {re.split(r"[<>=;\[ ]", requirement)[0].lower() for requirement in requirements}
    foreign = {module.lower() for module in imports(path)} - set(sys.stdlib_module_names) - {"manyheads"}
    assert foreign <= named


# --- Colab and Binder ---


def links_of(page: str, repository: str) -> list[str]:
    """Return the links to Colab and Binder that a page of the book gets for a public copy of the repository."""
    pytest.importorskip("sphinx")
    text = extension("notebooks").with_links((ROOT / "docs" / page).read_text(encoding="utf-8"), repository)
    return re.findall(r"\[(?:Colab|Binder)\]\((https:[^)]+)\)", text)


@pytest.mark.parametrize(("page", "folder"), [("learn.md", ""), ("ko/learn.md", "ko/")])
def test_the_course_opens_every_notebook_of_a_public_copy(page: str, folder: str) -> None:
    links = links_of(page, "https://github.com/some/body/")
    colab = "https://colab.research.google.com/github/some/body/blob/main/"
    binder = "https://mybinder.org/v2/git/https%3A%2F%2Fgithub.com%2Fsome%2Fbody/main?urlpath=lab/tree/"
    paths = [f"notebooks/{folder}{name}.ipynb" for name in PROMISES]
    assert sorted(links) == sorted(address + path for address in (colab, binder) for path in paths)
    assert all((ROOT / path).is_file() for path in paths)
    assert len(links_of(page, "https://example.org/some/body")) == len(paths)  # Binder alone
    assert links_of("tutorial/attention.md", "https://github.com/some/body") == []


def test_binder_installs_what_the_repository_holds() -> None:
    script = ROOT / "binder" / "postBuild"  # runs in the folder of the repository
    assert os.access(script, os.X_OK)
    *_, torch, rest = script.read_text(encoding="utf-8").splitlines()
    assert "uv pip install" in torch
    assert "--torch-backend=auto" in torch
    words = shlex.split(rest)
    assert words[:3] == ["pip", "install", "--constraint"]
    assert (ROOT / words[3]).is_file()
    *folders, package = words[5::2]
    assert words[4::2] == ["--editable"] * (len(folders) + 1)
    assert all((ROOT / folder / "pyproject.toml").is_file() for folder in folders)
    assert package == ".[notebooks]"


@every_notebook
def test_the_first_cell_of_a_notebook_installs_nothing_until_an_address_is_written(path: Path) -> None:
    first, *others = code_of(notebook(path))
    assert first.split("\n", 1)[1] == next(code_of(notebook(ENGLISH[0]))).split("\n", 1)[1]
    assert '\nREPOSITORY = ""\n' in first
    assert not [cell for cell in others if "subprocess" in cell]


# --- Korean ---


LANGUAGES = {"de-en": "ko-en", "de": "ko", "German": "Korean"}  # words in the strings of both translators


def placeholders(string: ast.JoinedStr) -> list[str]:
    """Return the expressions that an f-string inserts, sorted."""
    return sorted(ast.dump(part) for part in string.values if isinstance(part, ast.FormattedValue))


def picture_language(call: ast.Call) -> str:
    """Return the language in which a call draws a picture."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "language"]
    return next((str(value.value) for value in values if isinstance(value, ast.Constant)), "en")


def same_code(english: str, korean: str) -> bool:
    """Return whether two cells have the same code.

    Comments may differ, and strings that are Korean or name the other language, and the language of pictures.
    """

    def alike(one: Any, other: Any) -> bool:
        if isinstance(one, ast.JoinedStr) and isinstance(other, ast.JoinedStr):
            texts = [
                "".join(part.value for part in string.values if isinstance(part, ast.Constant))
                for string in (one, other)
            ]
            return placeholders(one) == placeholders(other) and alike(*texts)
        if isinstance(one, ast.Call) and isinstance(other, ast.Call) and picture_language(other) == "ko":
            other.keywords = [keyword for keyword in other.keywords if keyword.arg != "language"]
        if isinstance(one, ast.AST):
            return type(one) is type(other) and all(
                alike(getattr(one, name, None), getattr(other, name, None)) for name in one._fields
            )
        if isinstance(one, list):
            return isinstance(other, list) and len(one) == len(other) and all(map(alike, one, other))
        if isinstance(one, str) and isinstance(other, str):
            for word, replacement in LANGUAGES.items():
                one = re.sub(rf"\b{word}\b", replacement, one)
            return one == other or bool(re.search("[가-힣]", other))
        return type(one) is type(other) and one == other

    return alike(ast.parse(english), ast.parse(korean))


def test_every_notebook_exists_in_korean() -> None:
    assert (
        {path.name for path in NOTEBOOKS.glob("ko/*.ipynb")}
        == {path.name for path in ENGLISH}
        == {f"{name}.ipynb" for name in PROMISES}
    )


@pytest.mark.parametrize("path", ENGLISH, ids=lambda path: path.stem)
def test_the_korean_notebook_has_the_same_code_and_korean_texts(path: Path) -> None:
    english, korean = notebook(path), notebook(NOTEBOOKS / "ko" / path.name)
    assert [cell["cell_type"] for cell in english["cells"]] == [cell["cell_type"] for cell in korean["cells"]]
    pairs = zip(code_of(english, solutions=True), code_of(korean, solutions=True), strict=True)
    assert not [mine for theirs, mine in pairs if not same_code(theirs, mine)]
    texts = ["".join(cell["source"]) for cell in korean["cells"] if cell["cell_type"] == "markdown"]
    assert not [text for text in texts if not re.search("[가-힣]", text)]


# --- short runs in this process, with fewer updates and without the checks of results ---


def run_notebook(folder: Path, name: str, quick: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run the code of a notebook in a folder, with a drawing backend that needs no screen."""
    pytest.importorskip("IPython")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    with chdir(folder):
        names = run(NOTEBOOKS / f"{name}.ipynb", quick)
    matplotlib.pyplot.close("all")
    return names


def write_encoder(folder: Path) -> None:
    """Copy MiniLM where it is installed; else write a small BERT with random weights."""
    real = real_encoder()
    if real is not None:
        shutil.copytree(real, folder)
        return
    pytest.importorskip("transformers")
    pytest.importorskip("tokenizers")
    from tests.interop.pretrained import write_folder

    write_folder(folder, "bert", num_hidden_layers=6)


@pytest.mark.slow
def test_a_notebook_trains_a_translator_and_another_inspects_it(tmp_path: Path) -> None:
    run_notebook(tmp_path, "train-a-translator", TRIALS)
    assert (tmp_path / "runs" / "demo-de-en" / "model.safetensors").is_file()
    settings, less = next(iter(TRIALS.items()))
    found = run_notebook(tmp_path, "look-inside", {settings: less})["found"]
    assert len(found.attention[2].weights[-1]) == 4
    assert "<html" in (tmp_path / "look.html").read_text(encoding="utf-8")
    assert (tmp_path / "attention.svg").read_text(encoding="utf-8").startswith("<svg")


# --- whole runs in a Jupyter kernel ---


@pytest.mark.slow
@pytest.mark.weekly
def test_the_notebooks_run_in_a_kernel_and_keep_their_promises(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    write_encoder(tmp_path / "models" / "minilm")
    # `python -m tools.notebooks` runs all of them; the two that train translators take minutes
    for name in ("attention-from-scratch", "fine-tune-a-bert"):
        random_encoder = name == "fine-tune-a-bert" and real_encoder() is None
        execute(NOTEBOOKS / f"{name}.ipynb", tmp_path, promises=not random_encoder)
