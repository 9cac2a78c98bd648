"""A retriever and a tool for LangChain (`langchain-core`)."""

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field
from typing_extensions import override

from cragside.plugins.service import Evidence, Service, metadata_of

_DESCRIPTION = (
    "Searches the user's documents, and the web if these say nothing. "
    "Returns numbered passages. Cite a passage by its number, such as [1]."
)
_NOTHING = "No evidence was found."


class CragsideRetriever(BaseRetriever):
    """Retrieves what cragside accepts as evidence for a question, best first; nothing if there is none.

    A document has the passage's `id`. Its metadata has `source`, `title`, `score`, where known `url`, and what
    cragside knows of the file. A cragside that cannot be asked raises its error.
    """

    service: Service = Field(default_factory=Service, exclude=True)  # it has the token

    @override
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return _documents(self.service.evidence_now(query))

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return _documents(await self.service.evidence(query))


def cragside_tool(service: Service, *, name: str = "search_documents", description: str = _DESCRIPTION) -> BaseTool:
    """A tool by which a model asks cragside a question.

    It returns the evidence as the model should read it, delimited and numbered. The artifact of its message is the list
    of documents.
    """

    def ask(question: str) -> tuple[str, list[Document]]:
        return _content_and_artifact(service.evidence_now(question))

    async def ask_asynchronously(question: str) -> tuple[str, list[Document]]:
        return _content_and_artifact(await service.evidence(question))

    return StructuredTool.from_function(
        func=ask,
        coroutine=ask_asynchronously,
        name=name,
        description=description,
        response_format="content_and_artifact",
    )


def _content_and_artifact(evidence: Evidence) -> tuple[str, list[Document]]:
    return evidence.block or _NOTHING, _documents(evidence)


def _documents(evidence: Evidence) -> list[Document]:
    return [
        Document(id=document["id"], page_content=document["content"], metadata=metadata_of(document))
        for document in evidence.documents
    ]
