"""Import the parts of LangGraph that cragside uses. The corrective graph imports them from here.

LangGraph and LangSmith each need one small module of a large package. Python runs such a package first, which loads
clients of servers that cragside never asks. Here these packages run once somebody asks them for a name, as their own
clients do: then they are as complete as ever.

Left out are the packages that LangSmith's client takes in place of httpx where they are installed: aiohttp and httpx2
take longer to load than the rest of LangSmith. Other code of the process can still import them.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from cragside.store.imports import loading

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


def _later(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    """Return the package's own specification, with a loader that waits."""
    if name not in _LATER:
        return None
    spec = PathFinder.find_spec(name, path, target)
    if spec is not None and spec.loader is not None:
        spec.loader = _Later(spec.loader)
    return spec


try:
    with loading("LangGraph", without=_UNUSED, find=_later):
        import langsmith.run_helpers  # noqa: F401 - LangChain imports it when a graph runs
        from langgraph.graph import END, START, StateGraph
        from langgraph.runtime import Runtime
finally:
    # Whoever imports these by name runs them then, under Python's own locks.
    for _name in _LATER & sys.modules.keys():
        _above, _, _below = _name.rpartition(".")
        if _above:
            vars(sys.modules[_above]).pop(_below, None)
        del sys.modules[_name]

__all__ = ["END", "START", "Runtime", "StateGraph"]
