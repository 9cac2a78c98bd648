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
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (len(texts), dimensions). Raises `ServiceUnavailable("embedder", ...)`."""
        ...
