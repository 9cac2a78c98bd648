"""Times of a browser's frames, read from Chromium's own trace.

A script in the page marks each frame, and whether input or scrolling came since the one before. Only frames with input
count: the others have nothing to do. The interval is the time to the next frame; the browser makes 60 a second at most,
so that 16.7 ms is the best. Busy is what the page's main thread needed for the frame: script, style, layout, paint, and
waiting for the drawing of WebGL, which is long without a graphics card. CPU is the same without the waiting.
"""

import bisect
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
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
_MARKS = (_MOVED, _STILL)
_CATEGORIES = ["blink.user_timing", "disabled-by-default-devtools.timeline"]


class _Event(TypedDict, total=False):
    name: str
    pid: int
    tid: int
    ts: float
    dur: float
    tdur: float


@dataclass
class Frames:
    """The frames with input of one act, in milliseconds."""

    intervals: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    # Script alone, as an average: the trace does not split it by frames.
    script: float = 0.0

    def row(self, name: str) -> list[str]:
        """The cells of the table."""
        series = (self.intervals, self.busy, self.cpu)
        if not self.busy:
            return [name, "0", *["-"] * 7]
        figures = [figure for each in series for figure in (statistics.median(each), percentile(each, 95))]
        return [name, str(len(self.busy)), *(f"{figure:.1f}" for figure in (*figures, self.script))]

    def as_dict(self) -> dict[str, float]:
        """The figures for the report."""
        return {key: float(cell) for key, cell in zip(_KEYS, self.row("")[1:], strict=True) if cell != "-"}


HEAD = ["ms", "frames with input", "interval p50", "p95", "busy p50", "p95", "CPU p50", "p95", "script mean"]
_KEYS = (
    "frames",
    *(f"{kind}_{quantile}_ms" for kind in ("interval", "busy", "cpu") for quantile in ("p50", "p95")),
    "script_mean_ms",
)


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
    _read(events, frames)
    frames.script = (after - before) / max(1, len(frames.busy))


def _script_ms(metrics: "dict[str, list[dict[str, str | float]]]") -> float:
    return sum(float(each["value"]) * 1000 for each in metrics["metrics"] if each["name"] == "ScriptDuration")


def _read(events: list[_Event], frames: Frames) -> None:
    moved = Counter((event["pid"], event["tid"]) for event in events if event["name"] == _MOVED)
    if not moved:
        return
    thread = moved.most_common(1)[0][0]
    own = sorted((event for event in events if (event["pid"], event["tid"]) == thread), key=lambda event: event["ts"])
    tasks = _outermost([event for event in own if event["name"] == _TASK])
    begins = [task["ts"] for task in tasks]
    # A frame begins with the task in which it is marked: that task hands the input to the page first.
    marked = [(bisect.bisect_right(begins, event["ts"]) - 1, event["name"]) for event in own if event["name"] in _MARKS]
    for (first, name), (last, _) in pairwise(marked):
        if name == _MOVED and 0 <= first < last:
            frames.intervals.append((begins[last] - begins[first]) / 1000)
            frames.busy.append(sum(task["dur"] for task in tasks[first:last]) / 1000)
            frames.cpu.append(sum(task.get("tdur", task["dur"]) for task in tasks[first:last]) / 1000)


def _outermost(tasks: list[_Event]) -> list[_Event]:
    """The tasks that no other task contains."""
    found: list[_Event] = []
    end = 0.0
    for task in tasks:
        if "dur" in task and task["ts"] >= end:
            found.append(task)
            end = task["ts"] + task["dur"]
    return found
