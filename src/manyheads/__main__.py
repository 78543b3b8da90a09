"""`python -m manyheads` is the program `manyheads`."""

from manyheads.cli.main import main

main()
