"""Programs from Debian's packages, unpacked into the cache folder: nothing is installed, and root is not needed.

The packages are those of a fixed Debian release, whatever this machine runs. Each program starts with the release's own
loader and libraries. Apt's own configuration names the mirror, or TEST_DEBIAN_MIRROR does.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.services import tools
from tests.services.tools import Unavailable

RELEASE = "trixie"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_WRAPPER = '#!/bin/sh\nexec {loader} --library-path {libraries} --argv0 "$0" {program} "$@"\n'


def _as_it_is(_: Path) -> None:
    """Skip a package that is unpacked already."""


@dataclass(frozen=True)
class Selection:
    """Packages that share a folder of the cache. Programs that match a pattern can be called at once."""

    folder: str
    packages: tuple[str, ...]
    # What the packages depend on, but the programs can do without.
    left_out: re.Pattern[str]
    programs: tuple[str, ...]
    # Whether servers that don't run as root need the folder.
    shared: bool = False
    finish: Callable[[Path], None] = _as_it_is


SERVERS = Selection(
    folder=f"debian-{RELEASE}",
    packages=("postgresql-17", "postgresql-17-pgvector", "postgresql-17-age", "pgbouncer", "redis-server"),
    # Scripts of the packages, the JIT compiler, languages.
    left_out=re.compile(r"perl|llvm|libz3|locales|libc-l10n|tzdata|openssl$"),
    programs=("usr/lib/postgresql/*/bin/*", "usr/bin/redis-*", "usr/sbin/pgbouncer"),
    shared=True,
)


def unpacked(selection: Selection = SERVERS) -> Path:
    """The folder with the programs below `usr`, filled at the first call. Raises `Unavailable`."""
    folder = tools.cache(selection.folder, shared=selection.shared)
    made = folder / "packages.txt"
    wanted = " ".join(selection.packages)
    with tools.exclusive(folder):
        if not (made.exists() and made.read_text() == wanted):
            made.unlink(missing_ok=True)
            _unpack(folder, selection)
            made.write_text(wanted)
    return folder / "root"


def apt(folder: Path, *settings: str) -> list[str]:
    """The command `apt-get` with lists of its own in a folder: it neither needs root nor changes the machine."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    own = {
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Bin::dpkg": "/bin/false",  # it never installs anything, whatever it is asked
        "Debug::NoLocking": 1,
    }
    options = [*(f"{name}={value}" for name, value in own.items()), *settings]
    return ["apt-get", *(part for option in options for part in ("-o", option)), "--quiet"]


def _unpack(folder: Path, selection: Selection) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"unpacking Debian's packages needs {tool}")
    if not _KEYS.exists():
        raise Unavailable(f"checking Debian's packages needs the package debian-archive-keyring ({_KEYS})")
    scratch, root = folder / "apt", folder / "root"
    for each in (scratch, root):
        tools.remove(each)
    command = _updated(scratch)
    plan = tools.run([*command, "--simulate", "install", *selection.packages], cwd=scratch)
    names = [name for name in re.findall(r"^Inst (\S+)", plan, re.MULTILINE) if not selection.left_out.search(name)]
    tools.run([*command, "download", *names], cwd=scratch)
    for package in sorted(scratch.glob("*.deb")):
        tools.run(["dpkg-deb", "--extract", str(package), str(root)])
    _wrap(root, selection.programs)
    selection.finish(root)
    tools.remove(scratch)


def loader_of(root: Path) -> Path:
    """The release's own loader, which stands among its libraries."""
    return next((root / "usr/lib").glob("*/ld-linux-*.so.*"))


def _updated(scratch: Path) -> list[str]:
    """Apt with the release's package lists, from the first configured mirror that has them."""
    reason = "apt's configuration names no mirror of Debian"
    sources = scratch / "sources.list"
    settings = (f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=-", "APT::Install-Recommends=false")
    command = apt(scratch, *settings)
    for mirror in mirrors():
        sources.write_text(f"deb [signed-by={_KEYS}] {mirror} {RELEASE} main\n")
        try:
            tools.run([*command, "--error-on=any", "update"], cwd=scratch)
        except Unavailable as error:
            reason = str(error)
        else:
            return command
    raise Unavailable(
        f"Debian's packages could not be had: {reason.rstrip('.')}. TEST_DEBIAN_MIRROR names another mirror."
    )


def mirrors() -> list[str]:
    """Return the addresses that serve Debian's packages."""
    if given := os.environ.get("TEST_DEBIAN_MIRROR"):
        return [given]
    listed = tools.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    return [uri for uri in dict.fromkeys(listed.split()) if "security" not in uri]


def _wrap(root: Path, programs: tuple[str, ...]) -> None:
    """Replace each program by a script that starts it with the loader and the libraries beside it."""
    loader = loader_of(root)
    for program in [path for pattern in programs for path in root.glob(pattern)]:
        if program.is_symlink() or program.read_bytes()[:4] != b"\x7fELF":
            continue
        real = program.rename(program.with_name(f"{program.name}.elf"))
        parts = {"loader": loader, "libraries": loader.parent, "program": real}
        program.write_text(_WRAPPER.format(**{name: shlex.quote(str(path)) for name, path in parts.items()}))
        program.chmod(0o755)
