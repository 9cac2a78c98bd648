"""The `cragside` command with its subcommands and exit codes."""

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from cragside import __version__
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import Session, session_of

_EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in exit_codes.MEANINGS.items()) + "."


# The commands in the order of the help, with the modules that have them.
_COMMANDS = {
    "demo": "demo", "ask": "ask", "explain": "ask", "serve": "serve", "worker": "worker", "enrich": "ask",
    "ingest": "ingest", "sync": "ingest", "index": "ingest", "documents": "documents", "enrich-docs": "documents",
    "query": "query", "graph": "query", "bake": "copy", "forget": "documents", "status": "stores",
    "reindex": "stores", "repair": "stores", "migrate": "stores", "copy": "copy", "doctor": "doctor",
    "config": "doctor", "mcp": "mcp", "memory": "memory", "token": "token", "workspaces": "stores",
    "generations": "generations",
}  # fmt: skip


class Cli(TyperGroup):
    """Imports a command when it is called, and turns errors into one line on standard error and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command. The first call imports its module."""
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _imported(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with. Typer suggests others only if it has them all."""
        if args and args[0] not in _COMMANDS:
            for name in _COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

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
            from cragside.entrypoints.log import message_of

            if session.debug:
                import traceback

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


def _imported(name: str) -> Any:
    """Import a command, or a group of commands."""
    module = import_module(f"cragside.entrypoints.cli.{_COMMANDS[name]}")
    found = getattr(module, name.replace("-", "_"))
    holder = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return get_group(holder).commands[name]


def _failed(message: str, code: int) -> int:
    typer.echo(f"error: {message}", err=True)
    return code
