"""The `cragside` command with its subcommands and exit codes."""

import re
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cragside import __version__
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.ask import ask, enrich, explain
from cragside.entrypoints.cli.copy import bake, copy
from cragside.entrypoints.cli.demo import demo
from cragside.entrypoints.cli.doctor import config, doctor
from cragside.entrypoints.cli.documents import documents, enrich_docs, forget
from cragside.entrypoints.cli.ingest import index, ingest, sync
from cragside.entrypoints.cli.mcp import mcp
from cragside.entrypoints.cli.memory import memory
from cragside.entrypoints.cli.query import graph, query
from cragside.entrypoints.cli.serve import serve
from cragside.entrypoints.cli.session import Session, session_of
from cragside.entrypoints.cli.stores import migrate, reindex, repair, status, workspaces
from cragside.entrypoints.cli.token import token
from cragside.entrypoints.cli.worker import worker
from cragside.entrypoints.log import message_of

_EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in exit_codes.MEANINGS.items()) + "."


class Cli(TyperGroup):
    """Turns errors into one line on standard error and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit."""
        session = extra["obj"] = extra.get("obj") or Session()
        sys.exit(self._exit_code(session, args, prog_name, extra))

    def _exit_code(
        self, session: Session, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]
    ) -> int:
        try:
            returned = super().main(args, prog_name, standalone_mode=False, **extra)
        except typer.TyperException as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
                typer.echo(error.format_message(), err=True)
                return error.exit_code
            return _failed(error.format_message(), error.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            return exit_codes.INTERRUPTED
        except Exception as error:
            if session.debug:
                traceback.print_exc()
            return _failed(message_of(error), exit_codes.exit_code_of(error))
        return returned if isinstance(returned, int) else exit_codes.OK


def _spell(option: str) -> str:
    """Return our name for an option of rag-stack, such as --repoId or --collection."""
    kebab = re.sub(r"(?<=[a-z])[A-Z]", lambda capital: f"-{capital[0].lower()}", option)
    return {"collection": "workspace", "graph-expand": "graph"}.get(kebab, kebab)


app = typer.Typer(
    name="cragside",
    cls=Cli,
    context_settings={"token_normalize_func": _spell},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cragside {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=_EPILOG)
def cragside(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False,
) -> None:
    """Give any Ollama prompt the evidence it needs: graded, cited, corrective RAG.

    Begin with `cragside demo`. Then index your own texts with `cragside ingest`, and point any Ollama client at
    `cragside serve`: prompts that begin with /rag get evidence, all others pass through untouched.

    Settings come from the environment and from files; `cragside config` shows them, docs/configuration.md lists them.
    """
    session_of(context).debug = debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_COMMANDS = (
    demo, ask, explain, serve, worker, enrich, ingest, sync, index, documents, enrich_docs, query, graph, bake, forget,
    status, reindex, repair, migrate, copy, doctor, config, mcp,
)  # fmt: skip
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(memory, name="memory")
app.add_typer(token, name="token")
app.add_typer(workspaces, name="workspaces")


def _failed(message: str, code: int) -> int:
    typer.echo(f"error: {message}", err=True)
    return code
