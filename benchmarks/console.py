"""The console in Chromium: first paint, size, and the time for a frame of its longest list and its largest graph.

`python -m benchmarks.console [--quick] [--json FILE]`

Needs the dependency group `browser`. `cragside serve` runs in a separate process on a store of 10,000 documents,
which cragside indexed. They name fewer than 2,000 entities, so the page gets copies of some too. Chromium has no
graphics card here: it draws with the processor. The list is scrolled with the wheel, the graph is dragged and zoomed,
as fast as the page takes the input.
"""

import argparse
import gzip
import math
import re
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from benchmarks.browser_frames import HEAD, RECORDER, Frames, recorded
from benchmarks.harness import Target, cragside, machine, report, scratch, table
from benchmarks.stores import CHUNKING, store
from tests.services import chromium
from tests.services.tools import Unavailable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

DOCUMENTS = 10_000
NODES = 2_000
_STATIC = "cragside.entrypoints.console"
_WINDOW: "ViewportSize" = {"width": 1280, "height": 800}
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
_SETTLED_SECONDS = 180.0


def static_bytes(folder: Traversable) -> int:
    """The compressed size of all files in a folder."""
    return sum(
        static_bytes(each) if each.is_dir() else len(gzip.compress(each.read_bytes(), mtime=0))
        for each in folder.iterdir()
    )


def paints(browser: "Browser", address: str, rounds: int) -> tuple[list[float], list[float]]:
    """First contentful paint and the first heading of the panel in milliseconds, each time with an empty cache."""
    painted: list[float] = []
    headed: list[float] = []
    for _ in range(rounds):
        with browser.new_context(viewport=_WINDOW) as context:
            page = context.new_page()
            page.goto(f"{address}/console/#/ask")
            page.locator("main h1").first.wait_for()
            headed.append(float(page.evaluate("performance.now()")))
            page.wait_for_function(_PAINT)
            painted.append(float(page.evaluate(_PAINT)))
    return painted, headed


def scroll(page: "Page", steps: int) -> None:
    """Turn the wheel over the list: slowly down, fast down, up again."""
    page.mouse.move(_WINDOW["width"] / 2, _WINDOW["height"] * 0.7)
    for distance in (*[120] * steps, *[2_000] * steps, *[-120] * steps):
        page.mouse.wheel(0, distance)


def drag(page: "Page", steps: int) -> None:
    """Hold an empty place of the graph and move in circles."""
    x, y = _middle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(steps):
        angle = step / 10
        page.mouse.move(x + 100 * math.sin(angle), y + 100 * (1 - math.cos(angle)))
    page.mouse.up()


def zoom(page: "Page", steps: int) -> None:
    """Turn the wheel over the graph, forwards and back."""
    page.mouse.move(*_middle(page))
    for step in range(steps):
        page.mouse.wheel(0, -100 if step // 10 % 2 == 0 else 100)


def measured(page: "Page", act: Callable[["Page", int], None], steps: int) -> Frames:
    """The frames of an act. One that changes nothing ends the benchmark."""
    with recorded(page) as frames:
        act(page, steps)
    if not frames.busy:
        raise SystemExit(f"The page took none of the input of `{act.__name__}`.")
    return frames


def open_documents(page: "Page", address: str) -> None:
    """Show the list, and wait for its rows."""
    page.goto(f"{address}/console/#/documents")
    page.get_by_text(re.compile(r"record-\d+\.txt")).first.wait_for()
    wait_until_idle(page)


def grown(graph: dict[str, Any], nodes: int) -> dict[str, Any]:
    """The service's graph, with copies under other names until it has so many entities."""
    entities, relationships = graph["entities"], graph["relationships"]
    copies = {each["name"]: f"{each['name']} II" for each in entities[: max(0, nodes - len(entities))]}
    others = [
        {**each, "source": copies[each["source"]], "target": copies[each["target"]]}
        for each in relationships
        if each["source"] in copies and each["target"] in copies
    ]
    named = [{**each, "name": copies[each["name"]]} for each in entities if each["name"] in copies]
    return {
        **graph,
        "entities": entities + named,
        "relationships": relationships + others,
        "total": graph["total"] + len(named),
    }


def open_graph(page: "Page", address: str, nodes: int) -> None:
    """Show the graph with so many entities, and wait until its layout rests."""
    page.route("**/v1/graph?*", lambda route: route.fulfill(json=grown(route.fetch().json(), nodes)))
    page.goto(f"{address}/console/#/graph")
    sizes = page.locator("main select").filter(has=page.locator(f"option[value='{nodes}']"))
    sizes.first.select_option(str(nodes))
    page.get_by_role("status").filter(has_text=re.compile(rf"\b({nodes:,}|{nodes})\b")).first.wait_for()
    page.locator("main canvas").first.wait_for()
    wait_until_idle(page)


def wait_until_idle(page: "Page") -> None:
    """Return when the page's main thread has worked less than a fifth of a second; give up after minutes."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    deadline = time.monotonic() + _SETTLED_SECONDS
    busy, before = 1.0, 0.0
    while busy > 0.2:
        if time.monotonic() > deadline:
            raise SystemExit("The page does not come to rest.")
        page.wait_for_timeout(1_000)
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        total = next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")
        busy, before = total - before, total
    devtools.detach()


def _middle(page: "Page") -> tuple[float, float]:
    box = page.locator("main canvas").first.bounding_box()
    if box is None:
        raise SystemExit("The graph is not visible.")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test with 500 documents and 100 entities")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    documents, nodes, rounds, steps = (500, 100, 2, 40) if arguments.quick else (DOCUMENTS, NODES, 7, 200)
    try:
        program = chromium.report()
    except Unavailable as reason:
        raise SystemExit(str(reason)) from reason
    home = store(documents, each=1)
    line = machine()
    size = static_bytes(files(_STATIC) / "static") / 1000
    with (
        scratch() as folder,
        cragside(home, log=folder / "cragside.log", workers=1, **CHUNKING) as (address, _),
        chromium.launched(program.uri) as browser,
    ):
        painted, headed = paints(browser, address, rounds)
        with browser.new_context(viewport=_WINDOW) as context:
            context.add_init_script(RECORDER)
            with closing(context.new_page()) as page:
                open_graph(page, address, nodes)
                dragged, zoomed = measured(page, drag, steps), measured(page, zoom, steps)
            with closing(context.new_page()) as page:
                open_documents(page, address)
                scrolled = measured(page, scroll, steps)
    acts = {"list, scrolled": scrolled, "graph, dragged": dragged, "graph, zoomed": zoomed}
    print(f"\n{program.version}, {documents:,} documents, {nodes:,} entities")
    print(table(HEAD, [frames.row(name) for name, frames in acts.items()]))
    targets = [
        Target("static files, compressed", size, 250, "KB"),
        Target("first contentful paint, median", statistics.median(painted), 1_000, "ms"),
        Target("first heading of a panel, median", statistics.median(headed), 2_000, "ms"),
        *(Target(f"CPU for a frame, median: {name}", statistics.median(f.cpu), 16, "ms") for name, f in acts.items()),
    ]
    details = {
        "browser": program.version,
        "first_paints_ms": [round(each, 1) for each in painted],
        "frames": {name: frames.as_dict() for name, frames in acts.items()},
    }
    report("The console", targets, details, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
