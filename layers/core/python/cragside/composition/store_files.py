"""What can be said and done about a store's files without opening it."""

from pathlib import Path

from cragside.adapters.lightrag.manifest import damage_of, is_baked, misplaced, read_manifest
from cragside.adapters.sqlite_failures import is_damage, unusable

__all__ = ["damage_in", "is_baked", "is_damage", "misplaced", "unusable"]


def damage_in(home: Path) -> str:
    """What differs from the manifest of a baked store, by hash; "" for nothing, and where there is no baked store."""
    found = read_manifest(home)
    return "" if found is None else damage_of(home, found[0], hashes=True)
