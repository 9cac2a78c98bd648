"""Evidence by similarity alone, where something is in the way."""

from typing import Any, cast

from cragside.adapters.embedded.follow_up import EmbeddedFollowUps
from cragside.application.enricher import EvidenceRequest
from cragside.application.grading import Deadline
from cragside.application.passages import Retriever
from cragside.application.similar_evidence import SimilarEvidence
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import NO_ROOM, Degradation, Findings
from cragside.domain.query import SimilaritySearch

KELP = Document("kelp", "kelp grows " + "fast " * 100, "local")


class ScriptedRetriever:
    """Finds this passage, or fails."""

    def __init__(self, found: Document | Exception) -> None:
        self._found = found

    async def search_for(self, question: str, *, workspace: str) -> SimilaritySearch:
        return SimilaritySearch(question, limit=5, threshold=0.3)

    async def search(self, search: SimilaritySearch, **given: Any) -> list[Document]:
        if isinstance(self._found, Exception):
            raise self._found
        return [self._found]


async def find(found: Document | Exception, tokens: int) -> Findings:
    finder = SimilarEvidence(
        cast(Retriever, ScriptedRetriever(found)), EmbeddedFollowUps(), count_tokens=lambda text: len(text.split())
    )
    return await finder.find(EvidenceRequest("kelp?", "default", Deadline(5), tokens, instruction=""))


async def test_evidence_that_has_no_room_is_told_and_left_out() -> None:
    assert (await find(KELP, tokens=1000)).documents == (KELP,)
    findings = await find(KELP, tokens=10)
    assert (findings.block, findings.documents, findings.degraded) == ("", (), (NO_ROOM,))


async def test_a_knowledge_base_that_is_down_is_told_and_gives_no_evidence() -> None:
    findings = await find(ServiceUnavailable("knowledge_base", "The disk is full."), tokens=1000)
    assert (findings.block, findings.documents) == ("", ())
    assert findings.degraded == (Degradation("knowledge_base", "The disk is full."),)
