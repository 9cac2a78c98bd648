"""Watches folders and syncs each change, until Ctrl-C."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.composition.files import TextDigests
from cragside.domain.errors import DeadlineExceeded, ServiceUnavailable
from cragside.entrypoints.cli.planning import Loss, plan_sync
from cragside.entrypoints.cli.report import Report
from cragside.entrypoints.cli.running import Run
from cragside.entrypoints.cli.terminal import notices, printable
from cragside.entrypoints.log import message_of

if TYPE_CHECKING:
    from watchfiles import Change

    from cragside.entrypoints.cli.service import Service

# Milliseconds. Changes are taken together until there was none for `_QUIET`, or for `_MOST` in all. Without any, the
# folders themselves are looked at every `_LOOKS`.
_QUIET, _MOST, _LOOKS = 300, 2_000, 1_000
_REFUSED = ("failed", "skipped")


@dataclass
class Watch:
    """Watches folders. It is `busy` during a sync, which an interrupt would leave unfinished."""

    run: Run
    service: "Service"
    folders: Sequence[Path]
    digests: TextDigests
    busy: bool = False
    _shown: set[str] = field(default_factory=set)

    async def follow(self) -> None:
        """Bring the knowledge base in line with the folders after each change, and never return."""
        from watchfiles import awatch

        while True:
            identities = await self._all_there()
            due = True  # something may have changed before the watcher began
            try:
                async for changes in awatch(
                    *self.folders,
                    watch_filter=_is_visible,
                    debounce=_MOST,
                    step=_QUIET,
                    rust_timeout=_LOOKS,
                    yield_on_timeout=True,
                ):
                    if await asyncio.to_thread(self._identities) != identities:
                        break  # a folder is gone, or another one is in its place: watch that
                    if changes or due:
                        due = not await self._sync()
                    self._tell_once(f"Following {', '.join(map(str, self.folders))}. Ctrl-C ends this.")
            except FileNotFoundError:
                continue

    async def _sync(self) -> bool:
        """Sync once. Returns False if a component is down, so that it has to be tried again."""
        report = self.run.report = Report()
        self.busy = True
        try:
            planned = await plan_sync(self.service, self.folders, self.digests, keep_emptied=True)
            if planned.losses:
                self._tell_losses(planned.losses)
                planned = planned.without_removals()
            await self.run.carry_out(self.service, planned)
        except (DeadlineExceeded, ServiceUnavailable) as error:
            self._rest()
            self._tell_once(f"error: {message_of(error)} It is tried again.")
            return False
        self._rest()
        self._show(report)
        if report.stopped:
            self._tell_once(f"error: {report.stopped}. What was taken in waits in the queue.")
        return not report.stopped

    def _rest(self) -> None:
        self.busy, self.run.report = False, Report()

    def _show(self, report: Report) -> None:
        """Print a line for each change, but each unreadable file only once."""
        refusals = {f"{line.source or line.name}: {line.reason}" for line in report.lines if line.status in _REFUSED}
        report.lines = [
            line
            for line in report.lines
            if line.status != "unchanged"
            and not (line.status in _REFUSED and f"{line.source or line.name}: {line.reason}" in self._shown)
        ]
        self._shown |= refusals
        report.show()

    def _tell_losses(self, losses: Sequence[Loss]) -> None:
        folders = " ".join(f"'{folder}'" for folder in map(str, self.folders))
        for loss in losses:
            self._tell_once(f"{loss}. They are kept. To remove them: cragside sync --yes {folders}")

    def _tell_once(self, message: str) -> None:
        if message not in self._shown:
            self._shown.add(message)
            notices().print(printable(message), soft_wrap=True)

    async def _all_there(self) -> list[tuple[int, int] | None]:
        """Wait until every folder exists. Returns their device and inode numbers."""
        while None in (identities := await asyncio.to_thread(self._identities)):
            away = [str(folder) for folder, one in zip(self.folders, identities, strict=True) if one is None]
            self._tell_once(f"{', '.join(away)} is not there at the moment. Its documents are kept until it is back.")
            await asyncio.sleep(_LOOKS / 1000)
        return identities

    def _identities(self) -> list[tuple[int, int] | None]:
        return [_identity(folder) for folder in self.folders]


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if folder.is_dir() else None


def _is_visible(_change: "Change", path: str) -> bool:
    """Tell if a change may matter. Editors and git often write hidden files."""
    return not Path(path).name.startswith(".") and "/.git/" not in path
