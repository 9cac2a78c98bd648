"""The console script. It imports almost nothing first, so that it can handle an early Ctrl-C."""

import sys


def main(*, complete: bool = False) -> None:
    """Run `cragside` and exit with its code. With `complete`, the environment holds all settings."""
    try:
        from cragside.entrypoints.cli.app import app
        from cragside.entrypoints.cli.session import Session

        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows a question mark instead of ending the command.
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        app(obj=Session(complete=complete))
    except KeyboardInterrupt:
        sys.exit(130)
