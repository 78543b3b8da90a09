"""Models in the formats of other programs, in and out, each compared with the original before it is kept."""
