"""The program `manyheads`, also as `python -m manyheads`."""

from manyheads.cli.signals import StopSignals


def main() -> None:
    """Handle the signals that end the program before anything large is imported, then run the command line."""
    signals = StopSignals()
    signals.install()

    from manyheads.cli.main import main as run_program

    run_program(signals)


if __name__ == "__main__":
    main()
