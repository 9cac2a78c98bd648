"""Calls a service through the generated package `client`: call_service.py ADDRESS TOKEN. Prints JSON."""

import json
import sys
import time
from io import BytesIO

from client import AuthenticatedClient
from client.api.documents import add_documents, delete_document, get_document, list_documents
from client.api.enrich import enrich
from client.api.health import healthz
from client.api.query import query_passages
from client.api.settings import change_settings, get_settings
from client.models import (
    AddDocumentsFilesDocumentForm,
    AddDocumentsJsonDocumentRequest,
    EnrichEnrichRequest,
    PassageQuery,
    PassageQueryBy,
    SettingsChange,
)
from client.types import File

TEXT = "The keeper lights the lamp of the harbour at dusk."
QUESTION = "Who lights the lamp of the harbour?"

address, token = sys.argv[1:]
with AuthenticatedClient(base_url=address, token=token, timeout=30) as client:
    alive = healthz.sync(client=client)
    added = add_documents.sync(client=client, body=AddDocumentsJsonDocumentRequest(name="lamp.md", text=TEXT))
    file = File(payload=BytesIO(b"A heat pump moves heat."), file_name="pump.md", mime_type="text/markdown")
    form = add_documents.sync(client=client, body=AddDocumentsFilesDocumentForm(files=[file]), workspace="coast")
    document_id = added.documents[0].id
    for _ in range(600):
        pages = [list_documents.sync(client=client, workspace=name) for name in ("default", "coast")]
        listed = [document for page in pages for document in page.documents]
        if all(document.status.value == "enriched" for document in listed):
            break
        time.sleep(0.05)
    enriched = enrich.sync(client=client, body=EnrichEnrichRequest(prompt=f"/rag {QUESTION}"))
    ranked = query_passages.sync(client=client, body=PassageQuery(query=QUESTION))
    near = query_passages.sync(client=client, body=PassageQuery(query=QUESTION, by=PassageQueryBy.SIMILARITY))
    refused = query_passages.sync(client=client, body=PassageQuery(query=QUESTION, limit=0))
    changed = change_settings.sync(client=client, body=SettingsChange(similarity_results=4))
    settings = get_settings.sync(client=client)
    deleted = delete_document.sync_detailed(document_id, client=client)
    missing = get_document.sync(document_id, client=client)

stranger = AuthenticatedClient(base_url=address, token="wrong", timeout=30)
unauthorized = query_passages.sync(client=stranger, body=PassageQuery(query=QUESTION))
context = enriched.metadata.rag_context
print(
    json.dumps(
        {
            "alive": alive.to_dict(),
            "names": [[document.name for document in page.documents] for page in pages],
            "outcomes": [each.outcome.value for each in (*added.documents, *form.documents)],
            "verdict": context.verdict.value,
            "score": context.documents[0].score,
            "source": ranked.results[0].source,
            "relevance": ranked.results[0].relevance,
            "similarity": [ranked.results[0].similarity, near.results[0].similarity],
            "ungraded": near.results[0].relevance,
            "results": [changed.similarity_results, settings.similarity_results],
            "deleted": deleted.status_code,
            "errors": [refused.error.type_, missing.error.type_, unauthorized.error.type_],
        }
    )
)
