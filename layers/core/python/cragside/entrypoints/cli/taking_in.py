"""Shows how far a command has taken in files: their number, their size, and the file that it reads now."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cragside.composition.files import FoundFile, Refused
from cragside.entrypoints.cli.progress import Offer
from cragside.entrypoints.cli.terminal import printable, progress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LONGEST_NAME = 40


@contextmanager
def bar(*, as_json: bool) -> Iterator["Progress"]:
    """A progress bar on standard error, mute unless somebody watches."""
    from rich.progress import Progress

    console = progress(as_json=as_json)
    with Progress(console=console, transient=True, disable=console.quiet) as shown:
        yield shown


class TakingIn:
    """The line about files that are taken in. `found` lists them, if that is known beforehand."""

    def __init__(self, shown: "Progress", found: Sequence[FoundFile | Refused | Offer] | None) -> None:
        self._shown = shown
        self._all = None if found is None else len(found)
        # Nobody sees the sizes of a mute bar, so the files are not asked for them.
        self._bytes = 0 if shown.disable else sum(map(_size, found or ()))
        self._files = self._read = 0
        self._step: TaskID = shown.add_task(self._description(), total=self._bytes or None)

    def begin(self, offer: Offer | Refused) -> None:
        """This file is next. Taking it in may last, as OCR does."""
        name = printable(offer.name)
        short = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
        self._shown.update(self._step, description=f"{self._description()}: {short}")

    def end(self, offer: Offer | Refused) -> None:
        """The file is taken in, or refused."""
        self._files += 1
        content = offer.content if isinstance(offer, Offer) else None
        self._read += len(content or b"")
        self._shown.update(self._step, completed=self._read, description=self._description())

    def close(self) -> None:
        """All files are taken in."""
        self._shown.remove_task(self._step)

    def _description(self) -> str:
        from rich.filesize import decimal

        files = f"{self._files}" if self._all is None else f"{self._files} of {self._all}"
        size = f"{decimal(self._read)} of {decimal(self._bytes)}" if self._bytes else decimal(self._read)
        return f"Taking in: {files} files, {size}"


def _size(item: Any) -> int:
    with suppress(OSError):
        return item.path.stat().st_size if isinstance(item, FoundFile) else 0
    return 0
