"""LightRAG's own server with its values and its list of documents in Redis."""

from importlib.metadata import version

from tests.services import tools
from tests.services.lightrag_server import LightRagServer

_WITH = ("asyncpg", "pgvector", "redis")


class LightRagOnRedis(LightRagServer):
    """A server on the workspace of a database and of a Redis. `models` is the address of an API in OpenAI's form."""

    def __init__(self, database: str, workspace: str, models: str, embedding: tuple[str, int], redis: str) -> None:
        super().__init__(database, workspace, models, embedding)
        self._redis = redis

    def command(self) -> list[str]:
        """The program, in an environment with Redis' driver."""
        folder = tools.cache("lightrag-server-redis")
        wanted = [f"lightrag-hku[api]=={version('lightrag-hku')}", *(f"{name}=={version(name)}" for name in _WITH)]
        with tools.exclusive(folder):
            return [str(tools.environment(folder, wanted).with_name("lightrag-server"))]

    def environment(self) -> dict[str, str]:
        """Its settings."""
        return super().environment() | {
            "LIGHTRAG_KV_STORAGE": "RedisKVStorage",
            "LIGHTRAG_DOC_STATUS_STORAGE": "RedisDocStatusStorage",
            "REDIS_URI": self._redis,
        }
