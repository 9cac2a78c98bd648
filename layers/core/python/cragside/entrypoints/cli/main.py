"""The console script. It imports almost nothing first, so that it can handle an early Ctrl-C."""

import sys


def main() -> None:
    """Run `cragside` and exit with its code."""
    try:
        from cragside.entrypoints.cli.app import app

        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows a question mark instead of ending the command.
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        app()
    except KeyboardInterrupt:
        sys.exit(130)
