"""Questions that ask for several things, and the places of their evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cragside.domain.document import Document
from cragside.domain.neutral import as_name
from cragside.domain.outcome import Degradation

# The most parts that a question is split into. The question itself is searched too.
MOST_PARTS = 4
# How many more candidates and places a question that asks for a list gets than another one.
CANDIDATES_OF_A_LIST, PLACES_OF_A_LIST = 2, 3
_LONGEST_THING = 60


@dataclass(frozen=True, slots=True)
class Part:
    """A question about one of several things. `named` is the thing if evidence has to name it, else "".

    Its passages are `graded_alone`, by this question, or else by the whole one.
    """

    question: str
    named: str = ""
    graded_alone: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a question, if it has two or more, and if it asks for a list."""

    parts: tuple[Part, ...] = ()
    a_list: bool = False

    @property
    def several(self) -> bool:
        """Tell if one passage may not be enough."""
        return self.a_list or bool(self.parts)


ONE_THING = Asked()


def nearest_question(found: Mapping[str, Sequence[Document]]) -> dict[str, list[Document]]:
    """The passages by the question that each has the highest score for. `found` has those of each question."""
    best: dict[str, tuple[str, Document]] = {}
    for question, documents in found.items():
        for document in documents:
            known = best.get(document.id)
            if known is None or (document.score or 0.0) > (known[1].score or 0.0):
                best[document.id] = question, document
    divided: dict[str, list[Document]] = {question: [] for question in found}
    for question, document in best.values():
        divided[question].append(document)
    return divided


def one_for_each(ranked: Sequence[Document], question_of: Mapping[str, str]) -> list[Document]:
    """The passages, best first, but the best one of each question before any second one.

    `question_of` has the question that a passage, given by its id, belongs to. Those of other passages are one more.
    """
    leading: dict[str, Document] = {}
    for document in ranked:
        leading.setdefault(question_of.get(document.id, ""), document)
    first = {document.id for document in leading.values()}
    return sorted(ranked, key=lambda document: document.id not in first)


def nothing_on(things: Sequence[str]) -> Degradation:
    """Tell which things of a question no evidence names."""
    names = ", ".join(f'"{as_name(thing, _LONGEST_THING)}"' for thing in things)
    return Degradation("parts", f"The question asks about {names} too. No passage of the evidence names that.")
