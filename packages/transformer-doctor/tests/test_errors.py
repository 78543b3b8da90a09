"""Errors for users have an exit code, and other programs mark theirs so; a missing package names its pip line."""

from __future__ import annotations

import pytest

from transformer_doctor.errors import DoctorError, MissingPackageError, UsageError, is_for_users, require


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
        require("nothere", "it")
