"""The function: API Gateway's events in, the routes' answers out, on one event loop for the environment's life."""

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from fastapi import FastAPI
from mangum import Mangum
from mangum.protocols import HTTPCycle
from mangum.types import LambdaHandler

from cragside.bootstrap import Container
from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    PayloadTooLarge,
    ServiceUnavailable,
    ValidationError,
)
from cragside.entrypoints.aws_lambda import snapshot
from cragside.entrypoints.aws_lambda.deadline import seconds_left
from cragside.entrypoints.aws_lambda.observability import Handler, load_tracer, logger, observe, observed
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.http.errors import error_response
from cragside.settings import load_settings

# Lambda returns at most 6 MB, counted after the body has been escaped into the answer's JSON.
MOST_ANSWER_BYTES = 6_000_000
# A body below this cannot exceed the limit: escaping at most doubles ASCII.
_SURELY_FITS = 2_900_000
_NO_ROUTE = "none"
# Content words, so that everything from keywords to grading has something to do.
_QUESTION = "Which documents describe how this knowledge base works?"
# A request for /healthz, to try the routes out with.
_HEALTH = {
    "version": "2.0",
    "rawPath": "/healthz",
    "rawQueryString": "",
    "headers": {"host": "localhost"},
    "requestContext": {"http": {"method": "GET", "path": "/healthz", "sourceIp": "127.0.0.1"}},
    "isBase64Encoded": False,
}


class Function:
    """Answers events of HTTP APIs (payload 1.0 and 2.0), REST APIs and function URLs with an application's routes.

    The event loop turns while an event is answered and stands still in between. What the application opens stays open
    from one event to the next; Lambda ends an environment without a word, so nothing is closed.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._runner = asyncio.Runner()
        self._runner.get_loop()  # now current, so that Mangum makes none of its own
        self._mangum = Mangum(app, lifespan="off")

    def answer(self, event: Any, context: Any) -> dict[str, Any]:
        """The answer to an event; what is no HTTP request is answered as one that cannot be read."""
        began = time.perf_counter()
        state: dict[str, Any] = {}
        answer, route = self._answered(event, context, state)
        observe(route, answer["statusCode"], (time.perf_counter() - began) * 1000, state.get("rag_context"))
        return answer

    def load(self, container: Container) -> None:
        """Load and try out everything that a request needs, and have a snapshot hold no connection and no token."""
        load_tracer()
        self._runner.run(try_out(container))
        self._answered(_HEALTH, None, {})
        snapshot.on_snapshot(before=lambda: self._runner.run(container.disconnect()), after=snapshot.reseed)

    def _answered(self, event: Any, context: Any, state: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The answer and its route; the routes' findings are left in `state`."""
        try:
            adapter = self._adapter(event, context)
            scope, body = adapter.scope, adapter.body
            if context is not None:
                state["ends"] = time.monotonic() + seconds_left(event, context)
        except Exception as error:  # whatever an event may lack
            logger.error("the event is no HTTP request", extra={"kind": type(error).__name__})
            return _refusal(ValidationError("The event is no HTTP request that can be read.")), _NO_ROUTE
        scope["state"] = state
        cycle = HTTPCycle(scope, body)
        self._runner.run(cycle.run(self._app))
        answer = adapter({"status": cycle.status, "headers": cycle.headers, "body": cycle.body})
        return _bounded(answer), getattr(scope.get("route"), "path", _NO_ROUTE)

    def _adapter(self, event: Any, context: Any) -> LambdaHandler:
        if "requestContext" not in event:  # queues, schedules and CloudFront, whose answers have another form
            raise ValidationError("The event has no requestContext.")
        return self._mangum.infer(event, context)


def start() -> Handler:
    """The function of this environment's settings. Raises `ConfigurationError`, which ends INIT."""
    settings = load_settings()
    if not (settings.asks_for_token or settings.allow_anonymous):
        raise ConfigurationError(
            "Whoever reaches the function could ask it. Set RAG_API_TOKEN_SECRET to the ARN of the token's secret, or "
            "RAG_ALLOW_ANONYMOUS=true where the gateway authorises by itself.",
            variable="RAG_API_TOKEN_SECRET",
        )
    container = Container(settings)
    container.issued_tokens()  # a file that cannot be used ends INIT, not each request
    function = Function(create_app(container))
    if snapshot.ahead():
        function.load(container)
    return observed(function.answer)


async def try_out(container: Container) -> None:
    """Load everything and answer a question with it; requests report what is down."""
    await container.prepare()
    with suppress(ServiceUnavailable):
        container.api_token()
    with suppress(ServiceUnavailable):
        await container.enricher.enrich({"prompt": f"{container.settings.command_prefix} {_QUESTION}"})


def _bounded(answer: dict[str, Any]) -> dict[str, Any]:
    if len(answer["body"]) <= _SURELY_FITS or len(json.dumps(answer)) <= MOST_ANSWER_BYTES:
        return answer
    return _refusal(
        PayloadTooLarge(
            f"The answer would exceed the {MOST_ANSWER_BYTES} bytes that a function returns. Send a shorter request.",
            limit=MOST_ANSWER_BYTES,
        )
    )


def _refusal(error: CragsideError) -> dict[str, Any]:
    """The error envelope in the form that every gateway takes."""
    response = error_response(error)
    return {
        "statusCode": response.status_code,
        "headers": {"content-type": "application/json"},
        "body": bytes(response.body).decode(),
        "isBase64Encoded": False,
    }
