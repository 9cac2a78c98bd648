"""The schema of the token file. Unknown fields are refused, because they could be restrictions."""

from datetime import UTC
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from cragside.domain.tokens import IssuedToken, Limits, TokenScope, in_order

_Most = Annotated[int | None, Field(ge=0)]


class LimitsBody(BaseModel):
    """The most that may be stored; null is no limit."""

    model_config = ConfigDict(extra="forbid")

    workspaces: _Most = None
    documents: _Most = None
    bytes: _Most = None


class TokenEntry(BaseModel):
    """A token. `workspaces` null means all, `expires` null never."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: Annotated[str, Field(min_length=1, max_length=100)]
    name: Annotated[str, Field(min_length=1, max_length=100)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: list[TokenScope]
    workspaces: list[str] | None
    expires: AwareDatetime | None
    created: AwareDatetime
    limits: LimitsBody = LimitsBody()


class TokensBody(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    version: Literal[1]
    tokens: list[TokenEntry]


def token_of(entry: TokenEntry) -> IssuedToken:
    """The token of an entry."""
    return IssuedToken(
        id=entry.id,
        name=entry.name,
        digest=bytes.fromhex(entry.sha256),
        scopes=frozenset(entry.scopes),
        workspaces=None if entry.workspaces is None else tuple(entry.workspaces),
        created=entry.created,
        expires=entry.expires,
        limits=Limits(**entry.limits.model_dump()),
    )


def entry_of(token: IssuedToken) -> TokenEntry:
    """The entry of a token."""
    limits = token.limits
    return TokenEntry(
        id=token.id,
        name=token.name,
        sha256=token.digest.hex(),
        scopes=in_order(token.scopes),
        workspaces=None if token.workspaces is None else list(token.workspaces),
        expires=None if token.expires is None else token.expires.astimezone(UTC),
        created=token.created.astimezone(UTC),
        limits=LimitsBody(workspaces=limits.workspaces, documents=limits.documents, bytes=limits.bytes),
    )
