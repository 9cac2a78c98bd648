"""The Lambda function on PostgreSQL, cold and warm, compared with the one on a baked store.

`python -m benchmarks.coldstart_postgres --postgres URI [--quick] [--python 3.12] [--rounds N] [--json FILE]`

The URI names an empty database, to which the role may add schemas, tables and the extension `vector`. Both functions
run in turns under Lambda's runtime interface emulator. The one on PostgreSQL has the layers and the variables that a
deployment with writable knowledge gives it: drivers, parsers, small pools. No emulator has Lambda's networks: on AWS,
a function in a VPC gets its network interface when it is deployed, not in INIT.

Its models are a stub Ollama, which embeds in 20 ms and judges in 300 ms. After each request, this program makes the
same calls itself. The figure is what the request took beyond them. Ratios and differences are taken within a pair.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import corpus
from benchmarks.coldstart import TOKEN, Measured, baked_store, layers, turn
from benchmarks.coldstart_parts import event
from benchmarks.emulator import Emulated, Runtime, emulated, lambda_environment, runtime, version_here
from benchmarks.harness import (
    CRAGSIDE,
    ROOT,
    Target,
    cpu_seconds,
    environment,
    get_json,
    machine,
    report,
    scratch,
    stub,
    table,
)
from benchmarks.stores import CHUNKING, PASSAGES_A_DOCUMENT
from benchmarks.stubs.ollama import CHAT_MODEL, EMBEDDING_MODEL

PASSAGES = 200
WARM = 40
# As infra gives them to the function of a deployment with writable knowledge.
_DEPLOYED = {
    "RAG_FETCH_PAGES": "false",
    "RAG_MAX_BODY_BYTES": "2900000",
    "RAG_NEO4J_CONNECTIONS": "2",
    "RAG_POSTGRES_CONNECTIONS": "2",
}
# What a request may cause: calls to embed and to judge, and the count of the texts that it had embedded.
_COUNTED = {"embed", "embedded texts", "judge"}


@dataclass
class Figures:
    """Return the times of all rounds, in ms."""

    baked_init: list[float] = field(default_factory=list)
    init: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def slower(self) -> float:
        """INIT as a multiple of the other function's, in the median round."""
        return statistics.median(ours / baked for ours, baked in zip(self.init, self.baked_init, strict=True))

    @property
    def beyond(self) -> float:
        """Return the time of a warm request beyond its model calls, in the median pair."""
        return statistics.median(warm - calls for warm, calls in zip(self.warm, self.calls, strict=True))


def filled(postgres: str, ollama: str, folder: Path) -> dict[str, str]:
    """Index the passages there. Returns the variables of a function that asks them."""
    variables = {"OLLAMA_BASE_URL": ollama, "POSTGRES_URI": postgres, "RAG_EMBEDDING_MODEL": EMBEDDING_MODEL}
    texts = folder / "texts-of-postgres"
    texts.mkdir()
    for name, text in corpus.documents(corpus.passages(PASSAGES), each=PASSAGES_A_DOCUMENT):
        (texts / name).write_text(text)
    settings = environment(RAG_HOME=str(folder / "home"), **variables, **CHUNKING)
    for command in (["migrate"], ["ingest", str(texts)]):
        ended = subprocess.run(
            [CRAGSIDE, *command], env=settings, cwd=ROOT, check=False, capture_output=True, text=True
        )
        if ended.returncode:
            raise SystemExit(f"cragside {command[0]} failed:\n{ended.stderr[-3000:]}")
    return {**variables, **_DEPLOYED, "RAG_HOME": str(folder / "tmp")}


def models_alone(ollama: str, question: str, calls: Mapping[str, int]) -> float:
    """The milliseconds of the model calls of a request, made by a client that does nothing else."""
    began = time.perf_counter()
    for _ in range(calls.get("embed", 0)):
        get_json(f"{ollama}/api/embed", {"model": EMBEDDING_MODEL, "input": [question]})
    for _ in range(calls.get("judge", 0)):
        judging = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": question}], "stream": False}
        get_json(f"{ollama}/api/chat", judging)
    return (time.perf_counter() - began) * 1000


def asked(function: Emulated, question: str) -> float:
    """The milliseconds of a `/rag`. Ends the benchmark without evidence from the store."""
    body = {"model": CHAT_MODEL, "prompt": f"/rag {question}"}
    answer, milliseconds = function.invoke(event("/v1/enrich", body, TOKEN))
    found = json.loads(answer["body"]).get("metadata", {}).get("rag_context", {})
    # The stub's judgement may contradict the embedded grade, and the answer says so.
    failed = {each["component"] for each in found.get("degraded", [])} - {"grader"}
    if answer["statusCode"] != 200 or found.get("verdict") != "local" or failed or not found["documents"]:
        raise SystemExit(f"No evidence: {answer}")
    return milliseconds


def one_round(
    ours: Measured, at: Runtime, variables: dict[str, str], questions: Sequence[str], figures: Figures, log: Path
) -> None:
    """An environment's life: INIT with a health check, then `/rag` requests, each after its model calls alone."""
    ollama = variables["OLLAMA_BASE_URL"]
    env = lambda_environment(ours.task, ours.opt, RAG_API_TOKEN=TOKEN, **variables)
    with emulated(at, env, log) as function:
        answer, _ = function.invoke(event("/healthz"))
        if answer.get("statusCode") != 200:
            raise SystemExit(f"{answer}\n{log.read_text()[-3000:]}")
        figures.first.append(asked(function, questions[0]))
        for question in questions[1:]:
            get_json(f"{ollama}/stub/reset", {})
            before = cpu_seconds(function.pid)
            figures.warm.append(asked(function, question))
            figures.cpu.append((cpu_seconds(function.pid) - before) * 1000)
            made = get_json(f"{ollama}/stub/calls")
            if other := made.keys() - _COUNTED:
                raise SystemExit(f"A request took another path: it also made calls of the kinds {sorted(other)}.")
            figures.calls.append(models_alone(ollama, question, made))
        figures.init.append(function.init_ms())


def targets(figures: Figures) -> list[Target]:
    """The figures that have a limit."""
    return [
        Target("INIT on PostgreSQL / on a baked store", figures.slower, 1.3, "times"),
        Target("a warm /rag on PostgreSQL beyond its model calls", figures.beyond, 25, "ms"),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--postgres", metavar="URI", required=True, help="an empty database with pgvector")
    parser.add_argument("--quick", action="store_true", help="a smoke test of one round")
    parser.add_argument("--python", default=version_here(), help="the runtime's version (%(default)s)")
    parser.add_argument("--rounds", type=int, help="rounds (5)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    rounds, at, figures = arguments.rounds or (1 if arguments.quick else 5), runtime(arguments.python), Figures()
    line = f"{machine()}; functions on Python {arguments.python}"
    with scratch() as folder, ExitStack() as stack:
        core, lightrag = layers(arguments.python)
        drivers, parsers = (Path(str(lightrag).replace("lightrag-", f"{name}-")) for name in ("drivers", "parsers"))
        baked = Measured("baked", ROOT / "functions" / "enrich", (core, lightrag), asks=False)
        ours = Measured("on PostgreSQL", baked.task, (core, drivers, lightrag, parsers))
        ollama = stack.enter_context(stub("ollama"))
        home, variables = baked_store(folder), filled(arguments.postgres, ollama, folder)
        questions = corpus.questions(PASSAGES, rounds * (WARM + 1))
        for number in range(rounds):
            figures.baked_init.append(turn(baked, at, home, [], folder / f"baked-{number}.log")["init"])
            mine = questions[number * (WARM + 1) : (number + 1) * (WARM + 1)]
            one_round(ours, at, variables, mine, figures, folder / f"postgres-{number}.log")
    medians = {name: statistics.median(values) for name, values in vars(figures).items()}
    print(f"\n{table(['', 'ms'], [[name, f'{value:,.0f}'] for name, value in medians.items()])}")
    report("The function on PostgreSQL", targets(figures), vars(figures), machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
