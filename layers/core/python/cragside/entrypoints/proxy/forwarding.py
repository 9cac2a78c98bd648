"""Forwards requests to Ollama, with evidence for those that ask for it."""

import json
import logging
from collections.abc import Sequence
from functools import partial

from starlette.types import Receive, Scope, Send

from cragside.application.allowance import allow
from cragside.bootstrap import Container
from cragside.domain import hops
from cragside.domain.errors import CragsideError, Forbidden, ServiceUnavailable, Unauthorized
from cragside.domain.explanation import Explanation
from cragside.domain.outcome import Watch
from cragside.domain.tokens import TokenScope
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.http.middleware import cors_send, cors_send_if_accepted
from cragside.entrypoints.origins import FOREIGN_PAGE, Origins
from cragside.entrypoints.proxy.enrichment import RequestEnricher, with_kept_window
from cragside.entrypoints.proxy.errors import code_of, send_error
from cragside.entrypoints.proxy.exchanges import Exchanges, Recording
from cragside.entrypoints.proxy.explaining import own_answer, send_explanation
from cragside.entrypoints.proxy.messages import (
    Header,
    Unpacked,
    coding_of,
    decoded,
    hops_of,
    parsed_if_bounded,
    read_body,
)
from cragside.entrypoints.proxy.model_names import SuffixedList, is_list, unsuffixed_path, without_suffix
from cragside.entrypoints.proxy.prompts import Call, EvidenceRequest, EvidenceRequests
from cragside.entrypoints.proxy.relay import BrokenOff, relay
from cragside.entrypoints.proxy.routes import NAMING_ROUTES, OLLAMA_ROUTES, ROUTES, is_post_to
from cragside.entrypoints.proxy.shown_evidence import ShownEvidence, passages_of
from cragside.entrypoints.proxy.upstream import Upstream
from cragside.entrypoints.request_headers import context_asked, wish_of
from cragside.entrypoints.runs import ClientGone, followed, while_connected

logger = logging.getLogger(__name__)

# How the host is called, and what to do if it does not answer.
_OLLAMA = "Ollama", "Start it with `ollama serve`, or set OLLAMA_BASE_URL to where it runs."
_OPENAI = "The model host", "Start it, or set RAG_MODEL_HOST to where it runs."
# Tells the client that a command in its request was not seen.
_UNREAD = ((b"x-rag-degraded", b"request"),)


class Forwarder:
    """Forwards requests to Ollama. Enriches those with the command, and records exchanges for memory."""

    def __init__(self, container: Container, origins: Origins, audit: Audit) -> None:
        self._container = container
        self._settings = settings = container.settings
        self._origins = origins
        self._audit = audit
        self._upstream = Upstream(settings.upstream, container.upstream_key)
        self._host, self._remedy = _OPENAI if settings.openai_address else _OLLAMA
        self._evidence_requests = EvidenceRequests(container)
        self._enricher = RequestEnricher(container)
        self._exchanges = Exchanges(container.memory, settings.command_prefix) if settings.store_exchanges else None

    async def drain(self) -> None:
        """Wait until pending exchanges are in memory, five seconds at most."""
        if self._exchanges is not None:
            await self._exchanges.drain()

    def close(self) -> None:
        """Close idle connections to Ollama."""
        self._upstream.close()

    def accepts_preflight(self, headers: Sequence[Header]) -> bool:
        """Tell if cragside answers a preflight itself: it does for pages that it accepts in place of the host."""
        return self._origins.lists(headers) or (self._upstream.has_credential and self._origins.may_ask(headers))

    async def refuse_loop(self, path: str, send: Send) -> None:
        """Refuse a request that came back here."""
        logger.warning("%s at %s leads back to cragside itself.", self._host, self._upstream.address)
        await send_error(send, path, "loop_detected", f"{self._host} leads back to cragside itself. {self._remedy}")

    async def forward(self, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and its answer back."""
        try:
            with hops.answering(hops_of(scope["headers"])):
                await self._forward(Call(grant, scope, receive, send))
        except ClientGone:
            pass
        except BrokenOff as event:
            # Returning without a last message makes the server cut the client's connection: no clean end is pretended.
            logger.warning("%s at %s broke off during an answer: %s.", self._host, self._upstream.address, event)
        except CragsideError as error:
            scope.setdefault("state", {})["refused"] = isinstance(error, (Forbidden, Unauthorized))
            sending = cors_send_if_accepted(send, scope["headers"], self._origins)
            await send_error(sending, scope["path"], code_of(error), self._message(for_client(error)))

    async def _forward(self, call: Call) -> None:
        if self._upstream.has_credential:
            # With a credential of cragside's own the host cannot tell a page from a program, so pages are judged here.
            if not self._origins.may_ask(call.headers):
                raise Forbidden(FOREIGN_PAGE)
            call.send = cors_send(call.send, call.headers)
        if is_post_to(ROUTES, call.scope):
            await self._prompt(call)
        elif is_post_to(NAMING_ROUTES, call.scope):
            await self._read(call)
            await self._pass_on(call)
        elif self._settings.list_rag_models and is_list(call.scope):
            await self._list(call)
        else:
            call.scope, call.body = unsuffixed_path(call.scope), await read_body(call.receive, 0)
            await relay(self._upstream, call)

    async def _list(self, call: Call) -> None:
        listing = SuffixedList(call.send, call.path)
        call.send = Unpacked(listing)
        try:
            await relay(self._upstream, call)
        except BrokenOff as event:
            if listing.begun:
                raise
            raise ServiceUnavailable("ollama", str(event)) from event

    async def _prompt(self, call: Call) -> None:
        await self._read(call)
        # A page that Ollama does not accept gets no evidence, and what it sends is not remembered.
        welcome = self._origins.may_ask(call.headers)
        if call.text is not None:
            call.asked = await self._evidence_requests.find(call, call.text, welcome=welcome)
        elif wish_of(call.headers) != "never":  # the command may stand in there
            call.added = _UNREAD
        if call.asked is not None and not welcome:
            await send_error(call.send, call.path, "forbidden", FOREIGN_PAGE)
        elif call.asked is not None and call.asked.why:
            await self._explain(call, call.asked)
        elif self._exchanges is not None and welcome and call.text is not None and call.grant.allows("write"):
            await self._record(self._exchanges, call, call.text)
        else:
            await self._pass_on(call)

    async def _read(self, call: Call) -> None:
        """Read the body, and replace the model's name by the one that Ollama knows."""
        limit = self._settings.max_body_bytes
        call.body = body = await read_body(call.receive, limit)
        if body.complete and len(body.data) <= limit:
            call.text = decoded(body.data, coding_of(call.headers), limit)
        if call.text is not None and (changed := without_suffix(call.text)) is not None:
            call.text = changed
            call.replace(changed)

    async def _pass_on(self, call: Call) -> None:
        if call.asked is not None:
            await self._enrich(call, call.asked)
            return
        windows = self._container.upstream.windows
        if windows and call.text is not None and call.path in OLLAMA_ROUTES:
            request = parsed_if_bounded(call.text)
            if request and (changed := with_kept_window(request, windows)):
                call.replace(json.dumps(changed).encode())
        await relay(self._upstream, call)

    async def _record(self, exchanges: Exchanges, call: Call, request: bytes) -> None:
        """Pass the request on, and put the exchange into memory once it is complete."""
        try:
            writing, workspace = self._workspace(call, "write")
        except CragsideError:  # the exchange has no workspace; the request itself may still be valid
            await self._pass_on(call)
            return
        allow(writing.allowance(workspace))
        scope = call.scope
        call.send = recording = exchanges.record(
            call.send, path=scope["path"], headers=scope["headers"], request=request, workspace=workspace
        )
        if self._audit.wanted:
            recording.remembered = partial(self._audit.note, scope, "ingest", 202, grant=writing, workspace=workspace)
        try:
            await self._pass_on(call)
        finally:
            recording.finish()

    def _workspace(self, call: Call, right: TokenScope) -> tuple[Grant, str]:
        """Return the workspace of a request, and what its token allows there with this right."""
        grant, named = call.grant.narrowed(right), None if call.asked is None else call.asked.request.get("workspace")
        return grant, workspace_of(grant, call.headers, named, self._settings.workspace)

    async def _explain(self, call: Call, asked: EvidenceRequest) -> None:
        """Answer with the explanation. Ollama gets nothing, and there is no exchange to remember."""
        state = call.scope["state"]
        _, state["workspace"] = self._workspace(call, "read")

        async def run(watch: Watch) -> Explanation:
            explanation = await self._enricher.explain(call, asked, state["workspace"], watch)
            state["rag_context"] = explanation.context
            return explanation

        answer = own_answer(call.path, asked.request)
        sending = send_explanation(cors_send(call.send, call.headers), call.path, answer, followed(run))
        await while_connected(call.receive, sending)

    async def _enrich(self, call: Call, asked: EvidenceRequest) -> None:
        state = call.scope["state"]
        _, state["workspace"] = self._workspace(call, "read")
        shown = context_asked(call.headers)
        enriched = await while_connected(call.receive, self._enricher.enrich(call, asked, state["workspace"]))
        state["rag_context"] = context = enriched.rag_context
        if isinstance(call.send, Recording):
            call.send.recalled = tuple(each.content for each in (context.memory or ())) if context else ()
        call.send = cors_send(call.send, call.headers)
        if shown and context is not None:
            passages = passages_of(context, call.scope, self._settings.path_prefix or "")
            call.send = Unpacked(ShownEvidence(call.send, call.path, passages))
        await relay(self._upstream, call)

    def _message(self, error: CragsideError) -> str:
        if code_of(error) != "bad_gateway":
            return error.message
        logger.warning("%s at %s does not answer: %s.", self._host, self._upstream.address, error.message)
        return f"{self._host} does not answer ({error.message}). {self._remedy}"
