"""A set of 64-bit hashes in arrays: 16 to 32 bytes each."""

from __future__ import annotations

from array import array

__all__ = ["SeenHashes"]

SMALLEST = 1_024  # places; always a power of two


class SeenHashes:
    """Hash set with open addressing and linear probing, at most half full; a slot with 0 is free."""

    def __init__(self) -> None:
        self.places = array("Q", bytes(8 * SMALLEST))
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def add(self, value: int) -> bool:
        """Add a hash of 64 bits; return False if it was there already."""
        value = value or 1  # nothing but a chance of one in 2 ** 64 is lost
        if not put(self.places, value):
            return False
        self.count += 1
        if 2 * self.count > len(self.places):
            grown = array("Q", bytes(16 * len(self.places)))
            for old in self.places:
                if old:
                    put(grown, old)
            self.places = grown
        return True


def put(places: array[int], value: int) -> bool:
    """Put a value into the first free slot from its own on; return False if the value is found on the way."""
    mask = len(places) - 1
    place = value & mask
    while (found := places[place]) != 0:
        if found == value:
            return False
        place = (place + 1) & mask
    places[place] = value
    return True
