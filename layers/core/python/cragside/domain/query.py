"""Questions."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from cragside.domain.errors import ValidationError

DEFAULT_WORKSPACE = "default"
LONGEST_QUERY = 32_000  # characters; searches process the text on the event loop


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
            raise ValidationError("The command has no question. Write it after the command: /rag what is ...?")


def refuse_overlong_query(text: str) -> None:
    """Raises `ValidationError` if the text is too long for a search."""
    if len(text) > LONGEST_QUERY:
        raise ValidationError(
            f"The query has {len(text)} characters; a search takes at most {LONGEST_QUERY}. Shorten it.",
            field="query",
            limit=LONGEST_QUERY,
        )


def ask(identifier: str, text: str, *, workspace: str, limit: int) -> Query:
    """A query of at most `limit` characters. Raises `ValidationError` for a longer one."""
    if len(text) > limit:
        raise ValidationError(
            f"The question has {len(text)} characters; the limit is {limit}.", field="prompt", limit=limit
        )
    return Query(id=identifier, text=text, workspace=workspace)
