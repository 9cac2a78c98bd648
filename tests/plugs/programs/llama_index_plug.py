"""LlamaIndex's own query engine, with cragside's retriever in it."""

import asyncio
import os
import sys

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from telling import QUESTION, tell

from cragside.plugins.llama_index import CragsideRetriever
from cragside.plugins.service import Service

ADDRESS, TOKEN = sys.argv[1], os.environ["TOKEN"]
retriever = CragsideRetriever(Service(ADDRESS, TOKEN))


def engine() -> list[str]:
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(QUESTION)
    return [answer.response, answer.source_nodes[0].text]


tell(
    sync=lambda: [node.model_dump() for node in retriever.retrieve(QUESTION)],
    asynchronous=lambda: [node.model_dump() for node in asyncio.run(retriever.aretrieve(QUESTION))],
    engine=engine,
    nothing=lambda: retriever.retrieve("zzz qqq xxyy"),
    refused=lambda: CragsideRetriever(Service(ADDRESS, "wrong")).retrieve(QUESTION),
)
