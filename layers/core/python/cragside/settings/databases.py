"""The settings of databases."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from cragside.settings.values import Connections, DocStatusStorage, GraphStorage, KvStorage, VectorStorage


def secret_of(variable: str, what: str = "key") -> Any:
    """Return the field of a setting that names the secret to take in place of a variable."""
    description = (
        f"ARN of the secret or SSM parameter that is the {what}, in place of {variable}; see POSTGRES_URI_SECRET."
    )
    return Field(None, validation_alias=f"{variable}_SECRET", description=description)


class DatabaseSettings(BaseModel):
    """Settings of the databases that may keep knowledge in place of files."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, str_strip_whitespace=True, validate_default=True
    )

    postgres_uri: SecretStr | None = Field(
        None,
        validation_alias="POSTGRES_URI",
        description="PostgreSQL with pgvector, `postgresql://USER:PASSWORD@HOST:5432/DATABASE`: a store that "
        "several servers and workers share. `cragside migrate` sets it up. Unset: SQLite files below RAG_HOME.",
    )
    postgres_uri_secret: str | None = Field(
        None,
        validation_alias="POSTGRES_URI_SECRET",
        description="ARN of the AWS Secrets Manager secret, or of the SSM parameter, whose text is the address, in "
        "place of POSTGRES_URI, or JSON as RDS writes it. POSTGRES_URI without user and password then says what the "
        "JSON does not. It is read when the first connection is made, and again after five minutes or when a login is "
        "refused.",
    )
    postgres_connections: Connections | None = Field(
        None,
        ge=2,
        description="Most connections of each process to PostgreSQL. Requests beyond wait for one, up to 10 seconds. "
        "One workspace uses half of them at most, two at least. Unset: 10, and 2 on AWS Lambda.",
    )
    postgres_seconds: float | None = Field(
        None,
        gt=0,
        le=600,
        description="Seconds that a statement to PostgreSQL may take. Unset: 30, and 8 in the function that answers.",
    )
    neo4j_uri: SecretStr | None = Field(
        None,
        validation_alias="NEO4J_URI",
        description="Neo4j, `neo4j://HOST:7687`, or `neo4j+s://` for TLS. Workspaces made from then on have their "
        "graph there; everything else stays in PostgreSQL, so that POSTGRES_URI is needed too.",
    )
    neo4j_username: str | None = Field(None, validation_alias="NEO4J_USERNAME", description="The user of NEO4J_URI.")
    neo4j_password: SecretStr | None = Field(
        None, validation_alias="NEO4J_PASSWORD", description="The password of NEO4J_USERNAME."
    )
    neo4j_password_secret: str | None = secret_of("NEO4J_PASSWORD", "password")
    neo4j_database: str | None = Field(
        None,
        validation_alias="NEO4J_DATABASE",
        description="The database of NEO4J_URI, which has to exist. Unset: the user's own, usually `neo4j`.",
    )
    neo4j_connections: Connections | None = Field(
        None,
        description="Most connections of each process to Neo4j. Questions of one workspace use half of them at most. "
        "Unset: 10, and 2 on AWS Lambda.",
    )
    redis_uri: SecretStr | None = Field(
        None,
        validation_alias="REDIS_URI",
        description="Redis, `redis://USER:PASSWORD@HOST:6379/0`, or `rediss://` for TLS, for RAG_KV_STORAGE and "
        "RAG_DOC_STATUS_STORAGE. It has to keep what it has: no eviction of keys, an append-only file.",
    )
    redis_uri_secret: str | None = secret_of("REDIS_URI", "address")
    redis_connections: Connections | None = Field(
        None, description="Most connections of each process to Redis. Unset: 10, and 2 on AWS Lambda."
    )
    qdrant_url: SecretStr | None = Field(
        None,
        validation_alias="QDRANT_URL",
        description="Qdrant 1.16 or later, `https://HOST:6333`, for RAG_VECTOR_STORAGE.",
    )
    qdrant_api_key: SecretStr | None = Field(
        None, validation_alias="QDRANT_API_KEY", description="The API key of QDRANT_URL, which may write."
    )
    qdrant_api_key_secret: str | None = secret_of("QDRANT_API_KEY")
    qdrant_connections: Connections | None = Field(
        None, description="As RAG_POSTGRES_CONNECTIONS, of each process to Qdrant."
    )
    kv_storage: KvStorage | None = Field(
        None,
        description="LightRAG's class that stores passages by their ids and the answers of models. `RedisKVStorage` "
        "needs REDIS_URI. Unset: `PGKVStorage` with POSTGRES_URI, else `SqliteKVStorage`.",
    )
    vector_storage: VectorStorage | None = Field(
        None,
        description="LightRAG's class that stores vectors. `QdrantVectorDBStorage` needs QDRANT_URL. Unset: "
        "`PGVectorStorage` with POSTGRES_URI, else `SqliteVectorStorage`.",
    )
    graph_storage: GraphStorage | None = Field(
        None,
        description="LightRAG's class that stores the graph. `PGGraphStorage` needs the extension AGE in PostgreSQL. "
        "Unset: `Neo4JStorage` with NEO4J_URI, `PGTableGraphStorage` with POSTGRES_URI alone, else "
        "`SqliteGraphStorage`. A workspace opens only with the "
        "storages that it was built with; `cragside reindex` builds it anew with those that are set.",
    )
    doc_status_storage: DocStatusStorage | None = Field(
        None,
        description="LightRAG's class that stores the states of documents, which LightRAG's server lists. "
        "`RedisDocStatusStorage` needs REDIS_URI. Unset: `PGDocStatusStorage` with POSTGRES_URI, else "
        "`SqliteDocStatusStorage`.",
    )

    @property
    def on_postgres(self) -> bool:
        """Tell if the store is in PostgreSQL."""
        return bool(self.postgres_uri or self.postgres_uri_secret)

    @property
    def on_redis(self) -> bool:
        """Tell if there is a Redis."""
        return bool(self.redis_uri or self.redis_uri_secret)

    @property
    def storages(self) -> dict[str, str | None]:
        """Return the chosen classes of LightRAG's storages by their roles, None where none is chosen."""
        return {role: getattr(self, f"{role}_storage") for role in ("kv", "vector", "graph", "doc_status")}
