"""Models that several routes share, and the words for what does not fit a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from cragside.domain.errors import ValidationError
from cragside.domain.query import Condition, Filter

WORKSPACE = "The workspace; the default without it."


class Shape(BaseModel):
    """A part of an answer. Any object with its fields as attributes can be turned into it."""

    model_config = ConfigDict(from_attributes=True)


class WorkspaceRequest(BaseModel):
    """The workspace. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    workspace: str | None = Field(None, description=WORKSPACE)


class Citation(Shape):
    """One document of evidence, in the order of its number in the prompt."""

    id: str = Field(description="Id of the passage or of the web result.")
    title: str = Field(description="Title of the document.")
    content: str = Field(description="The text that was injected.")
    source: str = Field(description="`local` or `web`.")
    score: float | None = Field(description="Probability of relevance, 0..1; null in the mode `similarity`.")
    similarity: float | None = Field(None, description="Cosine to the question, 0..1, in the mode `similarity` only.")
    url: str | None = Field(None, description="Address of the page, if it has one.")
    metadata: dict[str, Any] | None = Field(None, description="The document's metadata, such as page and section.")


class Degraded(Shape):
    """A component that failed, and why."""

    component: str = Field(description="What failed, such as `grader` or `search`.")
    reason: str = Field(description="Why.")


class Recalled(BaseModel):
    """An exchange that was recalled, and when it took place (ISO 8601 in UTC)."""

    id: str = Field(description="Id of the exchange in memory.")
    at: str | None = Field(description="When it took place, ISO 8601 in UTC.")


class ErrorBody(BaseModel):
    """The error envelope."""

    class Error(BaseModel):
        """The code, the message and the facts of an error."""

        type: str = Field(description="Code of the error, such as `validation_error`.")
        message: str = Field(description="What is wrong, and what to do.")
        details: dict[str, Any] = Field(description="Facts for programs, such as the field.")
        retryable: bool = Field(description="Whether the same request may succeed later.")

    error: Error = Field(description="The error.")
    id: str = Field(description="Id of the request.")
    timestamp: str = Field(description="Time of the error, ISO 8601 in UTC.")


class Match(BaseModel):
    """Exactly one condition on a field of the payload."""

    model_config = ConfigDict(extra="forbid")

    value: str | bool | int | float | None = Field(
        None, description="The field equals this value, or its list contains it."
    )
    text: str | None = Field(None, description="The field contains this text, in any case.")
    prefix: str | None = Field(None, description="The field begins with this text.")


class MustCondition(BaseModel):
    """A condition on a field of the payload. Dots in `key` lead into objects."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=200, description="The field. Dots lead into objects.")
    match: Match = Field(description="The condition.")

    def condition(self) -> Condition:
        """Return the condition as the domain has it. Raises `ValidationError` unless the match has one value."""
        given = self.match.model_fields_set
        if len(given) != 1:
            raise ValidationError(f"filter: the match of {self.key} needs one of value, text and prefix.")
        if "text" in given:
            return Condition(self.key, self.match.text or "", how="contains")
        if "prefix" in given:
            return Condition(self.key, self.match.prefix or "", how="begins")
        return Condition(self.key, self.match.value)


class PayloadFilter(BaseModel):
    """The part of Qdrant's filter that rag-stack's clients use. All conditions must hold."""

    model_config = ConfigDict(extra="forbid")

    must: list[MustCondition] = Field(default_factory=list, max_length=50, description="Conditions that must all hold.")

    def conditions(self) -> Filter:
        """Return the domain's filter. Raises `ValidationError` for a condition that is not exactly one."""
        return Filter(tuple(each.condition() for each in self.must))


class GraphEntity(Shape):
    """An entity in the passages or near them."""

    name: str = Field(description="Name of the entity.")
    type: str = Field(description="Its type.")
    description: str = Field(description="What the documents say about it.")


class GraphRelationship(Shape):
    """A relationship between two of the entities."""

    source: str = Field(description="Name of the first entity.")
    target: str = Field(description="Name of the second entity.")
    type: str = Field(description="Kind of the relationship.")
    description: str = Field(description="What the documents say about it.")


class GraphAround(Shape):
    """The graph around the passages. `capped`: some of it is left out."""

    entities: list[GraphEntity] = Field(description="The entities.")
    relationships: list[GraphRelationship] = Field(description="The relationships between them.")
    capped: bool = Field(description="Whether some of the graph is left out.")


def complaints_of(errors: Sequence[Mapping[str, Any]]) -> str:
    """Put Pydantic's first complaints about a request into words, without quoting the request."""
    return "; ".join(map(_complaint_of, errors[:3]))


def refusal_of(errors: Sequence[Mapping[str, Any]]) -> ValidationError:
    """Return the error for a request that does not fit its models."""
    place = errors[0]["loc"][-1] if errors and errors[0]["loc"] else "body"
    return ValidationError(f"{complaints_of(errors)}.", field=str(place))


def _complaint_of(error: Mapping[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return "The body is not valid JSON"
    place, complaint = ".".join(str(step) for step in error["loc"]), error["msg"].removeprefix("Value error, ")
    return f"{place}: {complaint}" if place else complaint
