"""What was considered as evidence, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cragside.domain.document import Document
from cragside.domain.second_opinion import Judgement

# Why a candidate is not in the prompt: its score, better ones or others of its document took the places, or the token
# budget was used up.
Dropped = Literal["score", "limit", "room"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage or web result that was considered, and the `grader` of its score, which a `judgement` may have moved.

    It was only kept with a score above `needed`; both are None where nothing is graded. `number` is that of its
    citation in the prompt, None if it was `dropped`.
    """

    document: Document
    grader: str | None
    needed: float | None
    number: int | None = None
    dropped: Dropped | None = None
    judgement: Judgement | None = None


def considered(
    local: Sequence[Document],
    web: Sequence[Document],
    *,
    graders: tuple[str | None, str],
    judgements: Mapping[str, Judgement],
    needed: tuple[float, float],
    best: Sequence[Document],
    packed: Sequence[Document],
) -> tuple[Candidate, ...]:
    """What became of each local passage and web result.

    `graders` and `needed` are those of local passages and of web results. `best` had the scores and the places,
    `packed` is in the prompt.
    """
    numbers = {document.id: number for number, document in reversed(list(enumerate(packed, start=1)))}
    placed = {document.id for document in best}
    # What is in the prompt may be marked as earlier than another passage.
    shown = {document.id: document.metadata for document in packed}

    def candidate(document: Document, grader: str | None, least: float) -> Candidate:
        number = numbers.get(document.id)
        dropped: Dropped | None = None
        if number is None:
            enough = (document.score or 0.0) > least
            dropped = "score" if not enough else "room" if document.id in placed else "limit"
        told = replace(document, metadata=shown.get(document.id, document.metadata))
        return Candidate(told, grader, least, number, dropped, judgements.get(document.id))

    return (
        *(candidate(document, graders[0], needed[0]) for document in local),
        *(candidate(document, graders[1], needed[1]) for document in web),
    )
