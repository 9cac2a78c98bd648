"""A retriever and a tool for LangChain (`langchain-core`)."""

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import SecretStr
from typing_extensions import override

from cragside.domain.command import DEFAULT_PREFIX
from cragside.plugins.service import DEFAULT_ENDPOINT, Evidence, Service

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

    endpoint: str = DEFAULT_ENDPOINT
    token: SecretStr | None = None
    workspace: str | None = None
    command: str = DEFAULT_PREFIX
    seconds: float = 35.0

    @override
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return _documents(self._service().evidence_now(query))

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return _documents(await self._service().evidence(query))

    def _service(self) -> Service:
        token = self.token.get_secret_value() if self.token else None
        return Service(self.endpoint, token, self.workspace, self.command, self.seconds)


def cragside_tool(service: Service, *, name: str = "search_documents", description: str = _DESCRIPTION) -> BaseTool:
    """A tool by which a model asks cragside a question.

    It returns the evidence as the model should read it, delimited and numbered. The artifact of its message is the list
    of documents.
    """

    def ask(question: str) -> tuple[str, list[Document]]:
        return _told(service.evidence_now(question))

    async def ask_asynchronously(question: str) -> tuple[str, list[Document]]:
        return _told(await service.evidence(question))

    return StructuredTool.from_function(
        func=ask,
        coroutine=ask_asynchronously,
        name=name,
        description=description,
        response_format="content_and_artifact",
    )


def _told(evidence: Evidence) -> tuple[str, list[Document]]:
    return evidence.block or _NOTHING, _documents(evidence)


def _documents(evidence: Evidence) -> list[Document]:
    return [
        Document(id=document["id"], page_content=document["content"], metadata=evidence.metadata(document))
        for document in evidence.documents
    ]
