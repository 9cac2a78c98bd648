"""How long a browser's page takes for a frame, read from Chromium's own trace.

A script in the page marks each frame, and whether input or scrolling came since the one before. Only frames with input
count: the others have nothing to do. The interval is the time since the frame before; the browser makes 60 a second at
most, so that 16.7 ms is the best. The work is what the page's main thread did for the frame: script, style, layout and
paint.
"""

import bisect
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from benchmarks.harness import percentile

if TYPE_CHECKING:
    from playwright.sync_api import Page

RECORDER = """(() => {
    let moved = false;
    for (const type of ["wheel", "mousemove", "scroll"]) {
        addEventListener(type, () => { moved = true; }, {capture: true, passive: true});
    }
    const frame = () => {
        performance.mark(moved ? "bench-moved" : "bench-still");
        performance.clearMarks(moved ? "bench-moved" : "bench-still");
        moved = false;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})();"""
_MOVED, _STILL, _TASK = "bench-moved", "bench-still", "RunTask"
_CATEGORIES = ["blink.user_timing", "disabled-by-default-devtools.timeline"]


class _Event(TypedDict, total=False):
    name: str
    pid: int
    tid: int
    ts: float
    dur: float


@dataclass
class Frames:
    """The frames with input of one act, in milliseconds."""

    intervals: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    # Script alone, as an average: the trace does not split it by frames.
    script: float = 0.0

    def row(self, name: str) -> list[str]:
        """The cells of the table."""
        if not self.work:
            return [name, "0", *["-"] * 5]
        figures = (
            statistics.median(self.intervals),
            percentile(self.intervals, 95),
            statistics.median(self.work),
            percentile(self.work, 95),
            self.script,
        )
        return [name, str(len(self.work)), *(f"{figure:.1f}" for figure in figures)]

    def as_dict(self) -> dict[str, float]:
        """The figures for the report."""
        head = ("frames", "interval_p50_ms", "interval_p95_ms", "work_p50_ms", "work_p95_ms", "script_mean_ms")
        return {key: float(cell) for key, cell in zip(head, self.row("")[1:], strict=True) if cell != "-"}


HEAD = ["", "frames with input", "interval p50 ms", "p95", "work p50 ms", "p95", "script mean ms"]


@contextmanager
def recorded(page: "Page") -> Iterator[Frames]:
    """The frames of what the block does with a page that has the recorder. They are there after the block."""
    browser = page.context.browser
    if browser is None:
        raise SystemExit("The page belongs to no browser.")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    frames = Frames()
    before = _script_ms(devtools.send("Performance.getMetrics"))
    browser.start_tracing(page=page, categories=_CATEGORIES)
    yield frames
    events: list[_Event] = json.loads(browser.stop_tracing())["traceEvents"]
    after = _script_ms(devtools.send("Performance.getMetrics"))
    devtools.detach()
    frames.intervals, frames.work = _read(events)
    frames.script = (after - before) / max(1, len(frames.work))


def _script_ms(metrics: "dict[str, list[dict[str, str | float]]]") -> float:
    return sum(float(each["value"]) * 1000 for each in metrics["metrics"] if each["name"] == "ScriptDuration")


def _read(events: list[_Event]) -> tuple[list[float], list[float]]:
    marks = sorted((event["ts"], event["name"]) for event in events if event["name"] in (_MOVED, _STILL))
    if not marks:
        raise SystemExit("The trace has no frames.")
    thread = Counter((e["pid"], e["tid"]) for e in events if e["name"] in (_MOVED, _STILL)).most_common(1)[0][0]
    times = [time for time, _ in marks]
    work = [0.0] * (len(times) + 1)
    for event in events:
        if event["name"] == _TASK and (event["pid"], event["tid"]) == thread:
            work[bisect.bisect_left(times, event["ts"])] += event.get("dur", 0.0) / 1000
    counted = [n for n, (_, name) in enumerate(marks) if name == _MOVED and n > 0]
    return [(times[n] - times[n - 1]) / 1000 for n in counted], [work[n] for n in counted]
