"""Errors of a user's code are shown with the user's lines alone."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from specimens.planted import Trainer, Transformer
from transformer_doctor import examine, examine_schedule
from transformer_doctor.errors import UsageError
from transformer_doctor.user_errors import describe_error, hide_own_frames, is_from_user


def exception_of(function: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function()
    return caught.value


def test_an_error_is_described_by_type_message_and_line() -> None:
    error = exception_of(lambda: {}["mask"])
    assert describe_error(error).startswith("KeyError: 'mask' (test_user_errors.py, line ")
    assert describe_error(exception_of(lambda: nn.Linear(2, 3)(None))).endswith(")")
    assert describe_error(ValueError("three.")) == "ValueError: three"


def test_a_usage_error_shows_one_frame_of_the_doctor() -> None:
    error = exception_of(lambda: examine("model", vocab_size=23))
    assert isinstance(error, UsageError)
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames if "transformer_doctor" in frame.filename] == ["wrapped"]


def test_an_error_of_a_users_function_keeps_the_users_frames() -> None:
    def step(source: Tensor, target: Tensor) -> float:
        return source["loss"]  # type: ignore[call-overload]

    @hide_own_frames
    def examined() -> object:
        return step(*Trainer(Transformer()).collate([[3, 4]], [[5, 6]]))

    error = exception_of(examined)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "step"
    assert is_from_user(error)


def test_the_doctors_frames_around_a_users_error_are_hidden() -> None:
    class Schedule:
        def step(self) -> None:
            raise ValueError("mine")

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    function = hide_own_frames(examine_schedule)
    frames = traceback.extract_tb(exception_of(lambda: function(lambda: (optimizer, Schedule()))).__traceback__)
    assert [frame.name for frame in frames if "transformer_doctor" in frame.filename] == ["wrapped"]
    assert frames[-1].name == "step"


def test_an_error_of_the_doctor_is_not_the_users() -> None:
    from transformer_doctor.signatures import role_of

    assert not is_from_user(exception_of(lambda: role_of(None, ("source",))))  # type: ignore[arg-type]
