"""LightRAG's own server from its package, on PostgreSQL and Neo4j, on a free loopback port."""

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tests.services import tools
from tests.services.server import Server

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j

_WITH = ("asyncpg", "pgvector", "neo4j")
# Only for the tables inside: LightRAG's tokenizer would download them otherwise.
_TABLES = "litellm==1.106.2"
_STORAGES = {
    "LIGHTRAG_KV_STORAGE": "PGKVStorage",
    "LIGHTRAG_VECTOR_STORAGE": "PGVectorStorage",
    "LIGHTRAG_GRAPH_STORAGE": "PGTableGraphStorage",
    "LIGHTRAG_DOC_STATUS_STORAGE": "PGDocStatusStorage",
}


class LightRagServer(Server):
    """A server on the workspace of a database. `models` is the address of an API in OpenAI's form.

    With `graphs`, the graph is in that Neo4j.
    """

    def __init__(
        self, database: str, workspace: str, models: str, embedding: tuple[str, int], graphs: "Neo4j | None" = None
    ) -> None:
        super().__init__("lightrag-server", "/health")
        self._database = urlsplit(database)
        self._workspace = workspace
        self._models = models
        self._embedding = embedding
        self._graphs = graphs

    def version(self) -> str:
        """The version of cragside's own LightRAG."""
        return f"lightrag-server {version('lightrag-hku')}"

    def command(self) -> list[str]:
        """The program."""
        return [str(_python().with_name("lightrag-server"))]

    def environment(self) -> dict[str, str]:
        """Its settings."""
        database, (model, dimensions) = self._database, self._embedding
        return super().environment() | {
            **_STORAGES,
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "WORKING_DIR": str(self.home),
            "INPUT_DIR": str(self.home / "inputs"),
            "LOG_DIR": str(self.home),
            "WORKSPACE": self._workspace,
            "POSTGRES_HOST": database.hostname or "",
            "POSTGRES_PORT": str(database.port),
            "POSTGRES_USER": unquote(database.username or ""),
            "POSTGRES_PASSWORD": unquote(database.password or ""),
            "POSTGRES_DATABASE": database.path.removeprefix("/"),
            # A role called cragside would otherwise make tables of its own beside the ledger's.
            "POSTGRES_SERVER_SETTINGS": "search_path=public",
            "LLM_BINDING": "openai",
            "LLM_BINDING_HOST": self._models,
            "LLM_BINDING_API_KEY": "none",
            "LLM_MODEL": "none",
            "EMBEDDING_BINDING": "openai",
            "EMBEDDING_BINDING_HOST": self._models,
            "EMBEDDING_BINDING_API_KEY": "none",
            "EMBEDDING_MODEL": model,
            "EMBEDDING_DIM": str(dimensions),
            "RERANK_BINDING": "null",
            "TIKTOKEN_CACHE_DIR": str(_tables()),
            **self._neo4j(),
        }

    def _neo4j(self) -> dict[str, str]:
        if self._graphs is None:
            return {}
        user, password = self._graphs.auth
        return {
            "LIGHTRAG_GRAPH_STORAGE": "Neo4JStorage",
            "NEO4J_URI": self._graphs.address,
            "NEO4J_USERNAME": user,
            "NEO4J_PASSWORD": password,
            "NEO4J_DATABASE": "neo4j",
        }


def _python() -> Path:
    folder = tools.cache("lightrag-server")
    wanted = [f"lightrag-hku[api]=={version('lightrag-hku')}", *(f"{name}=={version(name)}" for name in _WITH)]
    with tools.exclusive(folder):
        return tools.environment(folder, wanted)


def _tables() -> Path:
    """The folder of the tokenizer's tables."""
    python, folder = _python(), tools.cache("lightrag-server")
    inside = "litellm/litellm_core_utils/tokenizers"
    with tools.exclusive(folder):
        if not list(folder.glob(f"venv/lib/*/site-packages/{inside}")):
            tools.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", _TABLES])
    return next(folder.glob(f"venv/lib/*/site-packages/{inside}"))
