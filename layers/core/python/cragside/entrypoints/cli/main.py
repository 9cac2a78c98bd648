"""Starts the command line. It imports almost nothing at first, so that an early Ctrl-C is handled."""

import gc
import os
import sys

# Objects that may be made between two searches for garbage. With Python's 700, it is searched for all the time: while
# the libraries are imported, and with many requests under way.
_ALLOCATIONS = 10_000


def main(*, complete: bool = False) -> None:
    """Run `cragside` and exit with its code. With `complete`, the environment holds all settings."""
    gc.set_threshold(_ALLOCATIONS)
    # To start a thread for each core takes numpy a tenth of a second of CPU, more than most commands compute with it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # httpx has a command line of its own, which imports click, Pygments and all of rich. It does without.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    try:
        from cragside.entrypoints.cli.app import app
        from cragside.entrypoints.cli.session import Session

        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows a question mark instead of ending the command.
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        app(obj=Session(complete=complete))
    except KeyboardInterrupt:
        sys.exit(130)
