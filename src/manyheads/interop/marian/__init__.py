"""MarianMT of Hugging Face's transformers (the opus-mt family), in and out. Needs no transformers itself."""

from manyheads.interop.marian.check import check_marian, has_transformers
from manyheads.interop.marian.reader import is_marian, read_marian, their_numbers
from manyheads.interop.marian.writer import marian_numbers, write_marian

__all__ = [
    "check_marian",
    "has_transformers",
    "is_marian",
    "marian_numbers",
    "read_marian",
    "their_numbers",
    "write_marian",
]
