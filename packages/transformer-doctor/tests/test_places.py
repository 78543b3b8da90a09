"""The place of a model is the line of its code."""

from __future__ import annotations

import functools
from pathlib import Path

from torch import Tensor, nn

from transformer_doctor.places import line_of_user, place_of


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


def test_the_line_of_the_running_program_is_outside_of_libraries() -> None:
    place = line_of_user()
    assert place is not None
    assert place.path.endswith("test_places.py")
