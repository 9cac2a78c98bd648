"""Knowledge of a deployment: a baked store, or one that accepts documents."""

from typing import Annotated, Literal

from pydantic import Field

from infra.environments.base import Data
from infra.environments.forms import form
from infra.environments.kinds import kind, one_of


class KnowledgeLayer(Data):
    """A baked store that is deployed as a layer."""

    path: str = Field(min_length=1, description="The folder, relative to the top of the repository or absolute.")


class KnowledgeBucket(Data):
    """A baked store in a bucket, which the function fetches into its temporary folder."""

    uri: Annotated[
        str,
        form(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^*?\s]*[^*?\s/]", "s3://BUCKET/PREFIX, no slash behind it"),
    ]
    sha256: Annotated[str, form(r"[0-9a-f]{64}", "a hash of 64 digits from 0 to f")] = Field(
        description="The hash of its baked.json."
    )


class Writable(Data):
    """A store on the environment's PostgreSQL, which documents can be brought to."""

    index_concurrency: int = Field(2, ge=2, le=1000, description="Most index functions at once; SQS knows no fewer.")
    pool: int = Field(2, ge=2, le=100, description="Connections of each function to PostgreSQL, and to Neo4j.")
    sweep_minutes: int = Field(5, ge=1, le=1440, description="How often tasks that nobody carries are queued again.")
    index_memory_mb: int = Field(3008, ge=512, le=10_240)
    index_timeout_seconds: int = Field(600, ge=30, le=900)
    visibility_seconds: int = Field(3600, ge=180, le=43_200, description="At least 6 times the timeout.")
    attempts: int = Field(3, ge=1, le=20)
    fetch_pages: bool = Field(
        False, description="Whether pages may be fetched from URLs: only where functions have a way to the Internet."
    )


Knowledge = Annotated[
    Annotated[Writable, kind("Writable")]
    | Annotated[KnowledgeLayer, kind("KnowledgeLayer")]
    | Annotated[KnowledgeBucket, kind("KnowledgeBucket")]
    | Annotated[Literal["none"], kind("none")],
    one_of(Writable, KnowledgeLayer, KnowledgeBucket, words=("none",)),
]


class _Field(Data):
    """Errors name the field of an environment."""

    knowledge: Knowledge


def knowledge_of(text: str) -> Knowledge:
    """Parse `none`, `writable`, a folder, or `s3://bucket/prefix#sha256`. Raises pydantic's `ValidationError`."""
    if text == "none":
        return "none"
    if text == "writable":
        return Writable()
    if text.startswith("s3://"):
        uri, hash_given, sha256 = text.partition("#")
        table = {"uri": uri} | ({"sha256": sha256} if hash_given else {})
    else:
        table = {"path": text}
    return _Field.model_validate({"knowledge": table}).knowledge
