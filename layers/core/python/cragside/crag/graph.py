"""The corrective graph: retrieve -> grade -> inject, or grade -> transform query -> web search -> inject.

A question within a conversation is completed first.
"""

import time
from functools import cache
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from cragside.crag import nodes
from cragside.crag.state import CragContext, CragState
from cragside.domain.steps import Step


async def after_grading(state: CragState, runtime: Runtime[CragContext]) -> Literal["inject", "transform_query"]:
    """Inject if the local evidence suffices and names each thing of the question, else correct it with the web.

    It is a coroutine because LangGraph runs plain functions in a thread.
    """
    started = time.perf_counter()
    context, local = runtime.context, state["local"]
    enough = context.policy.suffices(local) and not context.tools.unnamed(state["asked"], context.policy.beside(local))
    if context.watch is not None:
        passed = {"next": "inject" if enough else "rewrite"}
        context.watch(Step("decide", (time.perf_counter() - started) * 1000, passed))
    return "inject" if enough else "transform_query"


@cache
def build_graph(*, conversation: bool = True) -> Any:
    """The compiled graph, one for all. It holds no ports; each run brings its own.

    Without a conversation, it begins with `retrieve`. A branch in one graph would cost each request 0.3 ms.
    """
    graph = StateGraph(CragState, context_schema=CragContext)
    for node in (nodes.retrieve, nodes.grade, nodes.transform_query, nodes.web_search, nodes.inject):
        graph.add_node(node.__name__, node)
    if conversation:
        graph.add_node("complete_question", nodes.complete_question)
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
