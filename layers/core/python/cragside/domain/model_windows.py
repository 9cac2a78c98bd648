"""The context windows of models that are loaded once and stay: Ollama loads a model anew for another `num_ctx`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MOST_MODELS = 64
# What Ollama adds to a name that lacks it.
_USUAL_PLACE = re.compile(r"(?:https?://)?(?:registry\.ollama\.ai/)?(?:library/)?", re.IGNORECASE)

_brought: ContextVar[tuple[str, int] | None] = ContextVar("brought", default=None)


def spelt_alike(model: str) -> str:
    """The same text for every spelling of a model's name: `Qwen:7B`, `library/qwen:7b`; `latest` is the usual tag."""
    name = _USUAL_PLACE.sub("", model.strip(), count=1).lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


class ModelWindows:
    """The windows, in tokens, that prompts have needed. Later requests that fit keep them."""

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Tell if there is any."""
        return bool(self._kept)

    def kept(self, model: str) -> int | None:
        """The window that a model keeps."""
        return self._kept.get(spelt_alike(model))

    def keep(self, model: str, tokens: int) -> None:
        """Have a model keep a window, or the larger one that it has."""
        name = spelt_alike(model)
        self._kept[name] = max(tokens, self._kept.pop(name, 0))
        if len(self._kept) > _MOST_MODELS:
            del self._kept[next(iter(self._kept))]

    def forget(self, model: str) -> None:
        """Have a model keep no window."""
        self._kept.pop(spelt_alike(model), None)


@contextmanager
def brought(model: str, tokens: int) -> Iterator[None]:
    """Answer a request that brings a window along: what its model is asked meanwhile has the same one."""
    before = _brought.set((spelt_alike(model), tokens))
    try:
        yield
    finally:
        _brought.reset(before)


def window_brought(model: str) -> int | None:
    """The window that the request brings for a model."""
    found = _brought.get()
    return found[1] if found and found[0] == spelt_alike(model) else None
