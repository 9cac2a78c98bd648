"""Many execution environments of the function at once, on one PostgreSQL, with pgbouncer between.

`python -m benchmarks.many_functions [--environments 50] [--pool 2] [--sessions 10] [--rounds 5] [--seconds 30]`

Each environment is a process of its own under Lambda's runtime interface emulator, with the layers and the variables of
a deployment with writable knowledge, as in `benchmarks.coldstart_postgres`. They are started a few at a time, so that
INIT is not cut short, and each answers once. Then all are asked at the same time, a question of its own each, in every
round. PostgreSQL and pgbouncer are started for it. 50 environments take 7 GB of memory.

On Lambda each environment has a processor of its own. Here they share those of this machine, so that a request may need
more time than its deadline: `--seconds` says a longer one.
"""

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.coldstart import TOKEN, Measured, layers
from benchmarks.coldstart_parts import event
from benchmarks.coldstart_postgres import PASSAGES, filled
from benchmarks.emulator import Emulated, Runtime, emulated, lambda_environment, runtime, version_here
from benchmarks.harness import ROOT, Load, Target, machine, memory_mb, report, scratch, stub, table
from benchmarks.sessions import IN_TRANSACTION, Sessions, shown
from benchmarks.stack.servers import stop_on_sigterm
from benchmarks.stubs.ollama import CHAT_MODEL
from tests.services.pgbouncer import PgbouncerServer
from tests.services.postgres import PostgresServer

_NO_ANSWER = "status none"  # `Load` says `status` and a number of an answer that is no success
_WARMING = 2
_TRIES = 5
# What PostgreSQL and pgbouncer write when they turn a client away, or end its session.
_REFUSALS = ("FATAL", "pooler error")
_CLIENT_HAD_GONE = "failed to send welcome message"
# pgbouncer's own default for how long a client waits for a session.
_PATIENCE = 120
# What a function is given beyond its requests' deadline.
_MARGIN = 30


def ask(function: Emulated, question: str, load: Load) -> None:
    """Ask once, and count the answer. One that lacks evidence or a component is a failure too."""
    body = {"model": CHAT_MODEL, "prompt": f"/rag {question}"}
    try:
        answer, milliseconds = function.invoke(event("/v1/enrich", body, TOKEN))
    except (ValueError, OSError) as error:  # what was cut short is answered by no JSON
        load.failures.append(f"{_NO_ANSWER}: {type(error).__name__}: {error}")
        return
    status, text = answer.get("statusCode", 500), answer.get("body") or json.dumps(answer)
    load.took(milliseconds, status, text.encode(), wrong_with)


def wrong_with(answer: Any) -> str:
    """Return the faults of an answer; none if it has the store's evidence and no component failed."""
    found = answer["metadata"]["rag_context"]
    if found["degraded"]:
        return ", ".join(f"{each['component']}: {each['reason']}" for each in found["degraded"])
    return "" if found["verdict"] == "local" and found["documents"] else f"the verdict is {found['verdict']}"


def warm(function: Emulated, question: str) -> int:
    """Have an environment answer. Returns how many tries that took; ends the benchmark after several."""
    load = Load()
    for number in range(1, _TRIES + 1):
        ask(function, question, load)
        if len(load.failures) < number:
            print(".", end="", flush=True)
            return number
    raise SystemExit(f"An environment does not answer: {load.failures}")


def all_at_once(functions: Sequence[Emulated], questions: Sequence[str]) -> Load:
    """Ask every environment at the same time."""
    load, began = Load(), time.perf_counter()
    with ThreadPoolExecutor(len(functions)) as threads:
        list(threads.map(lambda function, question: ask(function, question, load), functions, questions))
    load.seconds = time.perf_counter() - began
    return load


def refusals(log: str) -> list[str]:
    """The lines of a server's log that say that a client was turned away."""
    lines = [line for line in log.splitlines() if any(each in line for each in _REFUSALS)]
    return [line for line in lines if _CLIENT_HAD_GONE not in line]


def targets(loads: Sequence[Load], refused: Sequence[str], sessions: Sessions, limit: int) -> list[Target]:
    """Return the checks that have to hold."""
    failures = [each for load in loads for each in load.failures]
    unanswered = sum(each.startswith("status") for each in failures)
    return [
        Target("requests without an answer", unanswered, 0, ""),
        Target("answers that lack evidence or a component", len(failures) - unanswered, 0, ""),
        Target("clients that PostgreSQL or pgbouncer turned away", len(refused), 0, ""),
        Target("sessions left in a transaction", sessions.left.total() - sessions.left["idle"], 0, ""),
        Target("PostgreSQL's sessions, peak", sessions.peak, limit, ""),
    ]


def environments(stack: ExitStack, number: int, at: Runtime, variables: dict[str, str], folder: Path) -> list[Emulated]:
    """The processes. INIT happens with the first event of each."""
    core, lightrag = layers(version_here())
    drivers, parsers = (Path(str(lightrag).replace("lightrag-", f"{name}-")) for name in ("drivers", "parsers"))
    function = Measured("on PostgreSQL", ROOT / "functions" / "enrich", (core, drivers, lightrag, parsers))
    env = lambda_environment(function.task, function.opt, RAG_API_TOKEN=TOKEN, **variables)
    env["AWS_LAMBDA_FUNCTION_TIMEOUT"] = str(int(variables["RAG_TIMEOUT_SECONDS"]) + _MARGIN)
    return [stack.enter_context(emulated(at, env, folder / f"{each}.log")) for each in range(number)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--environments", type=int, default=50, help="how many (%(default)s)")
    parser.add_argument("--pool", type=int, default=2, help="connections of each environment (%(default)s)")
    parser.add_argument("--sessions", type=int, default=10, help="pgbouncer's sessions (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (%(default)s)")
    parser.add_argument("--seconds", type=int, default=30, help="deadline of a request (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    given = parser.parse_args()
    stop_on_sigterm()
    line, at = f"{machine()}; functions on Python {version_here()}", runtime(version_here())
    with scratch() as folder, ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer())
        pooler = stack.enter_context(PgbouncerServer(postgres.uri, pool=given.sessions, patience=_PATIENCE))
        variables = filled(postgres.uri, stack.enter_context(stub("ollama")), folder)
        variables |= {"POSTGRES_URI": pooler.uri, "RAG_POSTGRES_CONNECTIONS": str(given.pool)}
        variables["RAG_TIMEOUT_SECONDS"] = str(given.seconds)
        functions = environments(stack, given.environments, at, variables, folder)
        questions = corpus.questions(PASSAGES, given.environments * (given.rounds + 1))
        with ThreadPoolExecutor(_WARMING) as threads:
            tries = list(threads.map(warm, functions, questions))
        turns = [questions[number * given.environments :] for number in range(1, given.rounds + 1)]
        before = len(postgres.log), len(pooler.log)
        with Sessions(postgres.uri) as sessions:
            loads = [all_at_once(functions, mine) for mine in turns]
        refused = [*refusals(postgres.log[before[0] :]), *refusals(pooler.log[before[1] :])]
        pools, stats = shown(pooler.uri, "POOLS"), shown(pooler.uri, "STATS")
        memory = sum(memory_mb(each.pid) for each in functions)
    rows = [[str(n), f"{each.p50:,.0f}", f"{each.p95:,.0f}", f"{each.seconds:.1f}"] for n, each in enumerate(loads, 1)]
    print(f"\n{table(['round', 'p50 in ms', 'p95 in ms', 'seconds'], rows)}\n")
    print(f"{sum(each > 1 for each in tries)} environments were not whole at their first answer")
    print(f"{memory:,.0f} MB of all environments; states after the load: {dict(sessions.left)}")
    print(f"longest {IN_TRANSACTION}, of {sessions.looks} looks: {sessions.in_transaction_seconds * 1000:.0f} ms")
    print("\n".join([*refused[:10], *[each for load in loads for each in load.failures][:10]]))
    print(f"pgbouncer's pools: {pools}\npgbouncer's stats: {stats}")
    details = {
        "loads": [each.as_dict() for each in loads],
        "pools": pools,
        "stats": stats,
        "memory_mb": memory,
        "looks": sessions.looks,
        "in_transaction_seconds": sessions.in_transaction_seconds,
        "left": sessions.left,
        "refused": refused,
    }
    found = targets(loads, refused, sessions, given.sessions)
    title = f"{given.environments} environments with {given.pool} connections each, {given.sessions} sessions"
    report(title, found, details, machine_line=line, file=given.json)


if __name__ == "__main__":
    main()
