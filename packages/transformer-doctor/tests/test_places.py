"""The place of a model is the line of its code."""

from __future__ import annotations

import functools
import linecache
import runpy
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from transformer_doctor.places import place_of, running_place


class Model(nn.Module):
    def forward(self, ids: Tensor) -> Tensor:
        return ids


def write(ids: Tensor) -> Tensor:
    return ids


def test_the_place_of_a_model_is_the_line_of_its_class_or_of_its_function() -> None:
    lines = Path(__file__).read_text("utf-8").splitlines()
    models: dict[Any, str] = {Model(): "class Model", Model: "class Model", functools.partial(write): "def write"}
    for model, start in models.items():
        place = place_of(model)
        assert place is not None
        assert Path(place.path).name == Path(__file__).name
        assert lines[place.line - 1].startswith(start)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", ["<string>", "<ipython-input-1>", "/tmp/ipykernel_1/2.py", "archive.zip/model.py"])
def test_code_that_is_in_no_file_has_no_place_even_where_python_keeps_its_text(
    name: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the text in `linecache`, as IPython does, and Python 3.13 that of `python -c`."""
    source = "def forward(ids, running_place):\n    return running_place()\n"
    names: dict[str, Any] = {}
    exec(compile(source, name, "exec"), names)
    if known:
        lines = source.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, name, (len(source), None, lines, name))
    assert place_of(names["forward"]) is None
    caller = names["forward"](None, running_place)
    assert caller is not None
    assert caller.path.endswith("test_places.py")


def test_a_line_of_the_user_is_preferred_to_one_of_a_library_that_it_calls(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "their_layer.py").write_text("def attend(function):\n    return function()\n")
    theirs = runpy.run_path(str(folder / "their_layer.py"))["attend"]
    for place in (running_place(), theirs(running_place)):
        assert place is not None
        assert place.path.endswith("test_places.py")
