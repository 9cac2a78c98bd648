"""cragside gives any Ollama prompt the evidence it needs: graded, cited, corrective RAG.

These names are the public Python API; everything else is private. They are loaded at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cragside.domain.errors import CragsideError
    from cragside.domain.evidence import Document
    from cragside.entrypoints.python_api import Cragside

__version__ = "0.1.0"
__all__ = ["Cragside", "CragsideError", "Document", "__version__"]

_MODULES = {
    "Cragside": "cragside.entrypoints.python_api",
    "CragsideError": "cragside.domain.errors",
    "Document": "cragside.domain.evidence",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
