"""Loads LightRAG's modules without what a `.env` of the working directory says.

They put it into the environment, where it would reach every library and child process. cragside reads its settings
itself, and checks whose file it is.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# python-dotenv's own switch.
_NO_DOTENV = "PYTHON_DOTENV_DISABLED"


@contextmanager
def without_dotenv() -> Iterator[None]:
    """Have modules that are imported in this block read no `.env`."""
    before = os.environ.get(_NO_DOTENV)
    os.environ[_NO_DOTENV] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_DOTENV]
        else:
            os.environ[_NO_DOTENV] = before
