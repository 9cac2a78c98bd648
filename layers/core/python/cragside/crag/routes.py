"""Where the graph goes next; the decision itself is the domain's."""

from typing import Literal

from langgraph.runtime import Runtime

from cragside.crag.state import CragContext, CragState


async def after_grading(state: CragState, runtime: Runtime[CragContext]) -> Literal["inject", "transform_query"]:
    """Inject when the local evidence suffices, else correct it with the web.

    A coroutine, since LangGraph hands plain functions to a thread.
    """
    return "inject" if runtime.context.tools.policy.suffices(state["local"]) else "transform_query"
