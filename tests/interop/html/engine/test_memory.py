"""The memory of the browser engine: blocks that do not overlap, freed blocks used again, structs of the module."""

from __future__ import annotations

import random

from tests.interop.html.engine.node import pack
from tests.model.samples import TARGET_SIZE, random_ids, scrambled_model

from manyheads.decoding.native.interface import layout_in_python
from manyheads.interop.html.pack import PANEL_WIDTH


def test_the_module_states_every_struct_that_python_knows(node) -> None:
    layout = dict(node.call("layout"))
    assert layout.keys() == layout_in_python().keys()
    assert layout["Beam.step"] == "Step"
    assert layout["Step.tokens"] == "pointer"
    assert layout["Step.rows"] == "int64"
    assert layout["Node.log_prob"] == "float"
    assert layout["Candidate.total"] == "double"


def test_the_module_has_the_panels_that_python_packs(node) -> None:
    assert node.call("panelWidth") == PANEL_WIDTH


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
        gone = rng.sample(sorted(blocks), len(blocks) // 2)
        node.call("release", gone)
        for start in gone:
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


def test_a_model_gives_its_memory_back(node) -> None:
    before = node.call("state")["used"]
    node.load("other", pack(scrambled_model().float()))
    assert node.call("state")["used"] > before
    assert node.call("close", "other")["used"] == before


def test_a_file_that_does_not_fit_its_header_is_refused(node) -> None:
    packed = pack(scrambled_model().float(), "int8")
    header, size = packed.header, packed.header["bytes"]
    before = node.call("state")["used"]
    cases = [
        ({**header, "format": 2}, [], "format 2"),
        ({**header, "panel_width": 16}, [], "panels of 16"),
        (header, [[0, [1, 2, 3]]], f"3 bytes instead of {size}"),
        (header, [[size - 1, [1, 2]]], "longer than its header"),
        ({**header, "bytes": 2**33}, [], "no memory for 8192 MiB"),
    ]
    for changed, parts, message in cases:
        error = node.call("loadBytes", changed, parts)
        assert error.startswith("EngineError: ")
        assert message in error
    assert node.call("state")["used"] == before
