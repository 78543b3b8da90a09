"""MarianMT folders of Hugging Face's transformers (the opus-mt family), read and written without transformers."""

from manyheads.interop.marian.check import check_marian
from manyheads.interop.marian.reader import is_marian, read_marian, their_numbers
from manyheads.interop.marian.writer import marian_numbers, write_marian

__all__ = [
    "check_marian",
    "is_marian",
    "marian_numbers",
    "read_marian",
    "their_numbers",
    "write_marian",
]
