"""Errors for users have an exit code, and other programs mark theirs so; those of a user's code have a line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor, nn

from specimens.planted import Trainer, Transformer
from transformer_doctor.errors import (
    DoctorError,
    MissingPackageError,
    UsageError,
    describe_error,
    is_for_users,
    is_from_user,
    require,
)


class TheirError(Exception):
    exit_code = 3


def test_errors_with_an_exit_code_are_for_users() -> None:
    assert (DoctorError.exit_code, UsageError.exit_code, MissingPackageError.exit_code) == (1, 2, 4)
    assert is_for_users(UsageError("x"))
    assert is_for_users(TheirError())
    assert not is_for_users(ValueError())


def test_a_missing_package_names_its_pip_line() -> None:
    assert require("math", "it").sqrt(4) == 2
    with pytest.raises(MissingPackageError, match=r"it needs the package nothere, .* pip install nothere"):
        require("nothere.callbacks", "it")


def exception_of(function: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function()
    return caught.value


def test_an_error_is_described_by_type_message_and_line() -> None:
    error = exception_of(lambda: {}["mask"])
    assert describe_error(error).startswith("KeyError: 'mask' (test_errors.py, line ")
    assert describe_error(exception_of(lambda: nn.Linear(2, 3)(None))).endswith(")")
    assert describe_error(ValueError("three.")) == "ValueError: three"


def test_an_error_of_a_users_function_is_the_users() -> None:
    def step(source: Tensor, target: Tensor) -> float:
        return source["loss"]  # type: ignore[call-overload]

    assert is_from_user(exception_of(lambda: step(*Trainer(Transformer()).collate([[3, 4]], [[5, 6]]))))


def test_an_error_of_the_doctor_is_not_the_users() -> None:
    from transformer_doctor.signatures import role_of

    assert not is_from_user(exception_of(lambda: role_of(None, ("source",))))  # type: ignore[arg-type]
