"""Finds documents by what people call them."""

from collections.abc import Sequence

from cragside.domain.errors import ValidationError
from cragside.domain.indexing import DocumentRecord
from cragside.domain.naming import names_below
from cragside.ports.workspaces import Library

# The most documents that an error lists.
_MOST_LISTED = 10


async def documents_meant(library: Library, called: str, *, path: str = "") -> list[DocumentRecord]:
    """The documents that `called` may mean: an id, a source, a label or a name. `path` is `called` as a file's source.

    Several mean that the reference is ambiguous. An id, a URL or an absolute path means one document.
    """
    if (known := await library.document(called)) is not None:
        return [known]
    known = await library.sourced(called)
    if known is not None and known.name != called:
        return [known]
    of_path = await library.sourced(path) if path else None
    labelled = [
        record for name in names_below(called)[:-1] for record in await library.named(name) if record.label == called
    ]
    meant = [*await library.named(called), *labelled, *filter(None, (known, of_path))]
    return list({record.id: record for record in meant}.values())


def unclear(called: str, meant: Sequence[DocumentRecord]) -> ValidationError:
    """The error for an ambiguous reference."""
    listed = ", ".join(f"{record.label} ({record.id})" for record in meant[:_MOST_LISTED])
    more = f" and {len(meant) - _MOST_LISTED} more" if len(meant) > _MOST_LISTED else ""
    return ValidationError(
        f"{called} can mean {len(meant)} documents: {listed}{more}. Say which one, by its id or its whole source."
    )
