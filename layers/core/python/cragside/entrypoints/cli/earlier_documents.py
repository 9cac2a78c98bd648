"""Documents of earlier versions, which are known by their names alone, and what is said of them."""

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
    """The documents without a source that files may have been the origin of.

    With `beside`, only those that have a name of one of these sources.
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
    """Which of these documents the file takes over when it is brought, and whether that is sure.

    It is sure where the text is the same. Of other texts the lines decide, which only whoever holds the texts compares.
    """
    names = {file.name, *names_below(file.source)}
    meant = [each for each in documents if each.name in names]
    same = next((each for each in meant if each.content_hash == file.digest), None)
    return same or next(iter(meant), None), same is not None


def tell_earlier(documents: Sequence[IndexingProgress]) -> None:
    """Say which they are and what to do, on standard error."""
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
    """The same for programs."""
    return {"known_by_name_alone": [{"name": each.name, "id": each.id} for each in documents]}
