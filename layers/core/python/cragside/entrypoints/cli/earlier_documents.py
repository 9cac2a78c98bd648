"""Finds and reports documents of earlier versions, which have a name but no source."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cragside.domain.naming import names_below
from cragside.domain.syncing import FileState
from cragside.entrypoints.cli.progress import IndexingProgress
from cragside.entrypoints.cli.terminal import notices, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

# So many are named.
_NAMED = 10


async def known_by_name_alone(service: "Service", *, beside: Sequence[str] | None = None) -> list[IndexingProgress]:
    """The documents without a source that may have come from files.

    With `beside`, only those whose name fits one of these sources.
    """
    names = None if beside is None else {name for source in beside for name in (source, *names_below(source))}
    if names is not None and not names:
        return []
    return [
        document
        for document in await service.unclaimed()
        if "://" not in document.name
        and "repoId" not in document.metadata
        and (names is None or document.name in names)
    ]


def would_take_over(file: FileState, documents: Sequence[IndexingProgress]) -> tuple[IndexingProgress | None, bool]:
    """The document that the file will take over when it is indexed, and whether that is certain.

    It is certain if their texts are equal. Otherwise the store compares their lines when the file is indexed.
    """
    names = {file.name, *names_below(file.source)}
    meant = [each for each in documents if each.name in names]
    same = next((each for each in meant if each.content_hash == file.digest), None)
    return same or next(iter(meant), None), same is not None


def tell_earlier(documents: Sequence[IndexingProgress]) -> None:
    """Print on standard error which documents these are and how to remove them."""
    if not documents:
        return
    named = ", ".join(f"{printable(each.name)} ({each.id})" for each in documents[:_NAMED])
    more = f" and {len(documents) - _NAMED} more" if len(documents) > _NAMED else ""
    one = len(documents) == 1
    known = (
        "document of an earlier version is known by its name"
        if one
        else ("documents of an earlier version are known by their name")
    )
    then = (
        "If its file is gone or has another document now, remove it: cragside forget ID"
        if one
        else ("If their files are gone or have other documents now, remove them: cragside forget ID...")
    )
    notices().print(f"{len(documents)} {known} alone: {named}{more}. {then}", soft_wrap=True)


def earlier_body(documents: Sequence[IndexingProgress]) -> dict[str, list[dict[str, str]]]:
    """The documents as JSON."""
    return {"known_by_name_alone": [{"name": each.name, "id": each.id} for each in documents]}
