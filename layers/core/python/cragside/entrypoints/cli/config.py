"""`cragside config`: the settings, and where each of them comes from."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.settings import Settings

_MASK = "********"


def config(
    context: typer.Context,
    only_set: Annotated[bool, typer.Option("--set", help="Show only settings that do not have their default.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Show each setting, its value, and where it comes from.

    Settings come from the environment, else from .env or cragside.toml in this folder, else from .env or cragside.toml
    in RAG_HOME. Secrets are masked.
    """
    from cragside.entrypoints.setting_files import DEFAULT
    from cragside.settings import variable_of

    session = session_of(context)
    given, settings = session.given(), session.settings()
    rows = [
        {"variable": variable, "value": _shown(settings, name), "from": given.origin(variable)}
        for name in type(settings).model_fields
        for variable in [variable_of(name)]
    ]
    rows = [row for row in rows if not only_set or row["from"] != DEFAULT]
    if as_json:
        print_json(rows)
        return
    console = output()
    for row in rows:
        value = "unset" if row["value"] is None else row["value"]
        value = str(value).lower() if isinstance(value, bool) else str(value)
        line = f"{row['variable']:<28} {value:<32} {row['from']}"
        console.print(printable(line).rstrip(), soft_wrap=True)


def _shown(settings: "Settings", name: str) -> Any:
    """A value without its secrets."""
    from pydantic import SecretStr

    value = getattr(settings, name)
    if isinstance(value, SecretStr):
        return _MASK
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    scheme, separator, rest = text.partition("://")
    _, at, place = rest.rpartition("@")
    return f"{scheme}{separator}{_MASK}@{place}" if separator and at else text
