"""Knows where the workspaces are: in a folder to write in, or in a baked store, which may be fetched first."""

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from cragside.domain.errors import ConfigurationError, ReadOnlyStore, ServiceUnavailable
from cragside.ports.files import ObjectStore
from cragside.store.backends.interface import Backend
from cragside.store.baked import (
    Manifest,
    ManifestError,
    damage_of,
    file_of,
    misplaced,
    read_manifest,
)

_log = logging.getLogger("cragside")

# What builds a store beside that of a workspace.
Beside = Literal["reindexing", "copying"]


class Home:
    """Finds the folder of each workspace. With `objects`, stores are fetched at the first use, pinned by `sha256`."""

    def __init__(
        self, folder: Path, backend: Backend, *, sha256: str | None = None, objects: ObjectStore | None = None
    ) -> None:
        self.folder = folder
        self._sha256 = sha256
        self._objects = objects
        self._fetching: asyncio.Task[None] | None = None
        self._manifest: Manifest | None = None
        self._backend = backend
        self._warned = False

    async def ready(self, workspace: str | None = None) -> None:
        """Wait for a store that is fetched, or for that of a workspace. Cancelling the caller does not cancel it."""
        if self._objects is None or self._sha256 is None:
            return
        if self._fetching is None or (self._fetching.done() and _failed(self._fetching)):
            from cragside.store.baked import fetch  # few need it

            self._fetching = asyncio.create_task(fetch(self._objects, self._sha256, self.folder))
        if not self._fetching.done():
            await asyncio.shield(self._fetching)

    def folder_of(self, workspace: str) -> Path:
        """Return the folder of a workspace. Raises `ServiceUnavailable` when that cannot be told."""
        if manifest := self.baked():
            return self.folder / (self.baked_name(manifest, workspace) or workspace)
        return self._backend.folder_of(self.folder, workspace)

    def beside(self, workspace: str, what: Beside) -> Path:
        """Return the folder of the store that is to replace a workspace's. No workspace's name begins with a dot."""
        return self.folder / f".{what}-{workspace}"

    def baked_name(self, manifest: Manifest, workspace: str) -> str | None:
        """Return a baked store's name of a workspace, None when it has none. Older ones have names with capitals."""
        if workspace in manifest.workspaces:
            return workspace
        return next((name for name in sorted(manifest.workspaces) if name.lower() == workspace), None)

    async def names(self) -> list[str]:
        """Return the workspaces that have a store, in order."""
        if manifest := self.baked():
            return sorted({name.lower() for name in manifest.workspaces})
        return await self._backend.names(self.folder)

    async def close(self) -> None:
        """End a fetching that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    def baked(self) -> Manifest | None:
        """Return the manifest of a baked store, which is read once; None for a folder to write in.

        Raises `ConfigurationError` when it is not the store that was pinned, and `ServiceUnavailable` when it cannot be
        read.
        """
        if self._manifest is not None:
            return self._manifest
        try:
            found = read_manifest(self.folder)
        except ManifestError as error:
            raise self._broken(f"its baked.json {error}") from error
        except OSError as error:
            raise ServiceUnavailable(
                "knowledge_base",
                f"The folder of the stores cannot be read: {error.strerror}. Check RAG_HOME and its permissions.",
            ).at(self.folder) from error
        if self._sha256 is not None and (found is None or found[1] != self._sha256):
            state = "not a baked store" if found is None else f"the baked store {found[1]}"
            raise ConfigurationError(
                f"RAG_HOME_SHA256 asks for the baked store {self._sha256}, but {self.folder} is {state}. Set the "
                "variable to what `cragside bake` printed for this store, or unset it."
            )
        if found is None and not self._warned and (problem := misplaced(self.folder)):
            self._warned = True
            _log.warning("%s", problem)
        self._manifest = None if found is None else found[0]
        return self._manifest

    def check(self, manifest: Manifest, workspace: str) -> None:
        """Raises `ServiceUnavailable` if the workspace's file is missing or has another size. Computes no hashes."""
        if damage := damage_of(self.folder, manifest, [file_of(workspace)]):
            raise self._broken(damage)

    def refuse_baked(self) -> None:
        """Raises `ReadOnlyStore` for a baked store, to which nothing is written."""
        if self.read_only:
            raise ReadOnlyStore(self.refusal)

    def refuse_documents(self) -> None:
        """Raises `ReadOnlyStore` where no document can be brought."""
        self.refuse_baked()

    def look_again(self, workspace: str) -> None:
        """Have `ready` look for a newer generation of a workspace."""

    async def sweep(self, used: Collection[Path] | None) -> None:
        """Remove folders that workspaces have left, except those that are `used`; None says that all may be."""

    def is_replaced(self, folder: Path) -> bool:
        """Return True if a workspace is in another folder by now."""
        return False

    @property
    def takes_documents(self) -> bool:
        """Return True if documents can be brought, at once or by way of a writer."""
        return not self.read_only

    @property
    def read_only(self) -> bool:
        """Return True for a baked store. One that is fetched is always one."""
        return self._objects is not None or self.baked() is not None

    @property
    def refusal(self) -> str:
        """Say why nothing is written to a baked store, and what to do instead."""
        if self._objects is not None:
            return (
                f"{self._objects.address} is a baked store and cannot be written. Bake its texts again with "
                "`cragside bake`, upload the result and change RAG_HOME_SHA256, or set RAG_HOME to a folder."
            )
        return (
            f"{self.folder} is a baked store and cannot be written. Bake its texts again with `cragside bake PATH... "
            f"--out {self.folder}`, or set RAG_HOME to another folder."
        )

    def _broken(self, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable(
            "knowledge_base", f"The baked store is damaged: {reason}. Bake it again, or copy it again."
        ).at(self.folder)


def _failed(task: "asyncio.Task[None]") -> bool:
    return task.cancelled() or task.exception() is not None
