"""The program `manyheads`, also as `python -m manyheads`."""

import os

from manyheads.cli.signals import StopSignals


def main() -> None:
    """Handle the signals that end the program before anything large is imported, then run the command line."""
    signals = StopSignals()
    signals.install()
    # OpenMP's threads spin at every barrier, by default for milliseconds. Beside other programs the spinning thread
    # holds the core that the awaited thread needs; so let it spin briefly, then sleep. Read when torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

    from manyheads.cli.main import main as run_program

    run_program(signals)


if __name__ == "__main__":
    main()
