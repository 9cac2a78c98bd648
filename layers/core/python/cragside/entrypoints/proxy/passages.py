"""The passages of an answer's evidence, for hosts that show sources: with links, and as OpenAI's annotations."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from starlette.types import Scope

from cragside.domain.citations import MOST_MARKS, Mark
from cragside.domain.document import Document
from cragside.domain.outcome import RagContext
from cragside.entrypoints.proxy.headers import value_of

# A streamed response says each citation four times: in events, its text, its item and its end.
MOST_OF_AN_ANSWER = 4 * MOST_MARKS
# A name or an address, with a port.
_HOST = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]+)?|\[[0-9A-Fa-f:.]+\](?::[0-9]+)?")
# What a URL may have; hosts put it into mark-up of their own.
_OF_URLS = "/:?#[]@!$&'()*+,;=%~"


@dataclass(frozen=True, slots=True)
class Passages:
    """The evidence of a request. `console` is the address of the console, in which each passage has a link."""

    context: RagContext
    console: str

    def as_dict(self) -> dict[str, Any]:
        """The contract's `rag_context`, with a `link` for each passage."""
        context = self.context.as_dict()
        shown = {"documents": self.context.documents, "closest": self.context.closest}
        for name in shown.keys() & context.keys():
            linked = zip(context[name], shown[name], strict=True)
            context[name] = [{**each, "link": self._link(document)} for each, document in linked]
        return context

    def annotations(self, marks: Iterable[Mark]) -> list[dict[str, Any]]:
        """A `url_citation` for each of the first thousand marks that names a passage. Positions count characters."""
        known = self.context.documents
        return [
            {
                "type": "url_citation",
                "start_index": each.start,
                "end_index": each.end,
                "url": self._url(each.number - 1),
                "title": known[each.number - 1].title,
            }
            for each in islice(marks, MOST_MARKS)
            if 0 < each.number <= len(known)
        ]

    def _url(self, index: int) -> str:
        document = self.context.documents[index]
        url = document.url or ""
        return quote(url, safe=_OF_URLS) if url.startswith(("https://", "http://")) else self._link(document)

    def _link(self, document: Document) -> str:
        opened = document.metadata.get("documentId")
        if not opened:
            return f"{self.console}#/documents"
        return f"{self.console}#/documents?open={quote(str(opened), safe='')}&passage={quote(document.id, safe='')}"


def passages_of(context: RagContext, scope: Scope, path_prefix: str = "") -> Passages:
    """The passages, with links to the console at the address that the client called, if that is one.

    `path_prefix` is RAG_PATH_PREFIX. Whether or not a reverse proxy has removed it, the console is there too. What
    headers say on the address is not used but for `Host`, as nowhere in the server.
    """
    host = (value_of(scope["headers"], b"host") or b"").decode("latin-1")
    at = f"{scope.get('scheme', 'http')}://{host}" if _HOST.fullmatch(host) else ""
    return Passages(context, f"{at}{path_prefix}/console/")
