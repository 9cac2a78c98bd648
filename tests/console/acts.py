"""Acts of people on the pages of the console, with the expected results."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from playwright.sync_api import Locator, LocatorAssertions, Page, Route

# Milliseconds until what the service does has to show: other tests may run on the same processors.
PATIENCE = 30_000


class _Dragged(TypedDict):
    items: list[str]
    files: list[str]
    dragOperationsMask: int


def expects(locator: "Locator") -> "LocatorAssertions":
    """Playwright's assertions, which wait until they hold."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return expect(locator)


def drop(page: "Page", paths: Sequence[Path]) -> None:
    """Drop files and folders of this machine onto the page, as a file manager does."""
    data = _Dragged(items=[], files=[str(path) for path in paths], dragOperationsMask=1)
    session = page.context.new_cdp_session(page)
    for event in ("dragEnter", "dragOver", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": event, "x": 200, "y": 200, "data": dict(data)})
    session.detach()


def focused(page: "Page") -> str:
    """Return the focused element, as a screen reader names it."""
    return str(page.evaluate("() => document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()"))


def first_held(page: "Page", held: Sequence["Route"]) -> "Route":
    """Return the first request that a route of the test held, as soon as the browser has sent one."""
    for _ in range(PATIENCE // 20):
        if held:
            break
        page.wait_for_timeout(20)
    assert held, "The page sent no request."
    return held[0]


def stop_clock(page: "Page") -> None:
    """From now on, the page's timers wait for `page.clock.run_for`, however busy this machine is."""
    page.clock.install()
    page.clock.pause_at(datetime.now() + timedelta(minutes=1))
