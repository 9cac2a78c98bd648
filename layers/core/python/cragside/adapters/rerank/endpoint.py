"""Calls a rerank endpoint. What it answers is not trusted, and no message quotes it: it could quote the key."""

import asyncio
from collections.abc import Sequence
from math import isqrt
from weakref import WeakKeyDictionary

import aiohttp

from cragside.adapters.renewable import Renewable, Unreadable
from cragside.adapters.rerank.answers import Form, request, scores_in
from cragside.adapters.sessions import session_with
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.forward_proxy import way_to
from cragside.ports.clock import SYSTEM_CLOCK, Clock

_CONNECT_SECONDS = 5.0
# A question has a shorter deadline of its own.
_ANSWER_SECONDS = 120.0
_MOST_BYTES = 2_000_000
_WRONG_FORM = frozenset({400, 422})
# What servers answer to a text that is longer than the model reads. llama.cpp answers 500, which may also be a mishap:
# then it is asked again.
_TOO_LONG = frozenset({400, 413, 422, 500})
_SHORTEST_CUT = 200
# These narrow an unknown length down to two thirds of what the endpoint reads.
_MORE_ATTEMPTS = 3
# Some texts have a token for each character. They must not shorten all others for ever.
_REMEMBERED_SECONDS = 600.0
_REASONS = {
    401: "refused the key (401). Correct RAG_RERANK_API_KEY",
    403: "refused the key (403). Correct RAG_RERANK_API_KEY",
    404: "answered 404. Correct RAG_RERANK_URL, or RAG_RERANK_MODEL",
    429: "limits our requests (429). Have its limit raised, or lower RAG_OLLAMA_PARALLEL",
}


class Refused(ServiceUnavailable):
    """The endpoint refused a request, as `status` says. `may_be_length`: perhaps because a text is too long."""

    def __init__(self, status: int) -> None:
        redirect = "redirects. Set RAG_RERANK_URL to the address that it redirects to"
        reason = redirect if 300 <= status < 400 else _REASONS.get(status, f"answered {status}")
        super().__init__("grader", f"The rerank endpoint {reason}")
        self.status = status
        # Which text was too long no answer says in a way that all share, nor how long it may be.
        self.may_be_length = status in _TOO_LONG


class RerankEndpoint:
    """Scores texts for a query, in at most `parallel` requests at once.

    It asks in the form of vLLM first. An endpoint that refuses this is asked in TEI's form, from then on always. Where
    it refuses long texts but not short ones, the length that it accepts is found, and longer texts are cut to it.
    """

    def __init__(
        self, url: str, key: Renewable[str], *, model: str | None, parallel: int, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.url = url
        self._key = key
        self._model = model
        self._parallel = parallel
        self._clock = clock
        self._form: Form | None = None
        self._longest: int | None = None
        self._longest_until = 0.0
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """A finite score for each text, in their order. Raises `ServiceUnavailable("grader", ...)`."""
        sent = _cut([query, *texts], self._longest if self._clock.monotonic() < self._longest_until else None)
        for again in (True, False):
            try:
                return await self._scores(sent)
            except Refused as refusal:
                if not refusal.may_be_length or max(map(len, sent)) <= _SHORTEST_CUT:
                    raise
                if refusal.status != 500 or not again:
                    break
        return await self._shortened(sent)

    async def close(self) -> None:
        """Close the running loop's connections."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _shortened(self, refused: list[str]) -> list[float]:
        """The scores of texts that were refused, shortened. An endpoint that refuses short ones too is out of order."""
        scores = await self._scores(_cut(refused, _SHORTEST_CUT))
        accepted, too_long = _SHORTEST_CUT, max(map(len, refused))
        for _ in range(_MORE_ATTEMPTS):
            tried = isqrt(accepted * too_long)
            try:
                scores = await self._scores(_cut(refused, tried))
            except Refused as refusal:
                if not refusal.may_be_length:
                    return scores
                too_long = tried
            except ServiceUnavailable:
                return scores
            else:
                accepted = tried
        # A search that was cut short would shorten the texts of all questions too much.
        self._longest, self._longest_until = accepted, self._clock.monotonic() + _REMEMBERED_SECONDS
        return scores

    async def _scores(self, sent: Sequence[str]) -> list[float]:
        query, *texts = sent
        if self._form is not None:
            return await self._asked(self._form, query, texts)
        try:
            return await self._asked("documents", query, texts)
        except Refused as refusal:
            if refusal.status not in _WRONG_FORM:
                raise
            try:
                return await self._asked("texts", query, texts)
            except Refused:
                raise refusal from None

    async def _asked(self, form: Form, query: str, texts: Sequence[str]) -> list[float]:
        body = request(form, self._model, query, texts)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                answer = await self._signed(body)
        except TimeoutError as error:
            raise self._down("took too long to answer") from error
        except Unreadable as error:
            raise ServiceUnavailable("grader", str(error)).at(self.url) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._down(f"does not answer{way_to(self.url)}") from error
        scores = scores_in(answer, len(texts))
        if scores is None:
            raise self._down("did not answer one score for each passage. Correct RAG_RERANK_URL")
        self._form = form
        return scores

    async def _signed(self, body: dict[str, object]) -> bytes:
        key = await self._key.current()
        try:
            return await self._answer(body, key)
        except Refused as refusal:
            other = await self._key.after_refusal(key) if refusal.status == 401 else None
            if other is None:
                raise
            return await self._answer(body, other)

    async def _answer(self, body: dict[str, object], key: str) -> bytes:
        signed = {"Authorization": f"Bearer {key}"} if key else {}
        async with self._session().post(self.url, json=body, headers=signed, allow_redirects=False) as response:
            if response.status != 200:
                raise Refused(response.status).at(self.url)
            answer = bytearray()
            async for chunk in response.content.iter_chunked(65_536):
                answer += chunk
                if len(answer) > _MOST_BYTES:
                    raise self._down(f"answered more than {_MOST_BYTES:,} bytes")
            return bytes(answer)

    def _down(self, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable("grader", f"The rerank endpoint {reason}").at(self.url)

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = session_with(
                self.url,
                connector=aiohttp.TCPConnector(limit=self._parallel),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                headers={"Accept": "application/json", "User-Agent": "cragside"},
            )
        return session


def _cut(texts: Sequence[str], longest: int | None) -> list[str]:
    return [text[:longest] for text in texts]
