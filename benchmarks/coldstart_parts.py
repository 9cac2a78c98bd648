"""Measures inside Lambda's stand-in: INIT and the first `/rag`, their parts, and the handler's share of a warm one.

`benchmarks.coldstart` starts it with the layers on the path and the store in RAG_HOME. It prints JSON. Shared imports
count for the part that needs them first.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

# The imports of a bare FastAPI and Mangum function, then ours, in the order of use.
INIT = (
    ("FastAPI (pydantic, Starlette)", ("fastapi",)),
    ("Mangum", ("mangum",)),
    ("Powertools", ("aws_lambda_powertools",)),
    ("settings", ("cragside.settings",)),
    ("entrypoint", ("cragside.entrypoints.aws_lambda.function",)),
)
ADAPTERS = (
    "cragside.adapters.embedded.grader",
    "cragside.adapters.embedded.keywords",
    "cragside.adapters.embedded.language_model",
    "cragside.store.workspaces",
    "cragside.adapters.local.preferences",
)
FIRST = (
    ("the route", ("cragside.entrypoints.http.v1.enrich",)),
    ("numpy", ("numpy",)),
    ("the adapters", ADAPTERS),
    ("LangGraph, LangSmith, LangChain's core", ("cragside.crag.langgraph",)),
    ("the corrective graph", ("cragside.crag.graph",)),
    ("LightRAG", ("lightrag.lightrag",)),
    ("its storages on SQLite", ("cragside.store.repository", "cragside.store.engine")),
)


class Clock:
    """Milliseconds of CPU of each part, in order."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, str, float]] = []

    def time(self, phase: str, name: str, work: Callable[[], Any]) -> Any:
        """Do the work and record how much CPU it took."""
        began = time.process_time()
        done = work()
        self.parts.append((phase, name, (time.process_time() - began) * 1000))
        return done


class Context:
    """The part of Lambda's context that a handler reads."""

    function_name = "enrich"
    function_version = "1"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:enrich"
    aws_request_id = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def event(path: str, body: Any = None, token: str = "") -> dict[str, Any]:
    """An event of an HTTP API, payload 2.0."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "localhost", "x-api-key": token, "content-type": "application/json"},
        "requestContext": {
            "requestId": "request",
            "timeEpoch": int(time.time() * 1000),
            "http": {"method": "GET" if body is None else "POST", "path": path, "sourceIp": "127.0.0.1"},
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def _imported(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(name)


def parts(questions: list[str]) -> list[tuple[str, str, float]]:
    """The parts of INIT, of the first `/rag`, and of a second one."""
    clock = Clock()
    for name, modules in INIT:
        clock.time("INIT", name, lambda modules=modules: _imported(modules))
    from cragside.bootstrap import Container
    from cragside.entrypoints.aws_lambda.function import Function
    from cragside.entrypoints.http.app import create_app
    from cragside.settings import load_settings

    container = Container(load_settings())
    function = clock.time("INIT", "building the application", lambda: Function(create_app(container), container))
    for name, modules in FIRST:
        clock.time("first", name, lambda modules=modules: _imported(modules))
    run: Callable[..., Any] = function._runner.run  # the function's event loop
    clock.time("first", "building the use case", lambda: container.enricher)
    clock.time("first", "compiling the graph", lambda: run(container.finder.prepare()))
    clock.time("first", "opening the store", lambda: run(container.workspaces.prepare(container.settings.workspace)))

    from cragside.adapters.aws.secrets import _client
    from cragside.adapters.embedded.embedder import WordLlamaEmbedder

    clock.time("first", "loading the embedded model", lambda: WordLlamaEmbedder().encode(["bees"]))
    for phase, question in zip(("first", "second"), questions, strict=False):
        body = {"prompt": f"/rag {question}"}
        clock.time(phase, "the query itself", lambda body=body: run(container.enricher.enrich(body)))
    # Lambda's runtime includes boto3.
    clock.time("token", "boto3 and a client, if a secret holds the token", lambda: _client("secretsmanager"))
    return clock.parts


def cold(questions: list[str], token: str) -> dict[str, float]:
    """Milliseconds of CPU of INIT and, if there is a question, of the first `/rag`."""
    began = time.process_time()
    handler = import_module("handler").handler
    loaded = time.process_time()
    taken = {"init": (loaded - began) * 1000}
    for question in questions[:1]:
        answer = handler(event("/v1/enrich", {"prompt": f"/rag {question}"}, token), Context())
        if answer["statusCode"] != 200:
            raise SystemExit(answer["body"])
        taken["first"] = (time.process_time() - loaded) * 1000
    return taken


def warm(questions: list[str], token: str) -> dict[str, float]:
    """Medians in ms of an event through the handler, and of a similar question sent to the application directly."""
    from cragside.application.contract import enhanced_request
    from cragside.bootstrap import Container
    from cragside.entrypoints.aws_lambda.function import Function
    from cragside.entrypoints.aws_lambda.runtime import observed
    from cragside.entrypoints.http.app import create_app
    from cragside.settings import load_settings

    container = Container(load_settings())
    function = Function(create_app(container), container)
    handler = observed(function.answer)
    taken: dict[str, list[float]] = {"handler": [], "application": []}

    async def directly(body: dict[str, Any]) -> None:
        enhanced_request(await container.enricher.enrich(body))

    for number, question in enumerate(questions):
        body = {"prompt": f"/rag {question}"}
        asked = event("/v1/enrich", body, token)
        began = time.perf_counter()
        if number % 2:
            function._runner.run(directly(body))
        else:
            answer = handler(asked, Context())
            if answer["statusCode"] != 200:
                raise SystemExit(answer["body"])
        if number >= 20:
            taken["application" if number % 2 else "handler"].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> None:
    """Read questions as a JSON list from standard input; print the figures as the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["cold", "parts", "warm"])
    parser.add_argument("--token", default="")
    arguments = parser.parse_args()
    questions = json.load(sys.stdin)
    if arguments.what == "parts":
        print(json.dumps(parts(questions)))
        return
    measure = cold if arguments.what == "cold" else warm
    print(json.dumps(measure(questions, arguments.token)))


if __name__ == "__main__":
    main()
