"""The algorithm of LangGraph's corrective RAG tutorial over lightrag-server, without generating the answer.

retrieve -> grade every document in a separate call, yes or no -> if any is irrelevant: transform the query, then search
the web. Reimplemented on LangGraph and ChatOllama, asynchronous throughout, with one client each for the whole run.
This favours the peer over the notebook, which is synchronous. Runs in the peers' environment, makes its requests in
process (without its own server), and prints its latencies as JSON.
"""

import argparse
import asyncio
import json
import sys
import time
from typing import Any, Literal, TypedDict

import aiohttp
import uvloop
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_ollama import ChatOllama
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

DOCUMENTS = 4  # what a LangChain retriever returns unless told otherwise


class Grade(BaseModel):
    """Return True if a document is relevant to a question."""

    binary_score: str = Field(description="'yes' or 'no'")


class State(TypedDict, total=False):
    """The state of the graph."""

    question: str
    documents: list[str]
    search: bool


def build(model: ChatOllama, session: aiohttp.ClientSession, lightrag: str, searxng: str) -> Any:
    """The compiled graph."""
    grader = model.with_structured_output(Grade)

    async def retrieve(state: State) -> State:
        body = {"query": state["question"], "mode": "mix", "chunk_top_k": DOCUMENTS}
        async with session.post(f"{lightrag}/query/data", json=body) as response:
            found = await response.json()
        return {"documents": [chunk["content"] for chunk in found["data"]["chunks"]]}

    async def grade(state: State) -> State:
        kept = []
        for document in state["documents"]:
            verdict = await grader.ainvoke(
                [
                    SystemMessage("Decide whether the document helps with the question. Answer 'yes' or 'no'."),
                    HumanMessage(f"Document:\n{document}\n\nQuestion: {state['question']}"),
                ]
            )
            if verdict.binary_score == "yes":
                kept.append(document)
        return {"documents": kept, "search": len(kept) < len(state["documents"])}

    async def transform_query(state: State) -> State:
        better = await model.ainvoke(
            [SystemMessage("Rewrite the question for a web search."), HumanMessage(state["question"])]
        )
        return {"question": str(better.content)}

    async def web_search(state: State) -> State:
        async with session.get(f"{searxng}/search", params={"q": state["question"], "format": "json"}) as response:
            found = await response.json()
        return {"documents": [*state["documents"], *(result["content"] for result in found["results"][:3])]}

    def after_grading(state: State) -> Literal["transform_query", "__end__"]:
        return "transform_query" if state["search"] else END

    graph = StateGraph(State)
    for node in (retrieve, grade, transform_query, web_search):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", after_grading)
    graph.add_edge("transform_query", "web_search")
    graph.add_edge("web_search", END)
    return graph.compile()


async def run(arguments: argparse.Namespace, questions: list[str]) -> dict[str, Any]:
    """Ask each question once, `concurrency` at a time."""
    model = ChatOllama(model=arguments.model, base_url=arguments.ollama, temperature=0)
    timeout = aiohttp.ClientTimeout(total=600)
    latencies: list[float] = []
    documents: list[int] = []
    searched: list[bool] = []
    waiting = iter(questions)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        graph = build(model, session, arguments.lightrag, arguments.searxng)

        async def worker() -> None:
            for question in waiting:
                began = time.perf_counter()
                state = await graph.ainvoke({"question": question})
                latencies.append((time.perf_counter() - began) * 1000)
                documents.append(len(state["documents"]))
                searched.append(bool(state["search"]))

        if arguments.warm_up:
            await graph.ainvoke({"question": questions[0]})
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker() for _ in range(arguments.concurrency)))
        return {
            "latencies_ms": latencies,
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "documents": documents,
            "searched": sum(searched),
        }


def main() -> None:
    """Read questions as a JSON list from standard input; print latencies as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("ollama", "lightrag", "searxng", "model"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--warm-up", action="store_true")
    arguments = parser.parse_args()
    print(json.dumps(uvloop.run(run(arguments, json.load(sys.stdin)))))


if __name__ == "__main__":
    main()
