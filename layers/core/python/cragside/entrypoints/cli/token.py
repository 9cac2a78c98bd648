"""`cragside token`: makes, lists and revokes tokens."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from cragside.domain.errors import ConfigurationError, ValidationError
from cragside.domain.names import workspace_name
from cragside.domain.tokens import SCOPES, USUAL_SCOPES, IssuedToken, Limits, TokenScope, in_order, listed, new_token
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container

token = typer.Typer(help="Make, list and revoke tokens. RAG_TOKENS_FILE keeps their hashes.", no_args_is_help=True)
Tokens = TypeVar("Tokens")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=366 * 100)


@token.command()
def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it, such as who uses it.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, write, chat or models; may be repeated. Default: read, write and chat."),
    ] = None,
    workspace: Annotated[
        list[str] | None,
        typer.Option("--workspace", "-w", metavar="NAME", help="Workspace it opens; may be repeated. Default: all."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help="12h, 90d, 8w, 2027-01-01 or a time in ISO 8601 (UTC). Default: never."),
    ] = None,
    max_workspaces: Annotated[
        int | None, typer.Option(min=0, help="Most workspaces. Default: RAG_LIMIT_WORKSPACES.")
    ] = None,
    max_documents: Annotated[
        int | None, typer.Option(min=0, help="Most documents in its workspaces together. Default: RAG_LIMIT_DOCUMENTS.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option(min=0, help="Most bytes in its workspaces together. Default: RAG_LIMIT_BYTES.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the entry with the token as JSON.")] = False,
) -> None:
    """Make a token and show it, once: only its hash is kept.

    Servers that run take it up within seconds. Standard output has the token alone, so that it can be piped.
    """
    from cragside.entrypoints.audit import Audit

    container = _container(context)
    tokens = _configured(container.tokens)
    audit, now = Audit(container), container.clock.now()
    secret, made = tokens.create(
        new_token(
            name,
            scopes=_scopes(scope),
            workspaces=tuple(dict.fromkeys(map(workspace_name, workspace))) if workspace else None,
            created=now,
            expires=None if expires is None else _expiry(expires, now),
            limits=Limits(max_workspaces, max_documents, max_bytes),
        )
    )
    audit.note_command("token new", made.id, made.name)
    if as_json:
        print_json({**_shown(made, now), "token": secret})
        return
    typer.echo(f"{made.id} {printable(name)}: {'; '.join(_rights(made, now))}", err=True)
    typer.echo("This is the only time that the token is shown:", err=True)
    typer.echo(secret)


@token.command("list")
def list_(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print the entries as JSON.")] = False,
) -> None:
    """Show the tokens, without the tokens themselves or their hashes."""
    container = _container(context)
    tokens, now = _configured(container.tokens).all(), container.clock.now()
    if as_json:
        print_json({"tokens": [_shown(each, now) for each in tokens]})
        return
    if not tokens:
        typer.echo("There are no tokens yet. Make one: cragside token new NAME.", err=True)
    for each in tokens:
        line = "  ".join((each.id, each.name, *_rights(each, now)))
        output().print(printable(line), soft_wrap=True)


@token.command()
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="ID|NAME", help="The token's id or name.")],
) -> None:
    """Revoke a token. Servers that run refuse it within seconds."""
    from cragside.entrypoints.audit import Audit

    container = _container(context)
    gone = _configured(container.tokens).revoke(name)
    with suppress(ConfigurationError):  # a token that has leaked is revoked, whatever becomes of the log
        Audit(container).note_command("token revoke", gone.id, gone.name)
    output().print(printable(f"{gone.id} {gone.name} is revoked."), soft_wrap=True)


def _container(context: typer.Context) -> "Container":
    from cragside.bootstrap import Container

    return Container(session_of(context).settings())


def _configured(tokens: Tokens | None) -> Tokens:
    if tokens is None:
        raise ConfigurationError(
            "RAG_TOKENS_FILE is not set. Set it to the file that shall hold the tokens, here and where cragside serve "
            "runs, such as RAG_TOKENS_FILE=~/.cragside/.tokens.json.",
            variable="RAG_TOKENS_FILE",
        )
    return tokens


def _scopes(given: list[str] | None) -> frozenset[TokenScope]:
    if not given:
        return USUAL_SCOPES
    unknown = [scope for scope in given if scope not in SCOPES]
    if unknown:
        raise ValidationError(f"--scope is {listed(SCOPES)}.", field="scope")
    return frozenset(scope for scope in SCOPES if scope in given)


def _expiry(given: str, now: datetime) -> datetime:
    expires: datetime | None = None
    if found := re.fullmatch(r"([0-9]{1,6})([hdw])", given.strip()):
        span = int(found[1]) * _UNITS[found[2]]
        expires = now + span if span <= _LONGEST else None
    else:
        with suppress(ValueError):
            expires = datetime.fromisoformat(given.strip())
    if expires is None:
        raise ValidationError("--expires is like 12h, 90d, 8w, 2027-01-01 or 2027-01-01T12:00:00Z.", field="expires")
    expires = expires.replace(tzinfo=UTC) if expires.tzinfo is None else expires
    if expires <= now:
        raise ValidationError("--expires is in the past. Name a time to come.", field="expires")
    return expires


def _rights(token: IssuedToken, now: datetime) -> tuple[str, str, str]:
    """Say what a token may do, where, and until when."""
    opened = "all workspaces" if token.workspaces is None else ", ".join(token.workspaces)
    expires = "expired" if token.expired(now) else "expires"
    until = "never expires" if token.expires is None else f"{expires} {_iso(token.expires)}"
    return ", ".join(in_order(token.scopes)), opened, until


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(token: IssuedToken, now: datetime) -> dict[str, Any]:
    """Return all of a token but its hash."""
    return {
        "id": token.id,
        "name": token.name,
        "scopes": in_order(token.scopes),
        "workspaces": None if token.workspaces is None else list(token.workspaces),
        "created": _iso(token.created),
        "expires": None if token.expires is None else _iso(token.expires),
        "expired": token.expired(now),
        "limits": {
            "workspaces": token.limits.workspaces,
            "documents": token.limits.documents,
            "bytes": token.limits.bytes,
        },
    }
