"""LangChain's own chain and tool call, with cragside's retriever and tool in them."""

import asyncio
import os
import sys

from langchain_core.load import dumps
from langchain_core.prompts import ChatPromptTemplate
from telling import QUESTION, attacked, tell

from cragside.plugins.langchain import CragsideRetriever, cragside_tool
from cragside.plugins.service import Service

ADDRESS, TOKEN = sys.argv[1], os.environ["TOKEN"]
retriever = CragsideRetriever(service=Service(ADDRESS, TOKEN))
tool = cragside_tool(Service(ADDRESS, TOKEN))
CALL = {"name": tool.name, "args": {"question": QUESTION}, "id": "1", "type": "tool_call"}


def chain() -> str:
    prompt = ChatPromptTemplate.from_template("{context}")
    return (retriever | {"context": lambda found: found[0].page_content} | prompt).invoke(QUESTION).to_string()


async def inside_a_loop() -> str:
    return retriever.invoke(QUESTION)[0].page_content


tell(
    sync=lambda: [document.model_dump() for document in retriever.invoke(QUESTION)],
    asynchronous=lambda: [document.model_dump() for document in asyncio.run(retriever.ainvoke(QUESTION))],
    inside_a_loop=lambda: asyncio.run(inside_a_loop()),
    chain=chain,
    nothing=lambda: retriever.invoke("zzz qqq xxyy"),
    shown=lambda: repr(retriever) + repr(tool) + repr(Service(ADDRESS, TOKEN)) + dumps(retriever) + dumps(tool),
    tool=lambda: tool.invoke(CALL).content,
    tool_artifact=lambda: tool.invoke(CALL).artifact[0].page_content,
    tool_nothing=lambda: asyncio.run(tool.ainvoke({"question": "zzz qqq xxyy"})),
    schema=lambda: tool.tool_call_schema.model_json_schema()["required"],
    refused=lambda: CragsideRetriever(service=Service(ADDRESS, "wrong")).invoke(QUESTION),
    not_there=lambda: CragsideRetriever(service=Service("http://127.0.0.1:9")).invoke(QUESTION),
    **attacked(lambda address: CragsideRetriever(service=Service(address, TOKEN)).invoke(QUESTION)),
)
