"""Builds a store in a scratch folder, compacts it, and moves it into place atomically."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from cragside.domain.errors import ValidationError
from cragside.domain.knowledge import KnowledgeStatus
from cragside.store.baked import (
    MANIFEST,
    BakedWorkspace,
    Manifest,
    ManifestError,
    baked_file,
    damage_of,
    file_of,
    read_manifest,
)
from cragside.store.sqlite.database import FILE_NAME, make_compact


@dataclass(frozen=True, slots=True)
class Baking:
    """The making of one baked store: texts are indexed below `home`, `publish` puts the result in its place."""

    home: Path
    _out: Path
    _before: Manifest | None

    @classmethod
    @contextmanager
    def into(cls, out: Path) -> Iterator[Self]:
        """A store in the making for the folder `out`, which must be new, empty or a baked store.

        Nothing changes in `out` before `publish`. What a killed run leaves, in a hidden folder beside `out`, is cleaned
        up by the next. Raises `ValidationError`.
        """
        out = Path(os.path.realpath(out))
        scratch = out.parent / f".{out.name}.baking"
        try:
            scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValidationError(f"{out.parent} cannot be written: {error.strerror}.") from error
        try:
            with FileLock(scratch / "lock", timeout=0):
                try:
                    yield cls(scratch / "home", out, _prepared(scratch, out))
                finally:
                    _restore(scratch, out)
                    shutil.rmtree(scratch, ignore_errors=True)
        except Timeout as error:
            raise ValidationError(f"Another run is baking into {out}. Wait for it to end.") from error

    def publish(self, known: KnowledgeStatus) -> tuple[Manifest, str]:
        """Put the indexed workspace in its place, beside those that are baked there already.

        Returns the manifest and its SHA-256. Call it when the store is closed. Raises `ValidationError` when the place
        cannot be written.
        """
        for path in [path for path in self.home.iterdir() if not path.is_dir()]:
            path.unlink()  # the queue, which is empty, and the lock of who emptied it
        compacted(self.home / known.workspace)
        workspaces = {known.workspace: _workspace(known)}
        files = {file_of(known.workspace): baked_file(self.home / file_of(known.workspace))}
        if self._before:
            others = [name for name in self._before.workspaces if name != known.workspace]
            self._copy(others)
            workspaces |= {name: self._before.workspaces[name] for name in others}
            files |= {file_of(name): self._before.files[file_of(name)] for name in others}
        manifest = Manifest(workspaces, files)
        (self.home / MANIFEST).write_bytes(manifest.content())
        self._open_to_readers()
        self._put_in_place()
        return manifest, baked_file(self._out / MANIFEST).sha256

    def _copy(self, workspaces: list[str]) -> None:
        for name in workspaces:
            (self.home / name).mkdir()
            shutil.copyfile(self._out / file_of(name), self.home / file_of(name))
        if self._before and (damage := damage_of(self.home, self._before, list(map(file_of, workspaces)), hashes=True)):
            raise ValidationError(f"{self._out} is damaged: {damage}. Remove it, and bake all its workspaces again.")

    def _open_to_readers(self) -> None:
        """Give the shipped files the permissions that the umask allows. The parent folder shows them."""
        allowed = stat.S_IMODE(self.home.parent.stat().st_mode) & 0o777
        for path in (self.home, *self.home.rglob("*")):
            path.chmod(allowed if path.is_dir() else allowed & 0o666)

    def _put_in_place(self) -> None:
        aside = self.home.parent / "before"
        try:
            if self._out.exists():
                self._out.rename(aside)
            self.home.rename(self._out)
        except OSError as error:
            raise ValidationError(f"{self._out} cannot be put in its place: {error.strerror}.") from error


def _prepared(scratch: Path, out: Path) -> Manifest | None:
    """The baked store to replace, once whatever a killed run left is cleaned up."""
    _restore(scratch, out)
    before = _replaceable(out)
    for leftover in ("home", "before"):
        shutil.rmtree(scratch / leftover, ignore_errors=True)
    return before


def _restore(scratch: Path, out: Path) -> None:
    """Bring back what was there, when a run got no further than moving it aside."""
    aside = scratch / "before"
    if aside.exists() and not out.exists():
        aside.rename(out)


def _replaceable(out: Path) -> Manifest | None:
    """The baked store that is there, None for none. Raises `ValidationError` rather than replace anything else."""
    if not out.exists():
        return None
    if not out.is_dir():
        raise ValidationError(f"{out} is a file. Name a new or empty folder.")
    try:
        found = read_manifest(out)
    except (ManifestError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValidationError(
            f"The baked store {out} cannot be used: its {MANIFEST} {reason}. Remove it, or name another folder."
        ) from error
    baked = {MANIFEST, *found[0].files} if found else set()
    foreign = sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_symlink() or not p.is_dir())
    if foreign := [name for name in foreign if name not in baked]:
        raise ValidationError(
            f"{out} holds what no `cragside bake` made, such as {foreign[0]}. Name a new or empty folder, or a baked "
            "store to replace."
        )
    return found[0] if found else None


def compacted(folder: Path) -> None:
    """Leave one file without log, locks, free pages or what only indexing needs. It can be read without writing."""
    make_compact(folder)
    for path in folder.iterdir():
        if path.name != FILE_NAME:
            path.unlink()


def _workspace(known: KnowledgeStatus) -> BakedWorkspace:
    return BakedWorkspace(known.embedding_model, known.documents, known.passages, known.entities, known.relations)
