"""The place of a model is the line of its code."""

from __future__ import annotations

import functools
import runpy
from pathlib import Path

from torch import Tensor, nn

from transformer_doctor.places import place_of, running_place


class Model(nn.Module):
    def forward(self, ids: Tensor) -> Tensor:
        return ids


def test_the_place_of_a_model_is_the_line_of_its_forward_or_of_its_function() -> None:
    lines = Path(__file__).read_text("utf-8").splitlines()
    for model in (Model(), functools.partial(Model.forward, Model()), Model().forward):
        place = place_of(model)
        assert place is not None
        assert Path(place.path).name == Path(__file__).name
        assert "def forward" in lines[place.line - 1]
    assert place_of(eval("lambda ids: ids")) is None


def test_a_line_of_the_user_is_preferred_to_one_of_a_library_that_it_calls(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "their_layer.py").write_text("def attend(function):\n    return function()\n")
    theirs = runpy.run_path(str(folder / "their_layer.py"))["attend"]
    for place in (running_place(), theirs(running_place)):
        assert place is not None
        assert place.path.endswith("test_places.py")
