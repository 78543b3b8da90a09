"""The errors that a user can fix have the tree and the exit codes of the module's description."""

from __future__ import annotations

import re

import pytest

from bitext import errors
from bitext.errors import BitextError, DataError, MissingExtraError, require

TREE = re.findall(r"^((?:│|├|└|─| )*)(\w+Error) +(\d)", errors.__doc__ or "", re.MULTILINE)


def test_the_description_names_every_error() -> None:
    defined = [name for name, value in vars(errors).items() if isinstance(value, type) and name.endswith("Error")]
    assert sorted(name for _, name, _ in TREE) == sorted(defined)


def test_an_error_has_the_parent_and_the_exit_code_of_the_description() -> None:
    parents: list[type[BitextError]] = []
    for branch, name, code in TREE:
        error = getattr(errors, name)
        depth = len(branch) // 4
        assert error.exit_code == int(code), name
        assert error.__base__ is (parents[depth - 1] if depth else Exception), name
        parents[depth:] = [error]


def test_a_missing_optional_package_is_named_with_the_line_that_installs_it() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require("not_installed.part", extra="hf", purpose="reading from the hub")
    assert str(caught.value) == (
        "reading from the hub needs the package not_installed, which is not installed. "
        'Install it with: pip install "bitext[hf]"'
    )


def test_text_of_a_file_in_a_message_does_not_control_a_terminal() -> None:
    error = DataError("train.de, line 3: Hund\x1b]0;owned\x07\r\u202e")
    assert str(error) == "train.de, line 3: Hund\\x1b]0;owned\\x07\\r\\u202e"
