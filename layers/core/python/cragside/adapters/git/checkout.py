"""The newest commit of a repository, as files to index.

Nothing is checked out. Contents are read from git's objects, so symbolic links, hooks, filters and submodules are only
data.
"""

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from cragside.adapters.git.command import Git, next_line
from cragside.adapters.git.origin import CloneOrigin, origin_of
from cragside.adapters.web.resolver import Resolver
from cragside.domain.errors import ValidationError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

DEFAULT_MAX_FILES = 4000
DEFAULT_MAX_BYTES = 500_000
# Files of other projects, and files that tools write.
NEVER_INDEXED = (
    "node_modules/", "bower_components/", "vendor/", "third_party/", "dist/", "build/", "target/", "out/", ".next/",
    ".cache/", ".venv/", "venv/", "__pycache__/", ".git/", "*.min.js", "*.min.css", "*.map", "*.lock", "*.lockb",
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "*.snap", "*.pyc",
)  # fmt: skip

# A few small trees that contain each other unfold to any number of files and folders.
_MOST_ENTRIES = 200_000
_ENTRIES_AT_ONCE = 100
_WATCH_SECONDS = 0.2
_BINARY_SAMPLE = 8000
_WITHOUT_TEXT_TEST = (".pdf", ".docx")
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
_BRANCH = re.compile(r"[^\x00-\x20~^:?*\[\\\x7f]{1,250}")
_ENTRY = re.compile(rb"(?P<mode>\d+) (?P<kind>\w+) (?P<id>[0-9a-f]{40,64}) +(?P<size>\d+|-)\t(?P<path>.*)", re.DOTALL)
_LANGUAGES = {".markdown": "md", ".yml": "yaml", ".txt": "text", ".mjs": "js", ".cjs": "js", ".pyi": "py"}


@dataclass(frozen=True, slots=True)
class RepositoryFile:
    """A file of a repository. `name` is `repoId#path`, unique among repositories; `metadata` has rag-stack's fields."""

    name: str
    path: str
    content: bytes
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file that is not indexed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checkout:
    """A shallow clone without files. `url` has no credentials; `folder` is its git directory."""

    folder: Path
    url: str
    repo_id: str
    commit: str


@asynccontextmanager
async def cloned(
    source: str,
    *,
    branch: str | None = None,
    repo_id: str | None = None,
    allow: Iterable[str] = (),
    resolver: Resolver | None = None,
    keep: bool = False,
    folders: bool = True,
    seconds: float = 600.0,
    max_clone_bytes: int = 2 * 1024**3,
) -> AsyncIterator[Checkout]:
    """The newest commit of `source`, an https URL or a folder. It is deleted after the block unless `keep` is set.

    Without `folders`, only a URL is cloned. `allow` is the list of RAG_FETCH_ALLOW; only its hosts may use `http://`.
    Raises `ValidationError` if the source must not be cloned or exceeds `seconds` or `max_clone_bytes`, and
    `ConfigurationError` without git.
    """
    _check_branch(branch)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="cragside-repository-"))
    kept = False
    try:
        git = Git(folder)
        await git.check_version()
        origin = await origin_of(source, allow, resolver, folders=folders)
        try:
            async with asyncio.timeout(seconds):
                await _clone(git, origin, branch, folder / "repository.git", max_clone_bytes)
        except TimeoutError as error:
            raise ValidationError(f"{origin.shown} could not be cloned within {seconds:g} seconds.") from error
        checkout = Checkout(folder / "repository.git", origin.shown, repo_id or origin.shown, await _head(git, folder))
        kept = keep
        yield checkout
    finally:
        if not kept:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def files_of(
    checkout: Checkout,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    file_types: Sequence[str] | None = None,
    max_files: int = DEFAULT_MAX_FILES,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> AsyncGenerator[RepositoryFile | PassedOver]:
    """The files in the order of their paths, at most `max_files`, none longer than `max_bytes`.

    `include` and `exclude` are patterns as in .gitignore; `file_types` are endings such as `.py`. `NEVER_INDEXED` is
    excluded first, so an `exclude` of `!vendor/` includes that folder again. Files that the patterns leave out are not
    reported. Raises `ValidationError` if git cannot list the files or lists too many.
    """
    chosen = _Choice(include, exclude, file_types)
    git = Git(checkout.folder.parent)
    taken = 0
    async with (
        aclosing(_entries(checkout)) as entries,
        git.running(["--git-dir", str(checkout.folder), "cat-file", "--batch"]) as contents,
    ):
        async for entry in entries:
            path = _path(entry)
            if not chosen.takes(path):
                continue
            reason = _unfit(entry, path, max_bytes) or chosen.unsupported(path)
            if reason is None and taken == max_files:
                yield PassedOver(path, f"the limit of {max_files:,} files is reached")
                return
            found = reason or await _read(contents, entry["id"], int(entry["size"]), path)
            if isinstance(found, str):
                yield PassedOver(path, found)
            else:
                taken += 1
                yield RepositoryFile(f"{checkout.repo_id}#{path}", path, found, _metadata(checkout, path, len(found)))


async def paths_of(checkout: Checkout) -> frozenset[str]:
    """Every path of the commit, whether or not its file is indexed. Raises what `files_of` raises."""
    async with aclosing(_entries(checkout)) as entries:
        return frozenset([_path(entry) async for entry in entries])


async def _entries(checkout: Checkout) -> AsyncGenerator[re.Match[bytes]]:
    """The commit's files, read while git lists them. Folders count towards the limit too: they may all be empty."""
    listed = ["ls-tree", "-r", "-t", "-z", "--long", "--full-tree", checkout.commit]
    async with Git(checkout.folder.parent).running(["--git-dir", str(checkout.folder), *listed]) as listing:
        for number in range(_MOST_ENTRIES + 1):
            entry = _ENTRY.fullmatch(await next_line(listing.stdout, b"\x00"))
            if entry is None:
                if await listing.wait():
                    raise ValidationError("The repository is damaged: git cannot list its files.")
                return
            if not number % _ENTRIES_AT_ONCE:
                await asyncio.sleep(0)  # what git has written already is read without waiting
            if number < _MOST_ENTRIES and entry["kind"] != b"tree":
                yield entry
    raise ValidationError(f"The repository has more than {_MOST_ENTRIES:,} files and folders.")


def _path(entry: re.Match[bytes]) -> str:
    return entry["path"].decode("utf-8", "replace")


async def _head(git: Git, folder: Path) -> str:
    try:
        at = ["--git-dir", str(folder / "repository.git")]
        return (await git.output([*at, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"])).decode().strip()
    except ValidationError as error:
        raise ValidationError("The repository has no commit.") from error


def _check_branch(branch: str | None) -> None:
    if branch is not None and (branch.startswith("-") or ".." in branch or not _BRANCH.fullmatch(branch)):
        raise ValidationError(f"{branch!r} is not the name of a branch or tag.")


async def _clone(git: Git, origin: CloneOrigin, branch: str | None, folder: Path, max_bytes: int) -> None:
    chosen = ["--branch", branch] if branch else []
    arguments = [
        "clone", "--quiet", "--bare", "--depth", "1", "--single-branch", "--no-tags", "--no-local", "--template=",
        *chosen, "--", origin.address, str(folder),
    ]  # fmt: skip
    clone = asyncio.create_task(git.output(arguments, settings=origin.settings, secret=origin.secret))
    try:
        while not (await asyncio.wait({clone}, timeout=_WATCH_SECONDS))[0]:
            if await asyncio.to_thread(_size, folder) > max_bytes:
                raise ValidationError(f"{origin.shown} is larger than {max_bytes:,} bytes.")
        await clone
    finally:
        clone.cancel()
        await asyncio.wait({clone})
    if await asyncio.to_thread(_size, folder) > max_bytes:
        raise ValidationError(f"{origin.shown} is larger than {max_bytes:,} bytes.")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:  # git renames its temporary files
            continue
    return total


class _Choice:
    """The paths to index."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str], file_types: Sequence[str] | None) -> None:
        self._include = _patterns(include) if include else None
        self._exclude = _patterns([*NEVER_INDEXED, *exclude])
        self._file_types = None if file_types is None else frozenset(file_types)

    def takes(self, path: str) -> bool:
        return not self._exclude.match_file(path) and (self._include is None or self._include.match_file(path))

    def unsupported(self, path: str) -> str | None:
        ending = PurePosixPath(path).suffix.lower()
        if self._file_types is None or ending in self._file_types:
            return None
        return f"{ending} files are not supported" if ending else "files without a type are not supported"


def _patterns(lines: Iterable[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise ValidationError(f"A pattern is invalid: {error}") from error


def _unfit(entry: re.Match[bytes], path: str, max_bytes: int) -> str | None:
    if entry["mode"] == b"120000":
        return "is a symbolic link"
    if entry["kind"] != b"blob":
        return "is another repository (a submodule)"
    if not path.isprintable() or ".." in path.split("/") or path.startswith("/"):
        return "has an unusable name"
    size = int(entry["size"])
    if not size:
        return "is empty"
    return f"has {size:,} bytes, the limit is {max_bytes:,}" if size > max_bytes else None


async def _read(contents: asyncio.subprocess.Process, blob: bytes, size: int, path: str) -> bytes | str:
    """The object's content, or why it is not indexed."""
    if contents.stdin is None or contents.stdout is None:
        raise ValueError("git was started without pipes")
    contents.stdin.write(blob + b"\n")
    await contents.stdin.drain()
    if (await next_line(contents.stdout, b"\n")).split(b" ")[-1] != b"%d" % size:
        return "is missing from the repository"
    content = (await contents.stdout.readexactly(size + 1))[:size]
    if content.startswith(_LFS_POINTER):
        return "is kept in Git LFS"
    if b"\x00" in content[:_BINARY_SAMPLE] and not path.lower().endswith(_WITHOUT_TEXT_TEST):
        return "holds binary data"
    return content


def _metadata(checkout: Checkout, path: str, size: int) -> dict[str, Any]:
    ending = PurePosixPath(path).suffix.lower()
    return {
        "repoId": checkout.repo_id,
        "repoUrl": checkout.url,
        "path": path,
        "lang": _LANGUAGES.get(ending, ending[1:] or "text"),
        "bytes": size,
    }
