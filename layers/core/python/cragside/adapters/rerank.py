"""Grades with a rerank endpoint: TEI, vLLM, llama.cpp's server, Cohere, Jina."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Annotated, Any, Literal

import aiohttp
from pydantic import AliasChoices, BaseModel, FailFast, Field, RootModel, TypeAdapter
from pydantic import ValidationError as Malformed
from typing_extensions import override

from cragside.adapters.http_clients import PerLoop, body_of, failing_as, session_with
from cragside.adapters.model_host.text_host import SHORTEST_CUT, Refused, abridged
from cragside.databases.renewable import Renewable, Unreadable
from cragside.domain.characters import encodable
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.neutral import as_name, as_passage, neutralise
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.models import RERANK_GRADER, RelevanceGrader

# `documents`: vLLM, llama.cpp, Cohere, Jina, LiteLLM. `texts`: Hugging Face's TEI.
Form = Literal["documents", "texts"]


class _Rank(BaseModel):
    index: Annotated[int, Field(ge=0, strict=True)]
    score: Annotated[
        float, Field(allow_inf_nan=False, strict=True, validation_alias=AliasChoices("relevance_score", "score"))
    ]


# Noting what is wrong with each of a million entries takes hundreds of times the memory of an answer.
class _Ranks(RootModel[list[_Rank]]):
    root: Annotated[list[_Rank], FailFast()]


class _Results(BaseModel):
    results: _Ranks


_ANSWER: TypeAdapter[_Ranks | _Results] = TypeAdapter(_Ranks | _Results)


def request(form: Form, model: str | None, query: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return the body of a request."""
    if form == "texts":
        # TEI serves one model, and refuses a text that the model cannot read whole unless it may cut it.
        return {"query": query, "texts": list(texts), "truncate": True}
    return {**({"model": model} if model else {}), "query": query, "documents": list(texts)}


def scores_in(body: bytes, count: int) -> list[float] | None:
    """Return the scores in the order of the texts; None unless the answer has exactly one finite score for each."""
    try:
        answer = _ANSWER.validate_json(body)
    except Malformed:
        return None
    ranks = (answer.results if isinstance(answer, _Results) else answer).root
    scores = {rank.index: rank.score for rank in ranks}
    if len(ranks) != count or scores.keys() != set(range(count)):
        return None
    return [scores[index] for index in range(count)]


Scores = Literal["probability", "logit"]
# Log-odds beyond this are certain in either case, and have no exponential.
_CERTAIN = 40.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Log-odds of a grade = `slope` * log-odds of a score + `intercept`, as `evals/calibrate_reranker.py` fits them.

    `scores` says what an endpoint answers: log-odds, or probabilities. Unfitted, a probability remains what it is.
    """

    scores: Scores = "probability"
    slope: float = 1.0
    intercept: float = 0.0

    def grade(self, score: float) -> float:
        """The grade (0..1) of a score. Raises `ValueError` for a score that is no probability where one is due."""
        odds = self.slope * self.log_odds(score) + self.intercept
        return 1.0 / (1.0 + math.exp(-min(max(odds, -_CERTAIN), _CERTAIN)))

    def log_odds(self, score: float) -> float:
        """Return the log-odds of a score. Raises `ValueError` for a score that is no probability where one is due."""
        if self.scores == "logit":
            return min(max(score, -_CERTAIN), _CERTAIN)
        if not 0.0 <= score <= 1.0:
            raise ValueError("not a probability")
        if score in (0.0, 1.0):
            return _CERTAIN if score else -_CERTAIN
        return min(max(math.log(score / (1.0 - score)), -_CERTAIN), _CERTAIN)


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
        """Return a finite score for each text, in their order. Raises `ServiceUnavailable("grader", ...)`."""
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


_QUESTION_CHARACTERS, _TITLE_CHARACTERS, _DOCUMENT_CHARACTERS = 2000, 200, 4000


class RerankGrader(RelevanceGrader):
    """Grades with a rerank endpoint, whose model reads each document beside the question."""

    name = RERANK_GRADER

    def __init__(self, endpoint: RerankEndpoint, calibration: Calibration) -> None:
        self._endpoint = endpoint
        self._calibration = calibration

    @override
    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        if not documents:
            return []
        asked = encodable(abridged(neutralise(query).strip(), _QUESTION_CHARACTERS))
        scores = await self._endpoint.scores(asked, [_text(document) for document in documents])
        try:
            return [self._calibration.grade(score) for score in scores]
        except ValueError as error:
            message = "The rerank endpoint answered scores outside of 0 to 1. Set RAG_RERANK_SCORES=logit"
            raise ServiceUnavailable("grader", message).at(self._endpoint.url) from error


def _text(document: Document) -> str:
    """Return a document as the model reads it. Rerankers that are chat models know control tokens, so it has none."""
    title = as_name(document.title, _TITLE_CHARACTERS)
    body = as_passage(document.content[: _DOCUMENT_CHARACTERS * 2]).strip()[:_DOCUMENT_CHARACTERS]
    return encodable(f"{title}\n{body}" if title else body)
