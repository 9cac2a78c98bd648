"""How much a store in memory holds."""

from collections.abc import Collection

from cragside.adapters.lightrag.ledger.entries import behind, json_of
from cragside.adapters.lightrag.ledger.memory.tables import MemoryTables, Version
from cragside.adapters.lightrag.storable import storable
from cragside.domain.indexing import DocumentKey, Stored


def stored_in(memory: MemoryTables, keys: Collection[DocumentKey] = ()) -> Stored:
    """How much a store holds, with the sizes of these documents."""
    kept = [version for version in memory.versions.values() if version.state != "gone"]
    current = {memory.origins.get(each.id, each.source.name): each for each in kept if each.state == "current"}
    sizes: dict[DocumentKey, int] = {}
    for key in keys:
        source = storable(key.source)
        own = current.get(behind(source, key.track)) if key.track else None
        known = own or current.get(source)
        if known and (not key.track or known.track in ((key.track,) if own else ("", key.track))):
            sizes[key] = _size(known)
    return Stored(len(current), sum(map(_size, kept)), sizes)


def _size(version: Version) -> int:
    source = version.source
    return max(source.size or 0, len(source.text)) + len(json_of(source.metadata))
