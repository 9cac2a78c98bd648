"""Forwards requests to Ollama, with evidence for those that ask for it."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from starlette.types import Receive, Scope, Send

from cragside.application.allowance import allow
from cragside.bootstrap import Container
from cragside.domain import hops
from cragside.domain.errors import CragsideError, Forbidden, ServiceUnavailable, Unauthorized
from cragside.domain.explanation import Explanation
from cragside.domain.outcome import Watch
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.client_gone import ClientGone, while_connected
from cragside.entrypoints.followed_runs import followed
from cragside.entrypoints.http.cross_origin import cors_send, cors_send_if_accepted
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.origins import FOREIGN_PAGE, Origins
from cragside.entrypoints.proxy.asking import Asking
from cragside.entrypoints.proxy.codings import Unpacked, coding_of, decoded
from cragside.entrypoints.proxy.context_window import with_kept_window
from cragside.entrypoints.proxy.enrichment import RequestEnricher
from cragside.entrypoints.proxy.errors import answer, code_of
from cragside.entrypoints.proxy.exchanges import Exchanges, Recording
from cragside.entrypoints.proxy.explaining import send_explanation
from cragside.entrypoints.proxy.headers import Header, hops_of
from cragside.entrypoints.proxy.model_names import (
    NAMING_ROUTES,
    SuffixedList,
    is_list,
    unsuffixed_path,
    without_suffix,
)
from cragside.entrypoints.proxy.own_answers import own_answer
from cragside.entrypoints.proxy.passages import passages_of
from cragside.entrypoints.proxy.prompts import Asked
from cragside.entrypoints.proxy.relay import BrokenOff, relay
from cragside.entrypoints.proxy.request_body import Body, parsed_if_bounded, read_body
from cragside.entrypoints.proxy.shapes import OLLAMA_ROUTES, ROUTES
from cragside.entrypoints.proxy.shown_evidence import ShownEvidence
from cragside.entrypoints.proxy.upstream import Upstream
from cragside.entrypoints.rag_headers import context_asked, wish_of

logger = logging.getLogger(__name__)

# How the host is called, and what to do if it does not answer.
_OLLAMA = "Ollama", "Start it with `ollama serve`, or set OLLAMA_BASE_URL to where it runs."
_OPENAI = "The model host", "Start it, or set RAG_MODEL_HOST to where it runs."
# Tells the client that a command in its request was not seen.
_UNREAD = ((b"x-rag-degraded", b"request"),)


@dataclass(slots=True)
class _Call:
    """A request that may carry a prompt, and what its token opens."""

    grant: Grant
    scope: Scope
    receive: Receive
    send: Send
    read: "_Read"
    asked: Asked | None
    added: Sequence[Header] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    """A body with the model's name as Ollama knows it. `suffixed`: that name differed, so `body` is not the client's.

    `text` is the body without its content coding. It is None for a body that cannot be read.
    """

    body: Body
    text: bytes | None
    suffixed: bool = False


class Forwarder:
    """Forwards requests to Ollama. Enriches those with the command, and records exchanges for memory."""

    def __init__(self, container: Container, origins: Origins, audit: Audit) -> None:
        settings = container.settings
        self._origins = origins
        self._audit = audit
        self._upstream = Upstream(settings.upstream, container.upstream_key)
        self._host, self._remedy = _OPENAI if settings.openai_address else _OLLAMA
        self._container = container
        self._asking = Asking(container)
        self._lists_suffixed = settings.list_rag_models
        self._enricher = RequestEnricher(container)
        self._body_limit = settings.max_body_bytes
        self._default_workspace = settings.workspace
        self._path_prefix = settings.path_prefix or ""
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

    async def forward(self, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and its answer back.

        With a credential of cragside's own the host cannot tell a page from a program, so pages are judged here.
        """
        with hops.answering(hops_of(scope["headers"])):
            await self._forward(grant, scope, receive, send)

    async def refuse_loop(self, path: str, send: Send) -> None:
        """Refuse a request that came back here."""
        logger.warning("%s at %s leads back to cragside itself.", self._host, self._upstream.address)
        await answer(send, path, "loop_detected", f"{self._host} leads back to cragside itself. {self._remedy}")

    async def _forward(self, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._upstream.has_credential:
                if not self._origins.may_ask(scope["headers"]):
                    raise Forbidden(FOREIGN_PAGE)
                send = cors_send(send, scope["headers"])
            if scope["method"] == "POST" and scope["path"] in ROUTES:
                await self._prompt(grant, scope, receive, send)
            elif scope["method"] == "POST" and scope["path"] in NAMING_ROUTES:
                await self._pass_on(_Call(grant, scope, receive, send, await self._read(scope, receive), None))
            elif self._lists_suffixed and is_list(scope):
                await self._list(grant, scope, receive, send)
            else:
                scope = unsuffixed_path(scope)
                await relay(self._upstream, scope, receive, send, await read_body(receive, 0), dropped=grant.headers)
        except ClientGone:
            pass
        except BrokenOff as event:
            # Returning without a last message makes the server cut the client's connection: no clean end is pretended.
            logger.warning("%s at %s broke off during an answer: %s.", self._host, self._upstream.address, event)
        except CragsideError as error:
            scope.setdefault("state", {})["refused"] = isinstance(error, (Forbidden, Unauthorized))
            sending = cors_send_if_accepted(send, scope["headers"], self._origins)
            await answer(sending, scope["path"], code_of(error), self._message(for_client(error)))

    async def _list(self, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        listing = SuffixedList(send, scope["path"])
        try:
            await relay(
                self._upstream, scope, receive, Unpacked(listing), Body(b"", complete=True), dropped=grant.headers
            )
        except BrokenOff as event:
            if listing.begun:
                raise
            raise ServiceUnavailable("ollama", str(event)) from event

    async def _prompt(self, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        read = await self._read(scope, receive)
        # A page that Ollama does not accept gets no evidence, and what it sends is not remembered.
        welcome = self._origins.may_ask(scope["headers"])
        call = _Call(grant, scope, receive, send, read, None)
        if read.text is not None:
            call.asked = await self._asking.asked(grant, scope, read.text, suffixed=read.suffixed, welcome=welcome)
        elif wish_of(scope["headers"]) != "never":  # the command may stand in there
            call.added = _UNREAD
        asked = call.asked
        if asked is not None and not welcome:
            await answer(send, scope["path"], "forbidden", FOREIGN_PAGE)
        elif asked is not None and asked.why:
            await self._explain(call, asked)
        elif self._exchanges is not None and welcome and read.text is not None and grant.allows("write"):
            await self._record(self._exchanges, call, read.text)
        else:
            await self._pass_on(call)

    async def _read(self, scope: Scope, receive: Receive) -> _Read:
        body = await read_body(receive, self._body_limit)
        short = body.complete and len(body.data) <= self._body_limit
        text = decoded(body.data, coding_of(scope["headers"]), self._body_limit) if short else None
        changed = None if text is None else without_suffix(text)
        return _Read(body, text) if changed is None else _Read(Body(changed, complete=True), changed, suffixed=True)

    async def _pass_on(self, call: _Call) -> None:
        if call.asked is None:
            kept = self._in_kept_window(call)
            await relay(
                self._upstream,
                call.scope,
                call.receive,
                call.send,
                kept or call.read.body,
                dropped=call.grant.headers,
                replaced=call.read.suffixed or kept is not None,
                added=call.added,
            )
        else:
            await self._enrich(call, call.asked)

    def _in_kept_window(self, call: _Call) -> Body | None:
        """The body with the window that its model keeps. None if it stays as it is."""
        text = call.read.text
        if call.scope["path"] not in OLLAMA_ROUTES or text is None:
            return None
        windows = self._container.upstream.windows
        request = parsed_if_bounded(text) if windows else None
        changed = with_kept_window(request, windows) if request else None
        return Body(json.dumps(changed).encode(), complete=True) if changed else None

    async def _record(self, exchanges: Exchanges, call: _Call, request: bytes) -> None:
        """Pass the request on, and put the exchange into memory once it is complete."""
        scope, named = call.scope, None if call.asked is None else call.asked.request.get("workspace")
        try:
            writing = call.grant.narrowed("write")
            workspace = workspace_of(writing, scope["headers"], named, self._default_workspace)
        except CragsideError:  # the exchange has no workspace; the request itself may still be valid
            await self._pass_on(call)
            return
        allow(writing.allowance(workspace))
        recording = exchanges.record(
            call.send, path=scope["path"], headers=scope["headers"], request=request, workspace=workspace
        )
        if self._audit.wanted:
            recording.remembered = partial(self._note_exchange, scope, writing, workspace)
        call.send = recording
        try:
            await self._pass_on(call)
        finally:
            recording.finish()

    def _note_exchange(self, scope: Scope, grant: Grant, workspace: str, document: str | None) -> None:
        documents = [] if document is None else [document]
        self._audit.note(scope, "ingest", 202, grant=grant, workspace=workspace, documents=documents)

    def _workspace(self, call: _Call, asked: Asked) -> str:
        """The workspace to ask."""
        headers, named = call.scope["headers"], asked.request.get("workspace")
        workspace = workspace_of(call.grant.narrowed("read"), headers, named, self._default_workspace)
        call.scope["state"]["workspace"] = workspace
        return workspace

    async def _explain(self, call: _Call, asked: Asked) -> None:
        """Answer with the explanation. Ollama gets nothing, and there is no exchange to remember."""
        scope, headers = call.scope, call.scope["headers"]
        workspace = self._workspace(call, asked)

        async def run(watch: Watch) -> Explanation:
            explanation = await self._enricher.explain(scope["path"], asked, headers, workspace, watch)
            scope["state"]["rag_context"] = explanation.context
            return explanation

        answer = own_answer(scope["path"], asked.request)
        sending = send_explanation(cors_send(call.send, headers), scope["path"], answer, followed(run))
        await while_connected(call.receive, sending)

    async def _enrich(self, call: _Call, asked: Asked) -> None:
        scope, headers = call.scope, call.scope["headers"]
        workspace, shown = self._workspace(call, asked), context_asked(headers)
        work = self._enricher.enrich(scope["path"], asked, headers, workspace)
        enriched = await while_connected(call.receive, work)
        scope["state"]["rag_context"] = enriched.context
        if isinstance(call.send, Recording):
            call.send.recalled = enriched.recalled
        sending: Send = cors_send(call.send, headers)
        if shown and enriched.context is not None:
            passages = passages_of(enriched.context, scope, self._path_prefix)
            sending = Unpacked(ShownEvidence(sending, scope["path"], passages))
        await relay(
            self._upstream,
            scope,
            call.receive,
            sending,
            Body(enriched.body, complete=True),
            dropped=call.grant.headers,
            replaced=True,
            added=enriched.headers,
        )

    def _message(self, error: CragsideError) -> str:
        if code_of(error) != "bad_gateway":
            return error.message
        logger.warning("%s at %s does not answer: %s.", self._host, self._upstream.address, error.message)
        return f"{self._host} does not answer ({error.message}). {self._remedy}"
