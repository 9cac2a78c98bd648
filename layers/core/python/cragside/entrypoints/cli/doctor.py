"""`cragside doctor`: checks every component."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import Session, session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.component_checks import Finding

_STYLES = {"ok": "green", "warning": "yellow", "error": "red", "not configured": "dim"}


def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Check every component and say what to do about it.

    The exit code is 0 only if everything that is configured works. Each Ollama model in use gets a test call, which may
    load it. SEARXNG_HOST gets a test search.
    """
    findings = _examine(session_of(context))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        _show(findings)
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

    findings = examine_installation()
    try:
        settings = session.settings()
    except ConfigurationError as error:
        return [*findings, Finding("settings", "error", detail=error.message, remedy="Correct the environment.")]
    findings += [Finding("settings", "ok"), examine_folder(settings, FOR_OPERATORS)]

    async def examined(container: "Container") -> "list[Finding]":
        _ = container.tracer  # which needs a package and variables of its own
        return await examine_components(container, FOR_OPERATORS)

    try:
        return findings + session.run(settings, examined)
    except ConfigurationError as error:
        return [*findings, Finding("settings", "error", detail=error.message, remedy="Correct the environment.")]


def _show(findings: Sequence["Finding"]) -> None:
    console = output()
    for finding in findings:
        text = " ".join(part for part in (finding.version, finding.detail) if part)
        line = f"{finding.component:<17}{finding.state:<16}{printable(text)}".rstrip()
        console.print(line, style=_STYLES[finding.state], soft_wrap=True)
        if finding.remedy:
            remedy = finding.remedy.replace("\n", f"\n{'':<36}")
            console.print(f"{'':<33}-> {remedy}", soft_wrap=True, markup=False)
