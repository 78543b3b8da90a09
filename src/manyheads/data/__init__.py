"""Read, clean and store the text of a training, draw its updates, vary its lines. It imports no torch."""

from bitext.program import Program
from manyheads import __version__

PROGRAM = Program("manyheads", __version__, ("manyheads", "data"))  # as notes and messages of bitext name it
CALL_LINES = 512  # lines computed in one call
