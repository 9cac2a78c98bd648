"""Import the parts of LangGraph that cragside uses. The corrective graph imports them from here.

LangGraph and LangSmith each need one small module of a large package. Python runs such a package first, which loads
clients of servers that cragside never asks. Here these packages run once somebody asks them for a name, as their own
clients do: then they are as complete as ever.

Left out are the packages that LangSmith's client takes in place of httpx where they are installed: aiohttp and httpx2
take longer to load than the rest of LangSmith. Other code of the process can still import them.
"""

import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_LATER = {"langgraph_sdk", "langsmith.types"}
_UNUSED = {"httpx_aiohttp", "httpx2"}


class _Later(Loader):
    """Makes a package without running it."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a package that runs later."""
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the package runs once it is asked for a name."""


class _Finder(MetaPathFinder):
    """Finds or hides packages for the thread that loads LangGraph. Others may import them at the same time."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Return the package's own specification, with a loader that waits. Raises `ModuleNotFoundError`."""
        if threading.get_ident() != self._thread:
            return None
        if fullname in _UNUSED:
            raise ModuleNotFoundError(f"{fullname} is not loaded with LangGraph", name=fullname)
        if fullname not in _LATER:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)
        return spec


_finder = _Finder()
sys.meta_path.insert(0, _finder)
try:
    import langsmith.run_helpers  # noqa: F401 - LangChain imports it when a graph runs
    from langgraph.graph import END, START, StateGraph
    from langgraph.runtime import Runtime
finally:
    sys.meta_path.remove(_finder)
    # Whoever imports these by name runs them then, under Python's own locks.
    for _name in _LATER & sys.modules.keys():
        _above, _, _below = _name.rpartition(".")
        if _above:
            vars(sys.modules[_above]).pop(_below, None)
        del sys.modules[_name]

__all__ = ["END", "START", "Runtime", "StateGraph"]
