"""Turning text into vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """An embedding model."""

    @property
    def name(self) -> str:
        """Identifies the model; a store goes on with the one that built it."""

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None while the model has not been asked yet, which the first `embed` does."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (len(texts), dimensions). Raises `ServiceUnavailable("embedder", ...)`.

        No texts at all are a way to have the model loaded. Raises `ConfigurationError` when there is no host to ask.
        """
