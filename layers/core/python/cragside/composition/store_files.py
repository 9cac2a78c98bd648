"""What can be said and done about a store's files without opening it."""

from dataclasses import replace
from pathlib import Path

from cragside.adapters.lightrag.files.baking import Baking
from cragside.adapters.lightrag.files.manifest import damage_of, is_baked, misplaced, read_manifest
from cragside.adapters.sqlite_failures import is_damage
from cragside.domain.document import SourceText

__all__ = ["Baking", "damage_in", "is_baked", "is_damage", "misplaced", "stored_digest"]


def damage_in(home: Path) -> str:
    """What differs from the manifest of a baked store, by hash; "" for nothing, and where there is no baked store."""
    found = read_manifest(home)
    return "" if found is None else damage_of(home, found[0], hashes=True)


def stored_digest(text: SourceText) -> str:
    """The `content_hash` that a store gives to a text."""
    from cragside.adapters.lightrag.chunking import storable
    from cragside.adapters.lightrag.indexing.versions import digest_of

    return digest_of(replace(text, text=storable(text.text)))
