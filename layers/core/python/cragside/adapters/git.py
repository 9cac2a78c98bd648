"""Clones repositories with git's own command, and reads the files of the newest commit.

Nothing is checked out. Contents are read from git's objects, so symbolic links, hooks, filters and submodules are only
data. All features are disabled that a repository or its server could use to attack this machine.
"""

import asyncio
import os
import re
import shutil
import signal
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from yarl import URL

from cragside.adapters.documents.folders import Refused
from cragside.adapters.documents.kinds import ENDINGS, named_kind, unsupported
from cragside.adapters.web.guard import AddressRefused, Guard, Resolver, SystemResolver
from cragside.domain.addresses import parse_address
from cragside.domain.errors import ConfigurationError, ProcessingError, ValidationError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


# Git 2.37 introduced http.curloptResolve. An older git would silently resolve the name itself.
_OLDEST = (2, 37)
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.askPass=",
    "core.sshCommand=false",
    "core.bigFileThreshold=16m",  # larger ones are streamed instead of being held in memory
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",  # bytes a second, on the average of so many seconds:
    "http.lowSpeedTime=30",
    "http.proxy=",
    "http.sslVerify=true",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
)
# The operator may set the places of certificates. Git gets nothing else of the environment.
_KEPT = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "SYSTEMROOT")


class Git:
    """Runs git with `home` as its home folder, which has no configuration."""

    def __init__(self, home: Path) -> None:
        program = shutil.which("git")
        if program is None:
            raise ConfigurationError("Git is not installed. Install git 2.37 or later to index repositories.")
        self._program = program
        self._environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "HOME": str(home),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_PROTOCOL_FROM_USER": "0",
        }

    async def check_version(self) -> None:
        """Raises `ConfigurationError` if git is too old to pin addresses."""
        async with self.running(["version"]) as process:
            version = (await _drained(process)).decode("utf-8", "replace")
        found = re.search(r"(\d{1,9})\.(\d{1,9})", version)
        if found is None or (int(found[1]), int(found[2])) < _OLDEST:
            raise ConfigurationError(f"Indexing repositories needs git 2.37 or later; this is {version.strip()!r}.")

    @asynccontextmanager
    async def running(
        self, arguments: Sequence[str], *, settings: Sequence[str] = (), secret: Mapping[str, str] | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run the command with pipes. The end of the block kills it with its children.

        `secret` settings go through the environment, which other users of the machine cannot read.
        """
        environment = dict(self._environment)
        for number, (name, value) in enumerate((secret or {}).items()):
            environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        environment["GIT_CONFIG_COUNT"] = str(len(secret or {}))
        configured = [word for setting in (*_SETTINGS, *settings) for word in ("-c", setting)]
        process = await asyncio.create_subprocess_exec(
            self._program,
            *configured,
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # asyncio notices the end of a process only when its pipes are empty.
            await process.communicate()

    async def output(
        self, arguments: Sequence[str], *, settings: Sequence[str] = (), secret: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the short output of the command. Raises `ValidationError` with git's reason if the command fails."""
        async with self.running(arguments, settings=settings, secret=secret) as process:
            written = await _drained(process)
            if process.returncode:
                raise ValidationError(f"git says: {_reason(written)}")
            return written


async def _drained(process: asyncio.subprocess.Process) -> bytes:
    """Return the output of the command, or its errors if it fails."""
    output, errors = await process.communicate()
    return errors if process.returncode else output


def _reason(errors: bytes) -> str:
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    reason = (fatal or lines or ["nothing"])[0]
    return re.sub(r"[^\x20-\x7e]", "?", re.sub(r"://[^/@\s]*@", "://", reason))[:300]


async def next_line(stream: asyncio.StreamReader | None, end: bytes) -> bytes:
    """The stream's next line without its end; empty at the end. Raises `ProcessingError` for an overlong line."""
    if stream is None:
        return b""
    try:
        return (await stream.readuntil(end))[: -len(end)]
    except asyncio.IncompleteReadError:
        return b""
    except asyncio.LimitOverrunError as error:
        raise ProcessingError("The repository has a path that is too long to be read.") from error


_CREDENTIALS = re.compile(r"(?i)(https?://)([^/?#@]*)@(?=[^/?#@]*(?:[/?#]|$))")
_OTHER_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[^/\\@]*+@[^/\\:]*+:|[^/\\.~][^/\\:]*+:")


@dataclass(frozen=True, slots=True)
class CloneOrigin:
    """A repository to clone. `shown` is its address without credentials, `secret` those of git's settings that are."""

    address: str
    shown: str
    settings: tuple[str, ...]
    secret: dict[str, str]


async def origin_of(
    source: str, allow: Iterable[str], resolver: Resolver | None, *, folders: bool = True
) -> CloneOrigin:
    """Return the origin for an https URL or, with `folders`, a folder.

    Raises `ValidationError` for anything that must not be cloned.
    """
    if re.match(r"(?i)https?://", source):
        return await _remote(source, Guard(allow), resolver if resolver is not None else SystemResolver())
    if not folders:
        raise ValidationError("Give a repository as an https:// URL.", field="url")
    if source.startswith("-") or "\x00" in source or _OTHER_PROTOCOL.match(source):
        raise ValidationError("Give a repository as an https:// URL or as the path of a folder.")
    folder = await asyncio.to_thread(_local, source)
    return CloneOrigin(folder.as_uri(), folder.as_posix(), ("protocol.file.allow=always",), {})


def _local(source: str) -> Path:
    folder = Path(source).expanduser().resolve()
    if not (folder / ".git").exists() and not (folder / "HEAD").is_file():
        raise ValidationError(f"{source} is not a git repository. Index its files with cragside ingest --dir.")
    return folder


async def _remote(source: str, guard: Guard, resolver: Resolver) -> CloneOrigin:
    given = _CREDENTIALS.match(source)
    try:
        url = guard.target(_CREDENTIALS.sub(r"\1", source, count=1))
        host = url.raw_host or ""
        found = [host] if parse_address(host) else await resolver.addresses(host)
        addresses = sorted(guard.admit(url, found))
    except AddressRefused as error:
        raise ValidationError(f"The repository is not cloned: {error}") from error
    except OSError as error:
        raise ValidationError(f"The repository's host {url.raw_host} cannot be found.") from error
    finally:
        await resolver.close()
    if url.scheme == "http" and not guard.allows(url, addresses):
        raise ValidationError("Repositories are cloned over https. Only hosts in RAG_FETCH_ALLOW may use http.")
    clean = url.with_query(None)
    settings = [f"protocol.{url.scheme}.allow=always"]
    if parse_address(host) is None:
        settings.append(_pinned(clean, addresses))
    secret = {"http.extraHeader": _authorization(given[2])} if given else {}
    return CloneOrigin(str(clean), str(clean), tuple(settings), secret)


def _pinned(url: URL, addresses: Sequence[str]) -> str:
    """Git's setting that lets curl connect to these addresses only."""
    listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return f"http.curloptResolve={url.host_subcomponent}:{url.port}:{listed}"


def _authorization(credentials: str) -> str:
    name, _, password = credentials.partition(":")
    return "Authorization: Basic " + b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()


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
    max_files: int = DEFAULT_MAX_FILES,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> AsyncGenerator[RepositoryFile | Refused]:
    """Yield the files in the order of their paths, at most `max_files`, none longer than `max_bytes`.

    `include` and `exclude` are patterns as in .gitignore. `NEVER_INDEXED` is excluded first, so an `exclude` of
    `!vendor/` includes that folder again. Files that the patterns leave out are not reported. Raises `ValidationError`
    if git cannot list the files or lists too many.
    """
    included, excluded = _patterns(include or ["*"]), _patterns([*NEVER_INDEXED, *exclude])
    git = Git(checkout.folder.parent)
    taken = 0
    async with (
        aclosing(_entries(checkout)) as entries,
        git.running(["--git-dir", str(checkout.folder), "cat-file", "--batch"]) as contents,
    ):
        async for entry in entries:
            path = _path(entry)
            if excluded.match_file(path) or not included.match_file(path):
                continue
            reason = _unfit(entry, path, max_bytes)
            if reason is None and taken == max_files:
                yield Refused(path, f"the limit of {max_files:,} files is reached", skipped=True)
                return
            found = reason or await _read(contents, entry["id"], int(entry["size"]), path)
            if isinstance(found, str):
                yield Refused(path, found, skipped=True)
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
    if size > max_bytes:
        return f"has {size:,} bytes, the limit is {max_bytes:,}"
    ending = PurePosixPath(path).suffix.lower()
    if ending:
        return None if ending in ENDINGS else f"{ending} files are not supported"
    return None if named_kind(path) else unsupported(path)


async def _read(contents: asyncio.subprocess.Process, blob: bytes, size: int, path: str) -> bytes | str:
    """Return the object's content, or why it is not indexed."""
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
