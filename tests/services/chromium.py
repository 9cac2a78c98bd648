"""The real Chromium of Debian, unpacked into the cache folder, and Playwright's control over it.

    python -m tests.services.chromium        # prints the program

The first run fetches about 160 MB. TEST_CHROMIUM names a program to use instead. The browser reaches loopback alone.
Its fonts are its own too, so that pictures look the same on every machine.
"""

import importlib.util
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services import debian, tools
from tests.services.run import Report
from tests.services.tools import Unavailable

if TYPE_CHECKING:  # Playwright is in the dependency group `browser`
    from playwright.sync_api import Browser

NAME = "chromium"
_VARIABLE = "TEST_CHROMIUM"
_FOLDER = "usr/lib/chromium"
# Chromium starts itself again for each page, so that it cannot be a program that the loader is given: the loader's
# place is written into it. Its libraries find each other by the variable of the loader.
_WRAPPER = """\
#!/bin/sh
export LD_LIBRARY_PATH={libraries}
export FONTCONFIG_FILE={fonts}
exec {program} "$@"
"""
_FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{folder}</dir>
  <cachedir>{cache}</cachedir>
  <include>{rules}/30-metric-aliases.conf</include>
  <include>{rules}/45-latin.conf</include>
  <include>{rules}/60-latin.conf</include>
</fontconfig>
"""
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def report() -> Report:
    """The program as the address of the report, and its version. Raises `Unavailable`."""
    if importlib.util.find_spec("playwright") is None:
        raise Unavailable("Playwright is missing, which is in the dependency group `browser`")
    given = os.environ.get(_VARIABLE)
    program = given or str(_fetched())
    version = tools.run([program, "--version"], seconds=60).strip().splitlines()[-1]
    return Report(NAME, program, version, f"from {_VARIABLE}" if given else f"of Debian {debian.RELEASE}")


@contextmanager
def launched(program: str) -> "Iterator[Browser]":
    """A browser without a window. While it is open, asyncio cannot run in this thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=_ARGUMENTS, chromium_sandbox=os.geteuid() != 0
        )
        try:
            yield browser
        finally:
            browser.close()


def _fetched() -> Path:
    return debian.unpacked(_SELECTION) / NAME


def _finish(root: Path) -> None:
    loader = debian.loader_of(root)
    for name in ("chromium", "chrome_crashpad_handler"):
        tools.run([str(root / "usr/bin/patchelf"), "--set-interpreter", str(loader), str(root / _FOLDER / name)])
    fonts, rules = root / "fonts.conf", root / "usr/share/fontconfig/conf.avail"
    fonts.write_text(_FONTS.format(folder=root / "usr/share/fonts", cache=root / "fonts", rules=rules))
    program = root / _FOLDER / "chromium"
    path = f"{loader.parent}:{loader.parent}/pulseaudio"
    _check_libraries(root, [str(loader), "--list", str(program)], path)
    parts = {"libraries": path, "fonts": str(fonts), "program": str(program)}
    wrapper = root / NAME
    wrapper.write_text(_WRAPPER.format(**{name: shlex.quote(value) for name, value in parts.items()}))
    wrapper.chmod(0o755)


def _check_libraries(root: Path, listing: list[str], path: str) -> None:
    """A library of this machine in the place of the release's may lack what the others need."""
    listed = tools.run(listing, env={"LD_LIBRARY_PATH": path})
    strange = [line.strip() for line in listed.splitlines() if "=>" in line and f"=> {root}/" not in line]
    if strange:
        raise Unavailable(f"Chromium lacks libraries: {', '.join(strange)}")


_SELECTION = debian.Selection(
    folder=f"chromium-{debian.RELEASE}",
    packages=("chromium", "patchelf", "fonts-liberation", "fonts-dejavu-core"),
    # What only a window, a desktop or a booted system needs.
    left_out=re.compile(
        r"llvm|libz3|mesa|^libgl(1|x|vnd)|gtk|adwaita|icon|^dconf|x11-utils|xdg-utils|^systemd|^lib(pam|systemd-shared|ssl3)|procps"
        r"|debconf|^dbus|x11-common|^libx(aw|mu|t6|ft|v1|xf86)|colord|cloudproviders|xkb-data|^mount|gdk-pixbuf|shared-mime"
    ),
    programs=("usr/bin/patchelf",),
    finish=_finish,
)


def main() -> None:
    """Fetch it if it is not there."""
    print(report().uri)


if __name__ == "__main__":
    main()
