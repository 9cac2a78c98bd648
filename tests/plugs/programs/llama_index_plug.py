"""LlamaIndex's own query engine, with cragside's retriever in it."""

import asyncio
import os
import sys

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from telling import QUESTION, attacked, tell

from cragside.plugins.llama_index import CragsideRetriever
from cragside.plugins.service import Service

ADDRESS, TOKEN = sys.argv[1], os.environ["TOKEN"]
retriever = CragsideRetriever(service=Service(ADDRESS, TOKEN))


def engine() -> list[str]:
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(QUESTION)
    return [answer.response, answer.source_nodes[0].text]


async def inside_a_loop() -> str:
    return retriever.retrieve(QUESTION)[0].text


tell(
    sync=lambda: [node.model_dump() for node in retriever.retrieve(QUESTION)],
    asynchronous=lambda: [node.model_dump() for node in asyncio.run(retriever.aretrieve(QUESTION))],
    inside_a_loop=lambda: asyncio.run(inside_a_loop()),
    engine=engine,
    shown=lambda: repr(retriever) + str(vars(retriever)),
    nothing=lambda: retriever.retrieve("zzz qqq xxyy"),
    refused=lambda: CragsideRetriever(service=Service(ADDRESS, "wrong")).retrieve(QUESTION),
    **attacked(lambda address: CragsideRetriever(service=Service(address, TOKEN)).retrieve(QUESTION)),
)
