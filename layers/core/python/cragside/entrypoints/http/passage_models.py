"""Models of searches for passages, which our own route and those of peers share."""

from pydantic import BaseModel, ConfigDict, Field

from cragside.domain.errors import ValidationError
from cragside.domain.query import Condition, Filter


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
        """The domain's condition. Raises `ValidationError` unless the match is exactly one."""
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
        """The domain's filter. Raises `ValidationError` for a condition that is not exactly one."""
        return Filter(tuple(each.condition() for each in self.must))


class GraphEntity(BaseModel):
    """An entity in the passages or near them."""

    name: str = Field(description="Name of the entity.")
    type: str = Field(description="Its type.")
    description: str = Field(description="What the documents say about it.")


class GraphRelationship(BaseModel):
    """A relationship between two of the entities."""

    source: str = Field(description="Name of the first entity.")
    target: str = Field(description="Name of the second entity.")
    type: str = Field(description="Kind of the relationship.")
    description: str = Field(description="What the documents say about it.")


class GraphAround(BaseModel):
    """The graph around the passages. `capped`: some of it is left out."""

    entities: list[GraphEntity] = Field(description="The entities.")
    relationships: list[GraphRelationship] = Field(description="The relationships between them.")
    capped: bool = Field(description="Whether some of the graph is left out.")
