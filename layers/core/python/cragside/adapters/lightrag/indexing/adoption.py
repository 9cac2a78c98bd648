"""Documents from before sources were known, and the files that they were made from."""

import asyncio
import re
import unicodedata
from collections.abc import Sequence

from cragside.adapters.lightrag.store import Store
from cragside.domain.document import SourceText
from cragside.domain.indexing import DocumentRecord
from cragside.domain.naming import names_below

_ABSOLUTE = re.compile("/|[A-Za-z]:/")


async def adopt(store: Store, brought: SourceText, digest: str) -> None:
    """Give the document that was made from a text before, under its name alone, the source of the text.

    The document has to hold the same text, or more than half of its lines have to be in the text that is brought.
    Otherwise it stays as it is: two documents are better than a lost one.
    """
    candidates = await _candidates(store, brought)
    if not candidates:
        return
    texts = {each.id: known.text for each in candidates if (known := await store.ledger.source(each.id))}
    chosen = await asyncio.to_thread(_same_or_like, candidates, texts, brought, digest)
    if chosen is None:
        return
    async with store.accepting() as ledger:
        # Another process may have done so meanwhile, or have deleted the document.
        if any(
            (each.id, each.content_hash) == (chosen.id, chosen.content_hash)
            for each in await _candidates(store, brought)
        ):
            await ledger.claim(chosen.id, brought.source, brought.name)


async def _candidates(store: Store, brought: SourceText) -> list[DocumentRecord]:
    """Documents without a source that have a name of the text, that of the text itself first.

    `cragside ingest` named a file by its path below the folder that was given: any of its parent folders may have been.
    """
    if brought.source == brought.name or await store.ledger.sourced(brought.source) is not None:
        return []
    names = [brought.name]
    if _ABSOLUTE.match(brought.source):
        names += names_below(unicodedata.normalize("NFC", brought.source))
    return [known for name in dict.fromkeys(names) if (known := await store.ledger.unclaimed(name))]


def _same_or_like(
    candidates: Sequence[DocumentRecord], texts: dict[str, str], brought: SourceText, digest: str
) -> DocumentRecord | None:
    for candidate in candidates:
        if candidate.content_hash == digest or texts.get(candidate.id, "").strip() == brought.text.strip():
            return candidate
    lines = set(_lines(brought.text))
    shares = [(_share(_lines(texts.get(each.id, "")), lines), each) for each in candidates]
    share, best = max(shares, key=lambda found: found[0])
    return best if share > 0.5 else None


def _share(old: Sequence[str], new: set[str]) -> float:
    return sum(line in new for line in old) / len(old) if old else 0.0


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
