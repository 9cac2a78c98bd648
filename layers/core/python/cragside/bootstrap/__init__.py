"""The composition root: the only package that chooses adapters for the ports.

Importing it is cheap, and a new container has opened nothing: each member imports its adapter when it is built.
"""

from importlib import import_module

from cragside.bootstrap.container import Container
from cragside.settings import Settings

__all__ = ["Container", "preload"]


def preload(settings: Settings) -> None:
    """Load what requests will need, for processes that are forked afterwards to share."""
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder
    from cragside.adapters.embedded.grader import packaged_weights

    modules = ["cragside.adapters.lightrag.repository", "cragside.crag.graph"]
    for module in [*modules, "langchain_ollama"] if settings.ollama_base_url else modules:
        import_module(module)
    WordLlamaEmbedder.load()
    packaged_weights()
