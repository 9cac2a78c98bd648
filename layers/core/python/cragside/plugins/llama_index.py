"""A retriever for LlamaIndex (`llama-index-core`)."""

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from typing_extensions import override

from cragside.plugins.service import Evidence, Service, metadata_of


class CragsideRetriever(BaseRetriever):
    """Retrieves what cragside accepts as evidence for a question, best first; nothing if there is none.

    A node has the passage's id, and its score is the probability of relevance. A cragside that cannot be asked raises
    its error.
    """

    def __init__(self, service: Service | None = None) -> None:
        self._service = service or Service()
        super().__init__()

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._service.evidence_now(query_bundle.query_str))

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._service.evidence(query_bundle.query_str))


def _nodes(evidence: Evidence) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(id_=document["id"], text=document["content"], metadata=metadata_of(document)),
            score=document.get("score"),
        )
        for document in evidence.documents
    ]
