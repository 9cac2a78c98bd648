"""Checks and bakes the files of a store without opening it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cragside.adapters.lightrag.files.baking import Baking
from cragside.adapters.lightrag.files.manifest import damage_of, is_baked, misplaced, read_manifest
from cragside.adapters.sqlite_files import is_damage
from cragside.domain.errors import ServiceUnavailable
from cragside.settings import Settings

__all__ = ["baking", "damage_in", "is_baked", "may_be_damaged", "misplaced"]


def damage_in(home: Path) -> str:
    """The differences from a baked store's manifest, by hash. "" if there are none, or no baked store."""
    found = read_manifest(home)
    return "" if found is None else damage_of(home, found[0], hashes=True)


def may_be_damaged(error: Exception) -> bool:
    """Whether the store itself failed, and not its place or its model."""
    if isinstance(error, ServiceUnavailable):
        return error.component == "knowledge_base" and (error.__cause__ is None or is_damage(error.__cause__))
    return is_damage(error)


@contextmanager
def baking(settings: Settings, out: Path) -> Iterator[tuple[Settings, Baking]]:
    """Settings that index into a new store with the embedded models, and the `Baking` that publishes it as `out`."""
    with Baking.into(out) as baked:
        changed = {
            "ollama_base_url": None,
            "model_host": None,
            "searxng_host": None,
            "chat_model": "embedded",
            "embedding_model": "embedded",
        }
        yield settings.in_files(baked.home).model_copy(update=changed), baked
