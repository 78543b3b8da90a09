"""The program `manyheads`, also as `python -m manyheads`."""

import io
import os
import sys

from manyheads.cli.signals import StopSignals
from manyheads.processors import available_processors, processor_quota


class Messages(io.FileIO):
    """Standard error: a message that cannot be written, as on a full disk, is lost, and the work goes on."""

    def write(self, data: object) -> int:
        """Write bytes; return the number of bytes that the caller need not write again."""
        try:
            written = super().write(data)  # type: ignore[arg-type]
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written  # type: ignore[arg-type]


def prepare_streams() -> None:
    """Open the null device for each standard stream that is closed, as in daemons; it names such a stream.

    A file that is opened later would take the number of the stream.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    raw = Messages(2, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True, write_through=True)


def main() -> None:
    """Handle the signals that end the program before anything large is imported, then run the command line."""
    prepare_streams()
    signals = StopSignals()
    signals.install()
    # OpenMP's threads spin at every barrier, by default for milliseconds. Beside other programs the spinning thread
    # holds the core that the awaited thread needs; so let it spin briefly, then sleep. Read when torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if processor_quota() is not None:  # else OpenMP starts a thread for each processor of the machine
        os.environ.setdefault("OMP_NUM_THREADS", str(available_processors()))

    from manyheads.cli.main import main as run_program

    run_program(signals)


if __name__ == "__main__":
    main()
