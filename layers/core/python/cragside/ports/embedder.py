"""Embeds texts."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Embeds texts with one model."""

    @property
    def name(self) -> str:
        """Identifies the model. A store keeps using the one that built it."""

    @property
    def dimensions(self) -> int | None:
        """Return the length of a vector; None until the first `embed` asks the model."""

    @property
    def in_process(self) -> bool:
        """Tell if the model runs in this process, where a page of text takes milliseconds."""
        return False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (len(texts), dimensions). Raises `ServiceUnavailable("embedder", ...)`.

        Without texts, it only loads the model. Raises `ConfigurationError` if no host is configured.
        """
