"""The corrective graph: retrieve -> grade -> inject, or grade -> transform query -> web search -> inject.

A question within a conversation is completed first. Each step calls one port or the domain, within its share of the
deadline, and degrades instead of failing.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Literal, Protocol

from cragside.application.grading import GRADE_SHARE, by_relevance, by_score, compressed, within
from cragside.crag.langgraph import END, START, Runtime, StateGraph
from cragside.crag.state import CragContext, CragState
from cragside.domain.context import Order, PackedContext, pack
from cragside.domain.dating import are_dated_apart, later_first
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import (
    CANDIDATES_OF_A_LIST,
    MOST_CLOSEST,
    NO_ROOM,
    PLACES_OF_A_LIST,
    Asked,
    Degradation,
    Step,
    considered,
    left_out,
    nearest_question,
    nothing_on,
    one_for_each,
)
from cragside.domain.preferences import doubting
from cragside.domain.query import LONGEST_QUERY, SimilaritySearch
from cragside.domain.reading import Reading
from cragside.domain.verdict import PLAUSIBLE, document_of_evidence, varied
from cragside.ports.models import EMBEDDED_GRADER

Update = dict[str, Any]


class Node(Protocol):
    """A step of the graph."""

    __name__: str

    async def __call__(self, state: CragState, runtime: Runtime[CragContext]) -> Update:
        """Return the changes of the state."""


# Each step's share of the remaining time; that of grading is `GRADE_SHARE`. Completing a question is a short call.
# Retrieval must leave enough for a search.
COMPLETE_SHARE = 0.2
RETRIEVE_SHARE = 0.4
TRANSFORM_SHARE = 0.4
SEARCH_SHARE = 0.9
CLOSEST_SHARE = 0.5

# What a watched run tells of each node: the name of the step, and what it found.
_STEPS: Mapping[str, tuple[str, Callable[[Update], Update]]] = {
    "complete_question": ("complete", lambda update: {"question": update["question"]}),
    "retrieve": ("retrieve", lambda update: {"passages": len(update["local"])}),
    "grade": ("grade", lambda update: {"grader": update.get("grader"), "asked": update.get("judge_calls", 0)}),
    "transform_query": ("rewrite", lambda update: {"query": update["search_query"]}),
    "web_search": (
        "search",
        lambda update: {"searched": update["search_performed"], "passages": len(update["web"] or [])},
    ),
    "inject": ("inject", lambda update: {"passages": len(update["evidence"])}),
}


def timed(node: Node) -> Node:
    """Wrap a node so that it reports its time in milliseconds, and its step to those who watch the run."""

    @wraps(node)
    async def run(state: CragState, runtime: Runtime[CragContext]) -> Update:
        started = time.perf_counter()
        update = await node(state, runtime)
        spent = (time.perf_counter() - started) * 1000
        if runtime.context.request.watch is not None:
            name, facts = _STEPS[node.__name__]
            lost = tuple(degradation.component for degradation in update.get("degraded", ()))
            runtime.context.request.watch(Step(name, spent, facts(update), lost))
        return {**update, "timings_ms": {node.__name__: spent}}

    return run


@timed
async def complete_question(state: CragState, runtime: Runtime[CragContext]) -> Update:
    """Make the question stand alone. Rules replace a model that fails."""
    context, question, turns = runtime.context, state["question"], runtime.context.request.turns
    completing = context.tools.follow_ups.standalone(question, turns, model=context.request.model)
    degraded: list[Degradation] = []
    try:
        found = await within(context.request.deadline.share(COMPLETE_SHARE), "conversation", completing)
    except ServiceUnavailable as error:
        found = await context.tools.embedded_follow_ups.standalone(question, turns, model=None)
        degraded = [Degradation("conversation", f"{error.message.rstrip('.')}. Rules completed the question.")]
    return {"question": found, "degraded": degraded}


@timed
async def retrieve(state: CragState, runtime: Runtime[CragContext]) -> Update:
    """Find candidate passages in the workspace, for the question and each of its parts."""
    context, question = runtime.context, state["question"]
    asked = context.tools.read_parts(question)
    most = context.tools.candidates * (CANDIDATES_OF_A_LIST if asked.a_list else 1)

    async def candidates() -> dict[str, tuple[Reading, list[Document]]]:
        repository = (await context.tools.workspaces.open(context.request.workspace)).passages
        each = -(-context.tools.candidates // 2)
        searches = [repository.look_up(question, limit=most)]
        searches += [repository.look_up(part.question, limit=each) for part in asked.parts]
        questions = (question, *(part.question for part in asked.parts))
        return dict(zip(questions, await asyncio.gather(*searches), strict=True))

    with left_out() as missing:
        try:
            found = await within(context.request.deadline.share(RETRIEVE_SHARE), "knowledge_base", candidates())
        except ServiceUnavailable as error:
            # Whichever part failed, the store or the embedding model, the knowledge base did not answer.
            lost = Degradation("knowledge_base", error.message)
            return {"local": [], "asked": asked, "reading": Reading(question), "degraded": [*missing, lost]}
    return {**_divided(question, asked, found), "asked": asked, "degraded": missing}


def _divided(question: str, asked: Asked, found: Mapping[str, tuple[Reading, list[Document]]]) -> Update:
    """Return all passages, and for each that is nearer to a part than to the question, how that part was read."""
    divided = nearest_question({each: documents for each, (_, documents) in found.items()})
    alone = [part.question for part in asked.parts if part.graded_alone]
    return {
        "reading": found[question][0],
        "local": [document for documents in divided.values() for document in documents],
        "part_of": {document.id: found[part][0] for part in alone for document in divided[part]},
    }


@timed
async def grade(state: CragState, runtime: Runtime[CragContext]) -> Update:
    """Grade each passage with the probability that it is relevant.

    If it is so set, a search of the web begins before a model is asked about passages.
    """
    context, documents = runtime.context, state["local"]
    if not documents:
        return {}

    def search_early() -> None:
        if context.early is not None:
            context.early.begin(context.tools.embedded_rewrite(state["question"]))

    part_of = state.get("part_of", {})
    by_reading: dict[str, tuple[Reading, list[Document]]] = {}
    for document in documents:
        reading = part_of.get(document.id, state["reading"])
        by_reading.setdefault(reading.text, (reading, []))[1].append(document)
    seconds = context.request.deadline.share(GRADE_SHARE)
    outcomes = await asyncio.gather(
        *(
            context.tools.grading.graded(
                reading,
                some,
                seconds=seconds,
                threshold=context.policy.threshold,
                model=context.request.model,
                before_judging=search_early,
            )
            for reading, some in by_reading.values()
        )
    )
    graders = [each.grader for each in outcomes]
    return {
        "local": by_score([document for each in outcomes for document in each.documents]),
        "grader": EMBEDDED_GRADER if EMBEDDED_GRADER in graders else graders[0],
        "judgements": {key: judgement for each in outcomes for key, judgement in each.judgements.items()},
        "judge": next((each.judge for each in outcomes if each.judge), None),
        "judge_calls": sum(each.asked for each in outcomes),
        "degraded": list(next((each.degraded for each in outcomes if each.degraded), ())),
    }


@timed
async def transform_query(state: CragState, runtime: Runtime[CragContext]) -> Update:
    """Turn the question into a query for a search engine, unless a search for it has begun."""
    context, question = runtime.context, state["question"]
    if context.tools.search is None:
        return {"search_query": question}
    if context.early is not None and context.early.query is not None:
        return {"search_query": context.early.query}
    rewriting = context.tools.search.transform_query(question, model=context.request.model)
    try:
        return {"search_query": await within(context.request.deadline.share(TRANSFORM_SHARE), "rewriter", rewriting)}
    except ServiceUnavailable as error:
        reason = f"{error.message.rstrip('.')}. The question was shortened by rules."
        return {"search_query": context.tools.embedded_rewrite(question), "degraded": [Degradation("rewriter", reason)]}


@timed
async def web_search(state: CragState, runtime: Runtime[CragContext]) -> Update:
    """Search the web. The embedded grader rates the pages, which saves a model call."""
    context = runtime.context
    if context.tools.search is None:
        reason = "SEARXNG_HOST is not set, so the web was not searched."
        return {"web": None, "search_performed": False, "degraded": [Degradation("search", reason)]}
    search = context.tools.search.search if context.early is None else context.early.results
    searching = search(state["search_query"])
    try:
        results = await within(context.request.deadline.share(SEARCH_SHARE), "search", searching)
    except ServiceUnavailable as error:
        return {"web": None, "search_performed": True, "degraded": [Degradation("search", error.message)]}
    documents = [_page(result) for result in results if str(result.get("content", "")).strip()]
    scores = await context.tools.embedded_grader.grade(state["question"], documents)
    return {"web": by_relevance(documents, scores), "search_performed": True}


@timed
async def inject(state: CragState, runtime: Runtime[CragContext]) -> Update:
    """Pack the best evidence into one block. If there is none, name the nearest local passages."""
    context = runtime.context
    local, web, asked = state["local"], state.get("web", []), state["asked"]
    good = context.policy.beside(local) if asked.several else context.policy.passing(local)
    chosen = [*good, *context.policy.plausible(web or [])]
    weak = not chosen and web is None
    if weak:
        chosen = context.policy.best_effort(local)
    if asked.parts:
        chosen = one_for_each(chosen, {key: part.text for key, part in state.get("part_of", {}).items()})
    most = context.request.max_documents * (PLACES_OF_A_LIST if asked.a_list else 1)
    placed = varied(chosen, most, document_of_evidence)
    # Scores give the places. A document may claim any date, so dates only order the passages that got one.
    ordered: Order = list
    if are_dated_apart(placed):
        found = await context.tools.near_words(state["reading"].text, placed)
        words = {document.id: near for document, near in zip(placed, found, strict=True)}

        def ordered(fitting: Sequence[Document]) -> Sequence[Document]:
            found = [words[document.id] for document in fitting]
            return later_first(state["question"], fitting, found, context.policy.threshold)

    instruction = doubting(context.request.instruction) if weak else context.request.instruction
    best, packed = await _packed(placed, state, context, instruction, ordered)
    update: Update = {"block": packed.block, "evidence": packed.documents, "closest": ()}
    if not chosen:
        nearest = varied(local or await _nearest(state, context), MOST_CLOSEST, document_of_evidence)
        update["closest"] = (await _packed(nearest, state, context, context.request.instruction))[1].documents
    elif not packed.documents:
        update["degraded"] = [NO_ROOM]
    elif unnamed := context.tools.unnamed(asked, packed.documents):
        update["degraded"] = [nothing_on(unnamed)]
    if context.request.watch is not None:
        update["candidates"] = considered(
            local,
            web or [],
            graders=(state.get("grader"), EMBEDDED_GRADER),
            judgements=state.get("judgements", {}),
            needed=(context.policy.weak if weak else context.policy.threshold, PLAUSIBLE),
            best=best,
            packed=packed.documents,
        )
    return update


async def _nearest(state: CragState, context: CragContext) -> list[Document]:
    """Return the passages nearest to a question for which retrieval found nothing. None after an outage."""
    question, tools = state["reading"].text, context.tools
    if any(lost.component == "knowledge_base" for lost in state.get("degraded", ())):
        return []

    async def similar() -> list[Document]:
        repository = (await tools.workspaces.open(context.request.workspace)).passages
        search = SimilaritySearch(question[:LONGEST_QUERY], limit=MOST_CLOSEST, threshold=0.0)
        return await repository.similar(search)

    try:
        found = await within(context.request.deadline.share(CLOSEST_SHARE), "knowledge_base", similar())
    except ServiceUnavailable:
        return []
    return by_relevance(found, await tools.embedded_grader.grade(question, found))


async def _packed(
    best: Sequence[Document], state: CragState, context: CragContext, instruction: str, ordered: Order = list
) -> tuple[Sequence[Document], PackedContext]:
    """Return the documents, shortened if asked for, and the block with those of them that the budget allows."""
    tools = context.tools
    if context.request.compress:
        best = await compressed(state["reading"], best, tools.embedded_grader)
    budget = context.request.evidence_tokens
    return best, pack(best, budget=budget, count_tokens=tools.count_tokens, instruction=instruction, ordered=ordered)


def _page(result: dict[str, Any]) -> Document:
    url = str(result["url"])
    identifier = "web-" + hashlib.sha256(url.encode()).hexdigest()[:16]
    return Document(identifier, str(result["content"]), "web", title=str(result.get("title", "")), url=url)


async def after_grading(state: CragState, runtime: Runtime[CragContext]) -> Literal["inject", "transform_query"]:
    """Inject if the local evidence suffices and names each thing of the question, else correct it with the web.

    It is a coroutine because LangGraph runs plain functions in a thread.
    """
    started = time.perf_counter()
    context, local = runtime.context, state["local"]
    enough = context.policy.suffices(local) and not context.tools.unnamed(state["asked"], context.policy.beside(local))
    if context.request.watch is not None:
        passed = {"next": "inject" if enough else "rewrite"}
        context.request.watch(Step("decide", (time.perf_counter() - started) * 1000, passed))
    return "inject" if enough else "transform_query"


@cache
def build_graph(*, conversation: bool = True) -> Any:
    """Return the compiled graph, one for all. It holds no ports; each run brings its own.

    Without a conversation, it begins with `retrieve`. A branch in one graph would cost each request 0.3 ms.
    """
    graph = StateGraph(CragState, context_schema=CragContext)
    for node in (retrieve, grade, transform_query, web_search, inject):
        graph.add_node(node.__name__, node)
    if conversation:
        graph.add_node("complete_question", complete_question)
        graph.add_edge(START, "complete_question")
        graph.add_edge("complete_question", "retrieve")
    else:
        graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", after_grading)
    graph.add_edge("transform_query", "web_search")
    graph.add_edge("web_search", "inject")
    graph.add_edge("inject", END)
    return graph.compile()
