"""The corrective graph: retrieve -> grade -> inject, or grade -> transform query -> web search -> inject."""

from typing import Any

from langgraph.graph import END, START, StateGraph

from cragside.crag import nodes
from cragside.crag.routes import after_grading
from cragside.crag.state import CragContext, CragState


def build_graph() -> Any:
    """The compiled graph. It holds no ports: they come with each run."""
    graph = StateGraph(CragState, context_schema=CragContext)
    for node in (nodes.retrieve, nodes.grade, nodes.transform_query, nodes.web_search, nodes.inject):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", after_grading)
    graph.add_edge("transform_query", "web_search")
    graph.add_edge("web_search", "inject")
    graph.add_edge("inject", END)
    return graph.compile()
