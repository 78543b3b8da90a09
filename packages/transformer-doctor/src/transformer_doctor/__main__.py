"""The program `transformer-doctor`, also `python -m transformer_doctor`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without click, say how to install it."""
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit('error: the command needs the extra cli. Install it with: pip install "transformer-doctor[cli]"')
    if sys.argv[1:2] == ["scan"]:
        from transformer_doctor.scan import scan

        scan(sys.argv[2:], prog_name="transformer-doctor scan")
    from transformer_doctor.command import transformer_doctor

    transformer_doctor(prog_name="transformer-doctor")


if __name__ == "__main__":
    main()
