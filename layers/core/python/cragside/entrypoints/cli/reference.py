"""Makes the reference of the command line: `python -m cragside.entrypoints.cli.reference > docs/cli.md`."""

from typing import Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.app import app

_INTRODUCTION = """# The command line

This page is made from the commands' own help by `python -m cragside.entrypoints.cli.reference`.
Settings come from the environment and from files: see [configuration](configuration.md).
Results go to standard output, progress and errors (one line, `error: ...`) to standard error. Progress is shown at a
terminal only, and never with `--json`. Answers and evidence are broken at words there; pipes and files get whole lines.

`cragside query` and `cragside documents` ask a `cragside serve` of the same `RAG_HOME` and user, if one runs with the
same settings: it has everything loaded. Its address is in `RAG_HOME/.serving`. A service that is gone or does not
answer within two seconds counts as none. Of several, the first is asked. One with tokens other than `RAG_API_TOKEN`, or
with a store that is baked or in PostgreSQL, is not asked.

Commands that rag-stack has, too, understand its options: `--collection` for `--workspace`, `--graph-expand` for
`--graph`, `--repoId`, `--topK`, `--pathPrefix`, `--maxFiles`, `--maxBytes`, and `query --q TEXT` and `graph --entity
NAME` for the argument.
"""


def reference() -> str:
    """Return the page as Markdown."""
    cli = cast(TyperGroup, get_command(app))
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items())
    context = typer.Context(cli)
    commands = [
        section for name in cli.list_commands(context) for section in _sections(name, cli.get_command(context, name))
    ]
    return "\n".join(
        [_INTRODUCTION, "## Exit codes\n", "| code | meaning |", "|---|---|", codes, "", _section("", cli), *commands]
    )


def _sections(name: str, command: Any) -> list[str]:
    """Return the section of a command, and those of the commands below it."""
    below = getattr(command, "commands", {})
    return [_section(name, command), *(_section(f"{name} {each}", below[each]) for each in below)]


def _section(name: str, command: Any) -> str:
    title = f"cragside {name}".strip()
    context = typer.Context(command, info_name=title, terminal_width=100, max_content_width=100)
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    return f"## {title}\n\n```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    typer.echo(reference(), nl=False)
