"""How much a workspace stores, for limits, without opening it."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from cragside.adapters.lightrag.ledger.documents import OF_SOURCE
from cragside.adapters.lightrag.ledger.entries import behind
from cragside.adapters.lightrag.ledger.sql_rows import DOCUMENT
from cragside.adapters.lightrag.storable import storable
from cragside.domain.indexing import DocumentKey, Stored

# Reads all rows of a statement.
Read = Callable[..., Awaitable[list[Any]]]

_SIZE = "greatest(size, characters) + length(metadata)"
_STORED = f"""SELECT count(*) FILTER (WHERE state = 'current'), coalesce(sum({_SIZE}), 0)::bigint
    FROM crag.document WHERE store = $1 AND state <> 'gone'"""
_SIZES = f"""SELECT {_SIZE}, track FROM {DOCUMENT}
    WHERE document.store = $1 AND state = 'current' AND {OF_SOURCE}"""


async def stored_of(read: Read, keys: Collection[DocumentKey]) -> Stored:
    """What `Ledger.stored` says, but for what waits for other databases."""
    ((documents, total),) = await read(_STORED)
    sizes = {key: size for key in keys if (size := await _size_of(read, key)) is not None}
    return Stored(documents, total, sizes)


async def _size_of(read: Read, key: DocumentKey) -> int | None:
    """The bytes of the document that `Library.accept` would replace. None if it would make a new one, or in doubt."""
    source, track = storable(key.source), key.track
    if track and (own := await read(_SIZES, behind(source, track))):
        found, tracks = own, {track}
    else:
        found, tracks = await read(_SIZES, source), {"", track}
    fits = not track or all(each in tracks for _, each in found)
    return min(int(size) for size, _ in found) if found and fits else None
