"""LightRAG's storages by the names of its classes: which there are, and what each needs."""

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

KvStorage = Literal["PGKVStorage", "RedisKVStorage", "SqliteKVStorage"]
VectorStorage = Literal["PGVectorStorage", "QdrantVectorDBStorage", "SqliteVectorStorage"]
GraphStorage = Literal["PGTableGraphStorage", "PGGraphStorage", "Neo4JStorage", "SqliteGraphStorage"]
DocStatusStorage = Literal["PGDocStatusStorage", "RedisDocStatusStorage", "SqliteDocStatusStorage"]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "kv_storage": get_args(KvStorage),
    "vector_storage": get_args(VectorStorage),
    "graph_storage": get_args(GraphStorage),
    "doc_status_storage": get_args(DocStatusStorage),
}
# The settings that a storage needs, by the beginning of its name. The first one is what it is in.
_NEEDS = {
    "PG": ("POSTGRES_URI",),
    "Neo4J": ("NEO4J_URI", "POSTGRES_URI"),
    "Qdrant": ("QDRANT_URL", "POSTGRES_URI"),
    "Redis": ("REDIS_URI", "POSTGRES_URI"),
}
_EMBEDDED = "Sqlite"


def unknown(field: str, *, in_files: bool) -> str:
    """What is wrong with a storage of another name. Those that fit the store are offered."""
    fitting = [name for name in _NAMES[field] if name.startswith(_EMBEDDED) == in_files]
    others = "; others need POSTGRES_URI" if in_files else ""
    return f"there is no storage of this name. Unset it, or choose {' or '.join(fitting)}{others}."


def conflicts(chosen: Mapping[str, str | None], given: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
    """The storages that cannot be: the variable, and what to do.

    `chosen` has the storages by their roles, `given` whether the addresses of servers are set, by their
    variables.
    """
    for role, name in chosen.items():
        if name is None:
            continue
        variable = f"RAG_{role.upper()}_STORAGE"
        for needed in next((needs for kind, needs in _NEEDS.items() if name.startswith(kind)), ()):
            if not given[needed]:
                yield variable, f"{variable} is {name}, which needs {needed}. Set {needed}, or unset {variable}."
        if name.startswith(_EMBEDDED) and given["POSTGRES_URI"]:
            yield variable, f"{variable} is {name}, but POSTGRES_URI is set. Unset one of them."
