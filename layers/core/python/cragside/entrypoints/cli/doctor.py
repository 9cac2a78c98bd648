"""`cragside doctor` and `cragside config`: check every component, and show every setting."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import Session, session_of
from cragside.entrypoints.cli.terminal import json_option, output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.component_checks import Finding
    from cragside.settings import Settings


_AsJson = Annotated[bool, json_option("JSON")]
_MASK = "********"
_STYLES = {"ok": "green", "warning": "yellow", "error": "red", "not configured": "dim"}


def doctor(
    context: typer.Context,
    as_json: _AsJson = False,
) -> None:
    """Check every component and say what to do about it.

    The exit code is 0 only if everything that is configured works. Each Ollama model in use gets a test call, which may
    load it. SEARXNG_HOST gets a test search.
    """
    findings = _examine(session_of(context))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        _show_findings(findings)
    broken = {finding.component for finding in findings if finding.state == "error"}
    if broken:
        raise typer.Exit(exit_codes.BAD_INPUT if "settings" in broken else exit_codes.UNAVAILABLE)


def _examine(session: Session) -> "list[Finding]":
    from cragside.entrypoints.component_checks import (
        FOR_OPERATORS,
        Finding,
        examine_components,
        examine_folder,
        examine_installation,
    )

    async def examine(container: "Container") -> "list[Finding]":
        _ = container.tracer  # which needs a package and variables of its own
        return await examine_components(container, FOR_OPERATORS)

    findings = examine_installation()
    try:
        settings = session.settings()
        findings += [Finding("settings", "ok"), examine_folder(settings, FOR_OPERATORS)]
        return findings + session.run(settings, examine)
    except ConfigurationError as error:
        return [*findings, Finding("settings", "error", detail=error.message, remedy="Correct the environment.")]


def _show_findings(findings: Sequence["Finding"]) -> None:
    console = output()
    for finding in findings:
        text = " ".join(part for part in (finding.version, finding.detail) if part)
        line = f"{finding.component:<17}{finding.state:<16}{printable(text)}".rstrip()
        console.print(line, style=_STYLES[finding.state], soft_wrap=True)
        if finding.remedy:
            remedy = finding.remedy.replace("\n", f"\n{'':<36}")
            console.print(f"{'':<33}-> {remedy}", soft_wrap=True, markup=False)


def config(
    context: typer.Context,
    only_set: Annotated[bool, typer.Option("--set", help="Show only settings that do not have their default.")] = False,
    as_json: _AsJson = False,
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
        {"variable": variable, "value": _masked(settings, name), "from": given.origin(variable)}
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


def _masked(settings: "Settings", name: str) -> Any:
    """Return a value without its secrets."""
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
