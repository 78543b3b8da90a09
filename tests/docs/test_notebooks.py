"""The notebooks run from top to bottom, and are stored without outputs."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
from tests.docs.notebooks import BRIEF, notebook, run

NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_places_of_a_machine(path: Path) -> None:
    document = notebook(path)
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    text = path.read_text(encoding="utf-8")
    assert not [place for place in ("/home/", "/tmp/", "/work/", "/Users/", "C:\\\\") if place in text]


def test_attention_from_scratch_is_the_attention_of_the_package() -> None:
    assert "many_heads" in run(NOTEBOOKS / "attention-from-scratch.ipynb")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebook that trains has been run."""
    folder = tmp_path_factory.mktemp("notebooks")
    with chdir(folder):
        assert run(NOTEBOOKS / "train-a-translator.ipynb", BRIEF)["summary"].step == 2
    return folder


def test_a_translator_is_trained(workplace: Path) -> None:
    assert (workplace / "runs" / "demo-de-en" / "model.safetensors").is_file()


def test_one_looks_inside_the_translator_that_was_trained(workplace: Path) -> None:
    with chdir(workplace):
        found = run(NOTEBOOKS / "look-inside.ipynb", BRIEF)["found"]
    assert len(found.attention[2].weights[-1]) == 4
    assert "<html" in (workplace / "look.html").read_text(encoding="utf-8")
    assert (workplace / "attention.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_bert_learns_to_tell_good_from_bad(workplace: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("tokenizers")
    with chdir(workplace):
        names = run(NOTEBOOKS / "fine-tune-a-bert.ipynb")
    assert names["result"].scores.accuracy > 0.8
    assert [found.label for found in names["classifier"].classify(["a brilliant ending", "a stale cast"])] == [
        "good",
        "bad",
    ]
