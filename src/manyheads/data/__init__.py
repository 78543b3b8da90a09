"""Read, clean and store text, and make the padded batches of each update from it."""

from bitext.program import Program
from manyheads import __version__

PROGRAM = Program("manyheads", __version__, ("manyheads", "data"))  # as notes and messages of bitext name it
CALL_LINES = 512  # lines computed in one call
