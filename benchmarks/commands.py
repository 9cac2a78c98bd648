"""CPU and time of the command line, and of the MCP server's start.

`python -m benchmarks.commands [--quick] [--rounds N] [--against WORKTREE] [--json FILE]`

Each command runs in a process of its own on a small store, without a model server and without a network. The MCP server
is asked as a host does: `initialize`, then the tool `ask`. `with a service`: while `cragside serve` runs on the store.
`first start` finds no compiled modules, as after an installation that compiles none. With `--against`, the commands of
another work tree with an environment of its own take turns with those of this one. Figures are medians of the rounds;
CPU counts user and system time.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    ROOT,
    Target,
    environment,
    free_port,
    machine,
    own_cpu_seconds,
    process,
    report,
    scratch,
    table,
    wait_until_up,
)

QUESTION = "Who lights the lamp of the harbour?"
NOTES = {
    "lamp.md": "# The lamp\n\nThe keeper lights the lamp of the harbour at dusk.\n",
    "oil.md": "# The oil\n\nThe oil is kept in the cellar below the tower.\n",
}
COMMANDS = {
    "--help": ("--help",),
    "status": ("status",),
    "documents": ("documents",),
    "query": ("query", QUESTION),
}
# A `cragside serve` of the same home answers these.
SERVED = {f"{name}, with a service": COMMANDS[name] for name in ("documents", "query")}
INGEST, INITIALIZE, ANSWER = "ingest of a note", "mcp, initialize", "mcp, first answer"
FIRST = "first start: "


@dataclass
class Program:
    """The command of a work tree, on a home of its own."""

    name: str
    tree: Path
    home: Path
    cpu: dict[str, list[float]] = field(default_factory=dict)
    wall: dict[str, list[float]] = field(default_factory=dict)

    def command(self, *arguments: str) -> list[str]:
        """The command line."""
        return [str(self.tree / ".venv" / "bin" / "cragside"), *arguments]

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment of the command: no settings but the home."""
        kept = {name: value for name, value in environment().items() if not name.startswith("PYTHON")}
        return {**kept, "RAG_HOME": str(self.home), **variables}

    def took(self, what: str, *, cpu: float, wall: float) -> None:
        """Record how long something took, in seconds."""
        self.cpu.setdefault(what, []).append(cpu)
        self.wall.setdefault(what, []).append(wall)

    def run(self, what: str, *arguments: str) -> None:
        """Run a command to its end. One that fails ends the benchmark."""
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            self.command(*arguments), env=self.environment(), cwd=self.home.parent, capture_output=True, text=True
        )
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{self.name}: {' '.join(arguments)} failed: {done.stderr[-2000:]}")
        self.took(what, cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall=wall)

    def serve_mcp(self, prefix: str = "", **variables: str) -> None:
        """Start the MCP server, let it introduce itself, and ask it. An answer without a source ends the benchmark."""
        began = time.perf_counter()
        with self._server(**variables) as server:
            greeting = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "benchmark", "version": "1"},
            }
            _call(server, 1, "initialize", greeting)
            wall = time.perf_counter() - began
            self.took(prefix + INITIALIZE, cpu=own_cpu_seconds(server.pid), wall=wall)
            _send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            answer = _call(server, 2, "tools/call", {"name": "ask", "arguments": {"question": QUESTION}})
            wall = time.perf_counter() - began
            self.took(prefix + ANSWER, cpu=own_cpu_seconds(server.pid), wall=wall)
        if "lamp.md" not in json.dumps(answer):
            raise SystemExit(f"{self.name}: the MCP server cites nothing: {answer}")

    @contextmanager
    def service(self) -> Iterator[None]:
        """Have `cragside serve` of the home run during the block."""
        port, log = free_port(), self.home.parent / "serve.log"
        with process(self.command("serve", "--port", str(port)), env=self.environment(), log=log) as child:
            wait_until_up(f"http://127.0.0.1:{port}/healthz", child, log)
            yield

    @contextmanager
    def _server(self, **variables: str) -> Iterator[subprocess.Popen[str]]:
        server = subprocess.Popen(
            self.command("mcp"),
            env=self.environment(**variables),
            cwd=self.home.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield server
            assert server.stdin is not None
            server.stdin.close()
            server.wait(timeout=30)
        finally:
            server.kill()
            server.wait()


def _send(server: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()


def _call(server: subprocess.Popen[str], number: int, method: str, parameters: dict[str, Any]) -> Any:
    """Send a request and return its result. Messages in between are passed over."""
    _send(server, {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})
    assert server.stdout is not None
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]
    raise SystemExit(f"The MCP server ended before it answered {method}.")


def measure(programs: list[Program], notes: Path, rounds: int) -> None:
    """Let the programs take turns with each command."""
    for number in range(rounds + 1):  # the first round only warms up
        note = notes / f"note-{number}.md"
        note.write_text(f"# Note {number}\n\nThe boat of day {number} brings bread and {number} barrels of oil.\n")
        for what, arguments in {**COMMANDS, INGEST: ("ingest", str(note))}.items():
            for program in programs:
                program.run(what, *arguments)
        for program in programs:
            program.serve_mcp()
        if number == 0:
            for program in programs:
                program.cpu.clear()
                program.wall.clear()


def measure_with_a_service(programs: list[Program], rounds: int) -> None:
    """Let the programs take turns while a service of their home runs."""
    with ExitStack() as stack:
        for program in programs:
            stack.enter_context(program.service())
        for _ in range(rounds):
            for what, arguments in SERVED.items():
                for program in programs:
                    program.run(what, *arguments)


def measure_first_start(programs: list[Program], rounds: int) -> None:
    """Let the programs take turns with a start that finds no compiled modules."""
    for _ in range(rounds):
        for program in programs:
            with tempfile.TemporaryDirectory() as compiled:
                program.serve_mcp(FIRST, PYTHONPYCACHEPREFIX=compiled)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one round")
    parser.add_argument("--rounds", type=int, help="rounds (7)")
    parser.add_argument("--against", metavar="WORKTREE", type=Path, help="a work tree of another version")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    line, rounds = machine(), arguments.rounds or (1 if arguments.quick else 7)
    with scratch() as folder:
        trees = {"this": ROOT, **({"other": arguments.against.resolve()} if arguments.against else {})}
        programs = [Program(name, tree, folder / name / "home") for name, tree in trees.items()]
        for name, text in NOTES.items():
            (folder / name).write_text(text)
        for program in programs:
            program.home.parent.mkdir()
            program.run(INGEST, "ingest", *(str(folder / name) for name in NOTES))
        measure(programs, folder, rounds)
        measure_with_a_service(programs, rounds)
        measure_first_start(programs, min(rounds, 3))
    ours = programs[0]
    rows = [
        [
            what,
            *(
                f"{statistics.median(figures[what]):.2f}"
                for program in programs
                for figures in (program.cpu, program.wall)
            ),
        ]
        for what in ours.cpu
    ]
    head = [f"{program.name}: {figure}" for program in programs for figure in ("CPU s", "time s")]
    print(f"\n{table(['', *head], rows)}")
    targets = [
        Target(f"{what}, CPU", statistics.median(ours.cpu[what]), limit, "s")
        for what, limit in (("--help", 0.25), ("status", 0.6), ("documents", 0.6), ("query", 0.6))
    ]
    targets += [
        Target(what, statistics.median(ours.wall[what]), limit, "s")
        for what, limit in ((INITIALIZE, 0.5), (ANSWER, 2.0), (FIRST + ANSWER, 2.0))
    ]
    saved = {
        program.name: {"cpu_seconds": program.cpu, "seconds": program.wall, "load": os.getloadavg()}
        for program in programs
    }
    report("The command line", targets, saved, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
