"""Git repositories as files that can be indexed."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from cragside.adapters.documents.folders import Refused
from cragside.adapters.documents.kinds import ENDINGS, named_kind, unsupported
from cragside.adapters.git import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_FILES,
    Checkout,
    RepositoryFile,
    cloned,
    files_of,
    paths_of,
)


@dataclass(frozen=True, slots=True)
class Clone:
    """A repository on this machine."""

    checkout: Checkout

    async def paths(self) -> frozenset[str]:
        """Return the paths of all files of its newest commit. Raises `ValidationError` if they are too many."""
        return await paths_of(self.checkout)

    async def files(
        self,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_files: int = DEFAULT_MAX_FILES,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> AsyncGenerator[RepositoryFile | Refused]:
        """Yield the files of supported formats, and those that are refused. `files_of` tells the options."""
        file_types = (*ENDINGS, "")  # a Makefile has none
        chosen = files_of(
            self.checkout,
            include=include,
            exclude=exclude,
            file_types=file_types,
            max_files=max_files,
            max_bytes=max_bytes,
        )
        async with aclosing(chosen) as files:
            async for found in files:
                if not isinstance(found, RepositoryFile):
                    yield Refused(found.path, found.reason, skipped=True)
                elif named_kind(found.path) is None:
                    yield Refused(found.path, unsupported(found.path), skipped=True)
                else:
                    yield found


@asynccontextmanager
async def clone(
    source: str,
    *,
    branch: str | None,
    repo_id: str | None = None,
    allow: Sequence[str],
    keep: bool = False,
    folders: bool = True,
) -> AsyncIterator[Clone]:
    """Clone a repository for the length of the block; `cloned` tells the options and the errors."""
    async with cloned(source, branch=branch, repo_id=repo_id, allow=allow, keep=keep, folders=folders) as checkout:
        yield Clone(checkout)
