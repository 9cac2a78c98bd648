"""What LightRAG's base classes ask for and nothing here calls."""

from typing import Any


async def unused(*_: object, **__: object) -> Any:
    """Raises `NotImplementedError`: documents and graph are written by the ledger, and browsed by `GraphReader`."""
    raise NotImplementedError("The ledger writes what this storage of LightRAG reads.")
