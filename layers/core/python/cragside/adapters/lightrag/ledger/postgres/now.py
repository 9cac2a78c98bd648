"""What a workspace's store is now, as a part that any statement may join."""

from collections.abc import Mapping
from typing import Any

from cragside.adapters.lightrag.ledger.interface import Since

NOW = "SELECT id, state, embedding_model FROM crag.store WHERE workspace = {workspace}"


def since(row: Mapping[str, Any] | None) -> Since:
    """The row of `NOW`, or None for no row: then the workspace has no store."""
    if row is None:
        return Since("", None, "")
    return Since(f"{row['id']}-{row['state']}", row["embedding_model"], str(row["id"]))
