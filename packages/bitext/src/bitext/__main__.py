"""The program `bitext`, also `python -m bitext`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without click, say how to install it."""
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit('error: the command needs the extra cli. Install it with: pip install "bitext[cli]"')
    from bitext.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
