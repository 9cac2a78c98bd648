"""The Lambda function for requests: answers API Gateway's events with our routes."""

import asyncio
import contextlib
import json
import secrets
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
from cragside.domain.hops import plain_id, request_id
from cragside.entrypoints.aws_lambda import runtime as snapshot
from cragside.entrypoints.aws_lambda.runtime import (
    Handler,
    logger,
    observe,
    observe_secrets,
    observed,
    seconds_left,
    traceparent_of,
)
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.http.errors import error_response
from cragside.settings import load_settings

# Lambda returns at most 6 MB, counted after the body has been escaped into the answer's JSON.
MOST_ANSWER_BYTES = 6_000_000
# A body below this cannot exceed the limit: escaping at most doubles ASCII.
_SURELY_FITS = 2_900_000
_NO_ROUTE = "none"
# It has content words, so that keywords, retrieval and grading all have work.
_QUESTION = "Which documents describe how this knowledge base works?"
# A request for /healthz that exercises the routes.
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

    The event loop runs only while an event is answered. What the application opens stays open for the next event.
    Lambda ends an environment without notice, so nothing is closed.
    """

    def __init__(self, app: FastAPI, container: Container) -> None:
        self._app = app
        self._container = container
        self._clock = container.clock
        # A question in another language is no outage, nor is one about a thing that no document has, or a search that
        # is not made without SearXNG.
        self._expected = ("language", "parts", *(() if container.settings.searxng_host else ("search",)))
        self._runner = asyncio.Runner()
        self._runner.get_loop()  # makes it current, so that Mangum does not make another
        self._mangum = Mangum(app, lifespan="off")

    def answer(self, event: Any, context: Any) -> dict[str, Any]:
        """Return the answer to an event. An event that is not an HTTP request gets a validation error."""
        began = time.perf_counter()
        state: dict[str, Any] = {}
        answer, route = self._answered(event, context, state)
        spent = (time.perf_counter() - began) * 1000
        observe(route, answer["statusCode"], spent, state.get("rag_context"), expected=self._expected)
        observe_secrets(unreadable=self._container.unreadable_secret)
        if self._container.tracer is not None:
            self._container.tracer.flush()  # Lambda freezes the thread that sends
        return answer

    def load(self, container: Container) -> None:
        """Load and exercise everything that a request needs. Snapshots contain no connection and no secret."""
        self._runner.run(try_out(container))
        self._answered(_HEALTH, None, {})
        snapshot.on_snapshot(before=lambda: self._runner.run(container.disconnect()), after=snapshot.reseed)

    def _answered(self, event: Any, context: Any, state: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the answer and its route. The routes leave `rag_context` in `state`."""
        try:
            adapter = self._adapter(event, context)
            scope, body = adapter.scope, adapter.body
            if context is not None:
                state["ends"] = self._clock.monotonic() + seconds_left(event, context, self._clock)
        except Exception as error:  # any part of an event may be missing
            logger.error("the event is not an HTTP request", extra={"kind": type(error).__name__})
            return _refusal(ValidationError("The event is not a readable HTTP request.")), _NO_ROUTE
        scope["state"] = state
        cycle = HTTPCycle(scope, body)
        identifier = _id_of(event)
        self._runner.run(self._run(cycle, identifier, traceparent_of(event)))
        headers = [*cycle.headers, [b"x-request-id", identifier.encode()]]
        answer = adapter({"status": cycle.status, "headers": headers, "body": cycle.body})
        return _bounded(answer), getattr(scope.get("route"), "path", _NO_ROUTE)

    async def _run(self, cycle: HTTPCycle, identifier: str, traceparent: str) -> None:
        request_id.set(identifier)
        tracer = self._container.tracer
        with tracer.called(identifier, traceparent) if tracer else contextlib.nullcontext():
            await cycle.run(self._app)

    def _adapter(self, event: Any, context: Any) -> LambdaHandler:
        if "requestContext" not in event:  # events of queues, schedules and CloudFront need other answers
            raise ValidationError("The event has no requestContext.")
        return self._mangum.infer(event, context)


def start() -> Handler:
    """Return the function with the environment's settings. Raises `ConfigurationError`, which ends INIT."""
    settings = load_settings()
    if not (settings.asks_for_token or settings.allow_anonymous):
        raise ConfigurationError(
            "Whoever reaches the function could ask it. Set RAG_API_TOKEN_SECRET to the ARN of the token's secret, or "
            "RAG_ALLOW_ANONYMOUS=true where the gateway authorises by itself.",
            variable="RAG_API_TOKEN_SECRET",
        )
    container = Container(settings)
    container.issued_tokens()  # an unusable file ends INIT instead of failing each request
    function = Function(create_app(container), container)
    if snapshot.ahead():
        function.load(container)
    return observed(function.answer)


async def try_out(container: Container) -> None:
    """Load everything and answer a question with it. What is down is left for requests to report."""
    await container.prepare()
    with suppress(ServiceUnavailable):
        container.api_tokens()
    with suppress(ServiceUnavailable):
        await container.enricher.enrich({"prompt": f"{container.settings.command_prefix} {_QUESTION}"})


def _id_of(event: Any) -> str:
    """Return the gateway's id of the request, which its access log has too."""
    context = event.get("requestContext")
    return plain_id(context.get("requestId") if isinstance(context, dict) else None) or secrets.token_hex(8)


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
    """Return the error envelope in a form that every gateway accepts."""
    response = error_response(error)
    return {
        "statusCode": response.status_code,
        "headers": {"content-type": "application/json"},
        "body": bytes(response.body).decode(),
        "isBase64Encoded": False,
    }
