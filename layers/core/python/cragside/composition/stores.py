"""The storage: workspaces, tasks, preferences and uploads, in a folder, in databases or at AWS."""

import tempfile
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.application.preferences import PreferenceStore, WorkspacePreferences
from cragside.composition.databases import (
    configured,
    neo4j_address,
    postgres_address,
    qdrant_address,
    redis_address,
    usual_connections,
    usual_seconds,
)
from cragside.composition.models import Models
from cragside.domain.errors import ConfigurationError
from cragside.domain.names import owner_of
from cragside.domain.preferences import CHANGEABLE, Preferences
from cragside.ports.files import ObjectStore, UploadStore
from cragside.ports.task_messages import TaskMessages
from cragside.ports.telemetry import DatabaseFigures
from cragside.settings import BucketAddress

if TYPE_CHECKING:
    from cragside.adapters.local.conversations import Conversations
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.databases.redis import RedisDatabase
    from cragside.ports.rag_repository import RagRepository
    from cragside.store.backends.interface import Backend
    from cragside.store.open_store import StoreAccess
    from cragside.store.outside.neo4j import Neo4jGraphs
    from cragside.store.outside.qdrant import QdrantVectors
    from cragside.store.outside.redis import RedisTarget
    from cragside.store.queues.sql import TaskQueue
    from cragside.store.spare_room import SpareRoom
    from cragside.store.workspaces import Workspaces

# Of a request's time: a question waits no longer for its vector. Retrieval then has as much again to search by words.
_QUESTION_SHARE = 0.2


class Stores(Models):
    """The members that store something."""

    @cached_property
    def object_store(self) -> ObjectStore | None:
        """Has the files of a baked store, None when RAG_HOME is a folder."""
        if not isinstance(self.settings.home, BucketAddress):
            return None
        from cragside.adapters.aws.s3 import S3ObjectStore

        objects = S3ObjectStore(self.settings.home.bucket, self.settings.home.prefix)
        return self._connected(objects, objects.disconnect)

    @cached_property
    def upload_store(self) -> UploadStore | None:
        """The bucket for large files, None when none is configured."""
        if self.settings.uploads is None:
            return None
        from cragside.adapters.aws.s3 import S3UploadStore

        uploads = S3UploadStore(self.settings.uploads.bucket, self.settings.uploads.prefix)
        return self._connected(uploads, uploads.disconnect)

    @cached_property
    def preference_store(self) -> PreferenceStore:
        """Stores the preferences of workspaces."""
        if self.database is not None:
            from cragside.adapters.postgres_preferences import PostgresPreferences

            return PostgresPreferences(self.database, clock=self.clock)
        from cragside.adapters.local.preferences import NoPreferences, PreferenceFile

        return PreferenceFile(self.folder) if self._writable() else NoPreferences()

    @cached_property
    def conversations(self) -> "Conversations | None":
        """The last conversation with each workspace, None where nothing can be written."""
        from cragside.adapters.local.conversations import Conversations

        return Conversations(self.folder) if self._writable() else None

    @cached_property
    def spare_room(self) -> "SpareRoom | None":
        """The room on the disk that is kept for deletions, None where RAG_HOME has no store that is written."""
        from cragside.store.spare_room import SpareRoom

        return SpareRoom(self.folder) if self._writable() and not self.settings.on_postgres else None

    @cached_property
    def preferences(self) -> WorkspacePreferences:
        """The preferences of workspaces: settings that can change while the service runs."""
        defaults = Preferences(**{name: getattr(self.settings, name) for name in CHANGEABLE})
        return WorkspacePreferences(defaults, self.preference_store)

    @cached_property
    def figures(self) -> DatabaseFigures | None:
        """Counts the use of databases, None where no server exports the figures."""
        return None

    @cached_property
    def database(self) -> "PostgresDatabase | None":
        """The database that several processes share, None when none is configured."""
        settings = self.settings
        if not settings.on_postgres:
            return None
        if not self._writable():
            raise ConfigurationError(
                f"POSTGRES_URI is set, but RAG_HOME is the baked store {settings.home}. Unset one of them.",
                variable="POSTGRES_URI",
            )
        with configured("POSTGRES_URI"):
            address = self._secret("postgres_uri", partial(postgres_address, settings)) or postgres_address(settings)
            from cragside.databases.postgres.database import PostgresDatabase
        most = settings.postgres_connections or usual_connections()
        seconds = settings.postgres_seconds or usual_seconds()
        database = PostgresDatabase(address, most=most, statement_seconds=seconds, figures=self.figures)
        return self._connected(database, database.close)

    @cached_property
    def graphs(self) -> "Neo4jGraphs | None":
        """Neo4j, which has the graphs of workspaces, None when none is configured."""
        settings = self.settings
        if settings.neo4j_uri is None:
            return None
        with configured("NEO4J_URI"):
            address = neo4j_address(settings)
            from cragside.databases.neo4j import Neo4jDatabase
            from cragside.store.outside.neo4j import Neo4jGraphs
        passwords, most = self._secret("neo4j_password", str), settings.neo4j_connections or usual_connections()
        database = Neo4jDatabase(address, most=most, passwords=passwords, figures=self.figures, clock=self.clock)
        graphs = Neo4jGraphs(database)
        return self._connected(graphs, graphs.close)

    @cached_property
    def redis(self) -> "RedisDatabase | None":
        """Redis, which may have values and the list of documents, None when none is configured."""
        settings = self.settings
        if not settings.on_redis:
            return None
        with configured("REDIS_URI"):
            address = self._secret("redis_uri", partial(redis_address, settings)) or redis_address(settings)
            from cragside.databases.redis import RedisDatabase
        most = settings.redis_connections or usual_connections()
        database = RedisDatabase(address, most=most, figures=self.figures, clock=self.clock)
        return self._connected(database, database.close)

    @cached_property
    def vectors(self) -> "QdrantVectors | None":
        """Qdrant, which may have LightRAG's vectors, None when none is configured."""
        settings = self.settings
        if settings.qdrant_url is None:
            return None
        with configured("QDRANT_URL"):
            address = qdrant_address(settings)
            from cragside.databases.qdrant import QdrantDatabase
            from cragside.store.outside.qdrant import QdrantVectors
        keys = self._secret("qdrant_api_key", lambda key: qdrant_address(settings, key).api_key)
        most = settings.qdrant_connections or usual_connections()
        database = QdrantDatabase(address, most=most, keys=keys, figures=self.figures, clock=self.clock)
        vectors = QdrantVectors(database)
        return self._connected(vectors, vectors.close)

    def load_drivers(self) -> None:
        """Import what connects to databases: that can take seconds. Wrong settings are told when they are used."""
        for name in ("database", "graphs", "vectors", "redis"):
            with suppress(ConfigurationError):
                getattr(self, name)

    @cached_property
    def backend(self) -> "Backend":
        """Stores the knowledge bases: in PostgreSQL if it is configured, else in SQLite files in RAG_HOME."""
        if self.database is not None:
            from cragside.store.backends.postgres import DEFAULTS, NEO4J_STORAGE, PostgresBackend

            usual = DEFAULTS if self.graphs is None else {**DEFAULTS, "graph": NEO4J_STORAGE}
            chosen = self.settings.storages
            names = {role: chosen[role] or name for role, name in usual.items()}
            backend = PostgresBackend(self.database, names, self._outside())
            return self._closed(backend, backend.finish)
        from cragside.store.backends.sqlite import SqliteBackend

        return SqliteBackend(self.clock)

    def _outside(self) -> "dict[str, Neo4jGraphs | QdrantVectors | RedisTarget]":
        """Return the databases that have a share of each store, by the roles of LightRAG's storages."""
        outside: dict[str, Neo4jGraphs | QdrantVectors | RedisTarget] = {}
        if self.graphs is not None:
            outside["graph"] = self.graphs
        if self.vectors is not None:
            outside["vector"] = self.vectors
        if self.redis is not None:
            from cragside.store.outside.redis import RedisListing, RedisValues

            outside |= {"kv": RedisValues(self.redis), "doc_status": RedisListing(self.redis)}
        return outside

    @cached_property
    def lease_seconds(self) -> float:
        """Seconds that a stopped writer keeps its workspace from others."""
        return 30.0

    @cached_property
    def workspaces(self) -> "Workspaces":
        """The knowledge bases."""
        from cragside.adapters.embedded.keywords import asked_words, keywords_of, searched_words
        from cragside.adapters.embedded.languages import question_language
        from cragside.adapters.embedded.spelling import correct, explain
        from cragside.composition.process import most_stores
        from cragside.store.opening import StoreOpener
        from cragside.store.workspaces import Workspaces

        settings, ranker = self.settings, self.embedded_grader

        async def chunking(workspace: str) -> tuple[int, int]:
            preferred = await self.preferences.of(owner_of(workspace))
            return preferred.chunk_tokens, preferred.chunk_overlap_tokens

        def repository(access: "StoreAccess") -> "RagRepository":
            from cragside.store.repository import LightRagRepository  # imports LightRAG

            return LightRagRepository(
                access,
                keywords_of=keywords_of,
                language_of=question_language,
                correct=correct,
                explain=explain,
                ranker=ranker,
                saved_queries=settings.saved_queries,
            )

        opener = StoreOpener(
            backend=self.backend,
            embedding_model=settings.embedding_model,
            open_embedder=self.open_embedder,
            model=self.language_model,
            search_text=searched_words,
            asked_text=asked_words,
            count_tokens=self.count_tokens,
            chunking=chunking,
            parallel=settings.ollama_parallel,
            part_passages=settings.part_passages,
            lease_seconds=self.lease_seconds,
            question_seconds=_QUESTION_SHARE * settings.timeout_seconds,
            clock=self.clock,
        )
        workspaces = Workspaces(
            self.folder,
            opener=opener,
            repository=repository,
            sha256=settings.home_sha256,
            objects=self.object_store,
            most_open=most_stores(settings.max_open_workspaces),
            patience=settings.timeout_seconds,
        )
        return self._closed(workspaces, workspaces.close)

    @cached_property
    def messages(self) -> TaskMessages | None:
        """The messages that call a function when tasks wait, None when none are configured."""
        if not self.settings.queue_url:
            return None
        from cragside.adapters.aws.sqs import SqsMessages

        messages = SqsMessages(self.settings.queue_url)
        return self._connected(messages, messages.close)

    @cached_property
    def queue(self) -> "TaskQueue":
        """The queue of indexing tasks."""
        if self.database is not None:
            from cragside.store.queues.postgres import postgres_queue

            queue = postgres_queue(self.database, messages=self.messages, clock=self.clock)
        else:
            from cragside.store.queues.local import local_queue

            queue = local_queue(self.folder, messages=self.messages, clock=self.clock)
        return self._connected(queue, queue.close)

    @property
    def folder(self) -> Path:
        """The folder with the workspaces, or the one that they are fetched to."""
        if isinstance(self.settings.home, Path):
            return self.settings.home
        return Path(tempfile.gettempdir(), f"cragside-{self.settings.home_sha256}")

    def _writable(self) -> bool:
        """Tell if RAG_HOME is a folder that this process may change: neither a bucket nor a baked store."""
        from cragside.store.baked import is_baked

        return isinstance(self.settings.home, Path) and not is_baked(self.settings.home)
