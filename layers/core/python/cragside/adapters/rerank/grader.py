"""Grades with a rerank endpoint: one call for all documents."""

from collections.abc import Sequence

from typing_extensions import override

from cragside.adapters.model_host.text import abridged, sendable
from cragside.adapters.rerank.calibration import Calibration
from cragside.adapters.rerank.endpoint import RerankEndpoint
from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.neutral import as_name, as_passage, neutralise
from cragside.ports.models import RERANK_GRADER, RelevanceGrader

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
        asked = sendable(abridged(neutralise(query).strip(), _QUESTION_CHARACTERS))
        scores = await self._endpoint.scores(asked, [_text(document) for document in documents])
        try:
            return [self._calibration.grade(score) for score in scores]
        except ValueError as error:
            message = "The rerank endpoint answered scores outside of 0 to 1. Set RAG_RERANK_SCORES=logit"
            raise ServiceUnavailable("grader", message).at(self._endpoint.url) from error


def _text(document: Document) -> str:
    """A document as the model reads it. Rerankers that are chat models know control tokens, so it has none."""
    title = as_name(document.title, _TITLE_CHARACTERS)
    body = as_passage(document.content[: _DOCUMENT_CHARACTERS * 2]).strip()[:_DOCUMENT_CHARACTERS]
    return sendable(f"{title}\n{body}" if title else body)
