"""Import a library without packages that it loads and cragside does not need."""

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Find = Callable[[str, Sequence[str] | None, ModuleType | None], ModuleSpec | None]


class _Finder(MetaPathFinder):
    """Finds or hides packages for the thread that loads a library. Others may import them at the same time."""

    def __init__(self, library: str, without: Collection[str], find: Find | None) -> None:
        self._library = library
        self._without = without
        self._find = find
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what `find` returns. Raises `ModuleNotFoundError` for a hidden package."""
        if threading.get_ident() != self._thread:
            return None
        if fullname in self._without:
            raise ModuleNotFoundError(f"{fullname} is not loaded with {self._library}", name=fullname)
        return self._find(fullname, path, target) if self._find else None


@contextmanager
def loading(library: str, *, without: Collection[str], find: Find | None = None) -> Iterator[None]:
    """Hide packages `without` which the library does in this block, and let `find` look for the others first."""
    finder = _Finder(library, without, find)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
