"""An embedding model that is down."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cragside.domain.errors import ServiceUnavailable
from cragside.store.embeddings import CachedEmbedder


@contextmanager
def embedding_outage() -> Iterator[None]:
    """In this block, no question gets a vector, whatever the model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CachedEmbedder, "embed_in_time", _down)
        yield


async def _down(*_: object) -> None:
    raise ServiceUnavailable("embedder", "down")
