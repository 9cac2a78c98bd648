"""Runs git with all features disabled that a repository or its server could use to attack this machine."""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cragside.domain.errors import ConfigurationError, ProcessingError, ValidationError

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
        """The short output of the command. Raises `ValidationError` with git's reason if the command fails."""
        async with self.running(arguments, settings=settings, secret=secret) as process:
            written = await _drained(process)
            if process.returncode:
                raise ValidationError(f"git says: {_reason(written)}")
            return written


async def _drained(process: asyncio.subprocess.Process) -> bytes:
    """The output of the command, or its errors if it fails."""
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
