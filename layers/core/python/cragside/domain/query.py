"""The question that evidence is sought for."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from cragside.domain.errors import ValidationError

DEFAULT_WORKSPACE = "default"


@dataclass(frozen=True, slots=True)
class Query:
    """A question, without its command, asked in one workspace. `created_at` is in UTC."""

    id: str
    text: str
    workspace: str = DEFAULT_WORKSPACE
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if not self.id:
            raise ValidationError("A query needs an id.")
        if not self.text.strip():
            raise ValidationError("The command has no question. Write it behind the command: /rag what is ...?")


def ask(identifier: str, text: str, *, workspace: str, limit: int) -> Query:
    """A query of at most `limit` characters; longer ones raise, with the limit named."""
    if len(text) > limit:
        raise ValidationError(
            f"The question has {len(text)} characters; the limit is {limit}.", field="prompt", limit=limit
        )
    return Query(id=identifier, text=text, workspace=workspace)
