"""A place of workspaces that a command names: files, or a database."""

from typing import TYPE_CHECKING

from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli.session import place_of

if TYPE_CHECKING:
    from cragside.entrypoints.cli.session import Session
    from cragside.settings import Settings

_PLACES = ("POSTGRES_URI", "NEO4J_URI", "QDRANT_URL", "REDIS_URI", "RAG_HOME", "RAG_HOME_SHA256")
# They choose parts of the place that is configured.
_STORAGES = ("RAG_KV_STORAGE", "RAG_VECTOR_STORAGE", "RAG_GRAPH_STORAGE", "RAG_DOC_STATUS_STORAGE")


def settings_of(session: "Session", place: str, option: str) -> "Settings":
    """The settings with this place for the workspaces. Raises `ConfigurationError` and `ValidationError`."""
    here = session.settings()
    if not place:
        return here
    there = _settings_of(session, place, option)
    # RAG_QUEUE_URL is the queue of the place that is configured. Another one has its own.
    return there if place_of(there) == place_of(here) else there.model_copy(update={"queue_url": None})


def _settings_of(session: "Session", place: str, option: str) -> "Settings":
    from cragside.settings import load_settings

    values = dict(session.given().values)
    if place.isidentifier() and place.isupper():
        named = place
        place = values.get(named) or session.environment.get(named, "")
        if not place:
            raise ValidationError(f"{option} names the variable {named}, which is not set. Set it, or name a folder.")
    if place.startswith(("postgresql://", "postgres://")):
        kept = {
            name: value for name, value in values.items() if name not in _STORAGES or not value.startswith("Sqlite")
        }
        return load_settings({**kept, "POSTGRES_URI": place})
    for name in (*_PLACES, *_STORAGES):
        values.pop(name, None)
    if "://" in place and not place.startswith("s3://"):
        raise ValidationError(f"{option} is no place: name a folder or a postgresql:// address.")
    pinned = session.given().values.get("RAG_HOME_SHA256")
    if place == session.given().values.get("RAG_HOME") and pinned:
        values["RAG_HOME_SHA256"] = pinned
    return load_settings({**values, "RAG_HOME": place})
