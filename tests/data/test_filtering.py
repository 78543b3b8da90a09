"""A compact set of hashes agrees with the set of Python."""

from __future__ import annotations

import random

import pytest

from manyheads.data.filtering import _MIN_SLOTS, _SeenHashes


@pytest.mark.parametrize("bits", [6, 12, 64])
def test_seen_hashes_report_new_values_as_a_set_does(bits: int) -> None:
    rng = random.Random(bits)
    seen, expected = _SeenHashes(), set[int]()
    for _ in range(5_000):
        value = rng.getrandbits(bits) << rng.choice([0, 64 - bits])
        assert seen.add(value) == ((value or 1) not in expected)
        expected.add(value or 1)
    assert len(seen) == len(expected)


def test_seen_hashes_are_at_most_half_full_and_use_at_most_32_bytes_a_hash() -> None:
    seen, rng = _SeenHashes(), random.Random(1)
    for _ in range(30_000):
        seen.add(rng.getrandbits(64))
        assert 2 * len(seen) <= len(seen.slots)
        assert len(seen.slots) <= max(_MIN_SLOTS, 4 * len(seen))
    assert seen.slots.itemsize == 8
