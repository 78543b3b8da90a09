"""The memory of the browser engine: allocation, reuse of freed blocks, struct layouts and damaged files."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.model.samples import TARGET_SIZE, random_ids, scrambled_model
from tests.web.engine.node import pack

from manyheads.inference.native.interface import _layout_in_python
from manyheads.web.pack import _PANEL_WIDTH


def test_the_module_describes_every_struct_of_python(node) -> None:
    layout = dict(node.call("layout"))
    assert layout.keys() >= _layout_in_python().keys()
    assert layout["Beam.step"] == "Step"
    assert layout["Step.tokens"] == "pointer"
    assert layout["Step.rows"] == "int64"
    assert layout["Output.log_prob"] == "float"
    assert layout["Candidate.total"] == "double"


def test_the_panel_width_of_the_module_is_that_of_python(node) -> None:
    assert node.call("panelWidth") == _PANEL_WIDTH


def test_blocks_do_not_overlap_and_freed_blocks_are_merged(node) -> None:
    before, rng = node.call("state"), random.Random(1)
    blocks: dict[int, int] = {}
    for _ in range(40):
        sizes = [rng.choice([0, 1, 15, 16, 17, 1_000, 70_000]) for _ in range(rng.randint(1, 20))]
        for start, size in zip(node.call("allocate", sizes), sizes, strict=True):
            assert start % 16 == 0
            assert start not in blocks
            blocks[start] = max(size, 1)
        ordered = sorted(blocks.items())
        ends = [start + size for start, size in ordered]
        assert all(end <= start for end, (start, _) in zip(ends, ordered[1:], strict=False))
        freed = rng.sample(sorted(blocks), len(blocks) // 2)
        node.call("release", freed)
        for start in freed:
            del blocks[start]
    after = node.call("release", sorted(blocks))
    assert (after["used"], after["free"]) == (before["used"], before["free"])


def test_a_thousand_translations_take_no_more_memory_than_ten(node) -> None:
    node.load("small", pack(scrambled_model().float(), "int8"))
    rows = [random_ids(1, 3 + number % 7, TARGET_SIZE, seed=number)[0].tolist() for number in range(10)]
    node.call("translateAll", "small", rows, {"beamSize": 2, "maxLengthRatio": 0.1, "maxLengthOffset": 5})
    before = node.call("state")
    node.call("translateAll", "small", 100 * rows, {"beamSize": 2, "maxLengthRatio": 0.1, "maxLengthOffset": 5})
    assert node.call("state") == before


def test_closing_a_model_frees_its_memory(node) -> None:
    before = node.call("state")["used"]
    node.load("other", pack(scrambled_model().float()))
    assert node.call("state")["used"] > before
    assert node.call("close", "other")["used"] == before


def test_an_allocation_beyond_the_available_memory_is_refused(node) -> None:
    before = node.call("state")
    assert "no memory for 8192 MiB" in node.call("allocateError", 2**33)
    assert node.call("state") == before


def with_changed_layer(header: dict[str, Any], name: str, **fields: Any) -> dict[str, Any]:
    """Return the header with changed fields of a linear layer of the second decoder layer."""
    changed = copy.deepcopy(header)
    changed["decoder"]["layers"][1][name].update(fields)
    return changed


def mutate(value: Any, rng: random.Random) -> Any:
    """Return the JSON value with one number, text or list replaced at random."""
    if isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        return {**value, name: mutate(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        index = rng.randrange(len(value))
        return [*value[:index], mutate(value[index], rng), *value[index + 1 :]]
    others = [0, 1, -1, 3, 7, 30, 2**31, 2**40, 1.5, 1e300, None, "x", [], {}, [[1]], True]
    if isinstance(value, int):
        others += [value + 1, value - 1, 2 * value, value + 16, -value]
    return rng.choice([other for other in others if other != value])


def test_a_mutated_header_never_hangs_or_stops_the_engine(node) -> None:
    """A model that still loads translates or raises an EngineError."""
    rng = random.Random(1)
    packed = pack(scrambled_model(positions="learned").float(), "int8")
    block = [[0, list(packed.block())]]
    before = node.call("state")["used"]
    for _ in range(60):
        error = node.call("loadBytes", mutate(packed.header, rng), block)
        assert error == "" or error.startswith("EngineError: "), error
    assert node.call("state")["used"] == before


def test_a_file_that_does_not_fit_its_header_is_refused(node) -> None:
    packed = pack(scrambled_model().float(), "int8")
    header, size = packed.header, packed.header["bytes"]
    before = node.call("state")["used"]
    cases = [
        ({**header, "format": 2}, [], "format 2"),
        ({**header, "panel_width": 16}, [], "panels of 16"),
        (header, [[0, [1, 2, 3]]], f"3 bytes instead of {size}"),
        (header, [[size - 1, [1, 2]]], "longer than its header"),
        ({**header, "bytes": 2**33}, [], "bytes is not"),
        ({**header, "bytes": 1_000}, [], "the file of the model is damaged: tensor"),
        (with_changed_layer(header, "self_qkv", inputs=31), [], "decoder.layers[1].self_qkv is not"),
        (with_changed_layer(header, "expand", weight=2), [], "the weight of decoder.layers[1].expand is not"),
        (
            with_changed_layer(header, "cross_query", bias=None, scale=None),
            [],
            "scale of decoder.layers[1].cross_query",
        ),
        ({**header, "task": "guess"}, [], "task"),
        ({**header, "memory_kv": header["memory_kv"][1:]}, [], "memory_kv"),
    ]
    for changed, parts, message in cases:
        error = node.call("loadBytes", changed, parts)
        assert error.startswith("EngineError: ")
        assert message in error
    assert node.call("state")["used"] == before
