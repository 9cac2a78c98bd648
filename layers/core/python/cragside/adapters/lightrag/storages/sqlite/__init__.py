"""LightRAG's four storages on one SQLite file a workspace.

LightRAG's own file storages rewrite whole JSON files, scan lists for each lookup and load everything at start. These
keep a query's cost nearly flat as the store grows, survive a kill in mid-write, and can be read while another process
writes.
"""

from lightrag.kg import STORAGE_ENV_REQUIREMENTS, STORAGE_IMPLEMENTATIONS, STORAGES

_STORAGES = {
    "SqliteKVStorage": ("KV_STORAGE", "kv"),
    "SqliteVectorStorage": ("VECTOR_STORAGE", "vectors"),
    "SqliteGraphStorage": ("GRAPH_STORAGE", "graph"),
    "SqliteDocStatusStorage": ("DOC_STATUS_STORAGE", "doc_status"),
}


def register() -> None:
    """Make the storages known to LightRAG under their class names; calling it again changes nothing."""
    for name, (role, module) in _STORAGES.items():
        STORAGES[name] = f"{__name__}.{module}"
        STORAGE_ENV_REQUIREMENTS[name] = []
        if name not in STORAGE_IMPLEMENTATIONS[role]["implementations"]:
            STORAGE_IMPLEMENTATIONS[role]["implementations"].append(name)
