"""Calls a rerank endpoint. What it answers is not trusted, and no message quotes it: it could quote the key."""

import asyncio
from collections.abc import Sequence
from math import isqrt

import aiohttp

from cragside.adapters.model_host.refusals import SHORTEST_CUT, Refused
from cragside.adapters.renewable import Renewable, Unreadable
from cragside.adapters.rerank.answers import Form, request, scores_in
from cragside.adapters.sessions import PerLoop, body_of, failing_as, session_with
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock

_CONNECT_SECONDS = 5.0
# A question has a shorter deadline of its own.
_ANSWER_SECONDS = 120.0
_MOST_BYTES = 2_000_000
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
        self._clock = clock
        self._form: Form | None = None
        self._longest: int | None = None
        self._longest_until = 0.0
        self._sessions = PerLoop(
            lambda: session_with(
                url,
                connector=aiohttp.TCPConnector(limit=parallel),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                headers={"Accept": "application/json", "User-Agent": "cragside"},
            )
        )

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """A finite score for each text, in their order. Raises `ServiceUnavailable("grader", ...)`."""
        sent = _cut([query, *texts], self._longest if self._clock.monotonic() < self._longest_until else None)
        for again in (True, False):
            try:
                return await self._scores(sent)
            except Refused as refusal:
                if not refusal.may_be_length or max(map(len, sent)) <= SHORTEST_CUT:
                    raise
                # llama.cpp answers 500 to a text that is too long, which may also be a mishap.
                if refusal.status != 500 or not again:
                    break
        return await self._shortened(sent)

    async def close(self) -> None:
        """Close the running loop's connections."""
        await self._sessions.close()

    async def _shortened(self, refused: list[str]) -> list[float]:
        """The scores of texts that were refused, shortened. An endpoint that refuses short ones too is out of order."""
        scores = await self._scores(_cut(refused, SHORTEST_CUT))
        accepted, too_long = SHORTEST_CUT, max(map(len, refused))
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
            if not refusal.may_be_form:
                raise
            try:
                return await self._asked("texts", query, texts)
            except Refused:
                raise refusal from None

    async def _asked(self, form: Form, query: str, texts: Sequence[str]) -> list[float]:
        body = request(form, self._model, query, texts)
        with failing_as(self._down, self.url):
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    answer = await self._signed(body)
            except Unreadable as error:
                raise ServiceUnavailable("grader", str(error)).at(self.url) from error
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
        session = self._sessions.here()
        async with session.post(self.url, json=body, headers=signed, allow_redirects=False) as response:
            if response.status != 200:
                raise self._refused(response.status)
            answer = await body_of(response, _MOST_BYTES)
            if answer is None:
                raise self._down(f"answered more than {_MOST_BYTES:,} bytes")
            return answer

    def _refused(self, status: int) -> Refused:
        redirect = "redirects. Set RAG_RERANK_URL to the address that it redirects to"
        reason = redirect if 300 <= status < 400 else _REASONS.get(status, f"answered {status}")
        return Refused("grader", status, f"The rerank endpoint {reason}").at(self.url)

    def _down(self, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable("grader", f"The rerank endpoint {reason}").at(self.url)


def _cut(texts: Sequence[str], longest: int | None) -> list[str]:
    return [text[:longest] for text in texts]
