"""The errors that a user can fix have the tree and the exit codes of the module's description."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import pytest

from bitext import errors as bitext_errors
from manyheads import errors
from manyheads.errors import ConfigError, DataError, ManyheadsError, MissingExtraError, UsageError, require
from manyheads.inference.loading import NativeRun
from manyheads.inference.native_engine import NativeEngine

TREE = re.findall(r"^((?:│|├|└|─| )*)(\w+Error) +(\d)", errors.__doc__ or "", re.MULTILINE)


def test_the_description_names_every_error() -> None:
    defined = [name for name in errors.__all__ if name.endswith("Error")]
    assert sorted(name for _, name, _ in TREE) == sorted(defined)


def test_an_error_has_the_parent_and_the_exit_code_of_the_description() -> None:
    parents: list[type[ManyheadsError]] = []
    for branch, name, code in TREE:
        error = getattr(errors, name)
        depth = len(branch) // 4
        assert error.exit_code == int(code), name
        assert error.__base__ is (parents[depth - 1] if depth else Exception), name
        parents[depth:] = [error]


def test_one_mistake_of_a_configuration_is_one_line() -> None:
    assert str(ConfigError(["model.d_model = 0 is too small"], origin="a.toml")) == (
        "a.toml: model.d_model = 0 is too small"
    )


def test_all_mistakes_of_a_configuration_are_named() -> None:
    error = ConfigError(["first", "second"])
    assert str(error).splitlines() == ["2 mistakes", "  first", "  second"]
    assert error.mistakes == ["first", "second"]


def test_an_optional_package_that_is_installed_is_imported() -> None:
    assert require("json", extra="hf", purpose="this test") is json


def test_a_missing_optional_package_is_named_with_the_line_that_installs_it() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require("not_installed.part", extra="hf", purpose="reading from the hub")
    assert str(caught.value) == (
        "reading from the hub needs the package not_installed, which is not installed. "
        'Install it with: pip install "manyheads[hf]"'
    )


def test_text_of_a_file_in_a_message_does_not_control_a_terminal() -> None:
    line = "Hund\x1b]0;owned\x07\r\u202e"
    for error in (ManyheadsError(line), DataError(f"train.de, line 3: {line}"), ConfigError([line, line])):
        assert all(part.isprintable() for part in str(error).split("\n  ")), repr(str(error))
        assert "Hund\\x1b]0;owned\\x07\\r\\u202e" in str(error)


@pytest.mark.parametrize("make", [lambda: NativeRun(None, dict), lambda: NativeEngine(Any)])
@pytest.mark.parametrize("pickling", [pickle.dumps, copy.deepcopy])
def test_a_model_in_c_that_is_pickled_says_to_open_the_run_in_the_other_process(make: Any, pickling: Any) -> None:
    with pytest.raises(UsageError, match=r"cannot be pickled or copied deeply\. Give .* the path of its run"):
        pickling(make())


def test_the_error_of_any_function_of_bitext_is_one_of_manyheads() -> None:
    for error in (bitext_errors.DataError("x"), bitext_errors.MissingExtraError("x"), ConfigError(["x"])):
        assert isinstance(error, ManyheadsError)
