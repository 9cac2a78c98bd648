"""LightRAG's own server with its vectors in what stands in for Qdrant."""

from importlib.metadata import version

from tests.services import tools
from tests.services.lightrag_server import LightRagServer

_WITH = ("asyncpg", "pgvector", "qdrant-client")


class LightRagOnQdrant(LightRagServer):
    """A server on the workspace of a database and of a Qdrant. `models` is the address of an API in OpenAI's form."""

    def __init__(self, database: str, workspace: str, models: str, embedding: tuple[str, int], qdrant: str) -> None:
        super().__init__(database, workspace, models, embedding)
        self._qdrant = qdrant

    def command(self) -> list[str]:
        """The program, in an environment with Qdrant's client."""
        folder = tools.cache("lightrag-server-qdrant")
        wanted = [f"lightrag-hku[api]=={version('lightrag-hku')}", *(f"{name}=={version(name)}" for name in _WITH)]
        with tools.exclusive(folder):
            return [str(tools.environment(folder, wanted).with_name("lightrag-server"))]

    def environment(self) -> dict[str, str]:
        """Its settings."""
        return super().environment() | {"LIGHTRAG_VECTOR_STORAGE": "QdrantVectorDBStorage", "QDRANT_URL": self._qdrant}
