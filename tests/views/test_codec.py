"""Objects survive a round trip through JSON values; a wrong value is reported with its field."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.tolerances import printed, within

from manyheads.errors import UsageError
from manyheads.views.codec import Array, from_json_values, to_json_values


@dataclass(frozen=True)
class Leaf:
    name: str
    number: float
    index: int | None


@dataclass(frozen=True, eq=False)
class Tree:
    leaves: tuple[Leaf, ...]
    weights: Array
    links: tuple[tuple[int, int], ...]


WEIGHTS = np.array([[-1, 1 / 3, 2 / 7], [0.123456, 3, 0.9]], np.float32)
TREE = Tree((Leaf("가", 0.5, None), Leaf("b", -2.0, 7)), WEIGHTS, ((1, 2),))
VALUES = to_json_values(TREE)


@pytest.mark.parametrize(
    ("packed", "right"), [(False, printed(WEIGHTS, 6)), (True, within(WEIGHTS, 4 / 131_070 * 1.01))]
)
def test_an_object_is_restored_from_its_json(packed: bool, right: Any) -> None:
    values = json.loads(json.dumps(to_json_values(TREE, packed=packed)))
    restored = from_json_values(Tree, values, "the tree")
    assert (restored.leaves, restored.links) == (TREE.leaves, TREE.links)
    assert restored.weights.dtype == np.float32
    assert restored.weights == right


def test_numbers_of_an_array_have_six_decimals_and_the_packed_form_has_two_bytes_each() -> None:
    thirds = Tree((), np.full((1, 2), 1 / 3, np.float32), ())
    assert to_json_values(thirds)["weights"] == [[0.333333, 0.333333]]
    assert to_json_values(thirds, packed=True)["weights"] == {
        "shape": [1, 2],
        "low": 0.0,
        "high": 1.0,
        "uint16": "VVVVVQ==",
    }


def test_fields_of_a_later_version_are_ignored() -> None:
    assert from_json_values(Tree, VALUES | {"new": 1}, "the tree").leaves == TREE.leaves


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("leaves", [{"name": "a", "number": 1.0}], r"^the tree\.leaves\[0\] has no 'index'"),
        ("leaves", [{"name": "a", "number": "1", "index": None}], r"^the tree\.leaves\[0\]\.number is str: "),
        ("leaves", [{"name": "a", "number": 1, "index": True}], r"^the tree\.leaves\[0\]\.index is bool: "),
        ("leaves", 5, r"^the tree\.leaves is int: "),
        ("weights", "x", r"^the tree\.weights is no array of numbers: "),
        ("weights", {"shape": [2], "low": 0, "high": 1, "uint16": "VVU="}, r"^the tree\.weights is no array"),
        ("links", [[1]], r"^the tree\.links\[0\] is list: "),
    ],
)
def test_a_wrong_value_is_named_by_its_field(field: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_json_values(Tree, VALUES | {field: value}, "the tree")
