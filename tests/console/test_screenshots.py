"""The pictures of the documentation. `make screenshots` takes them anew; otherwise they go to a temporary folder."""

import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from tests.console.acts import PATIENCE, expects
from tests.console.watch import Watch
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images"
CORPUS = files("cragside.entrypoints.samples") / "corpus"
EXCHANGES = (
    ("Which port does Redis have here?", "Redis has port 6380 here, because 6379 was taken when it was set up."),
    ("When do the backups run?", "The backups of the database run every night at two, and are kept for ninety days."),
)
SAMPLES = Given(documents={each.name: each.read_text(encoding="utf-8") for each in CORPUS.iterdir()}, ollama="stub")


def ask(page: "Page") -> None:
    page.get_by_label("Question").fill("Who lit Cragside?")
    page.get_by_role("button", name="Find evidence").click()
    expects(page.locator(".candidate.kept mark").first).to_be_visible()


def documents(page: "Page") -> None:
    expects(page.locator("tbody tr")).to_have_count(34)


def graph(page: "Page") -> None:
    page.get_by_label("2 steps").check()
    expects(page.locator("canvas").first).to_be_visible()
    page.get_by_role("button", name="Show what says that").first.click()
    expects(page.locator("section blockquote").first).to_be_visible()


def memory(page: "Page") -> None:
    expects(page.get_by_text("Redis has port 6380 here")).to_be_visible()


def settings(page: "Page") -> None:
    expects(page.get_by_role("region", name="Components").get_by_role("row").filter(has_text="store")).to_be_visible()


# What each picture shows, by its name: the page's route and what is done on it.
SHOWN: Mapping[str, tuple[str, Callable[["Page"], None]]] = {
    "ask": ("#/ask", ask),
    "documents": ("#/documents", documents),
    "graph": ("#/graph?entity=Java", graph),
    "memory": ("#/memory", memory),
    "settings": ("#/settings", settings),
}


@pytest.fixture
def remembering(shared_service: CragsideServer) -> CragsideServer:
    with shared_service.client() as client:
        if not client.get("/v1/memories").json()["total"]:
            for user, assistant in EXCHANGES:
                client.post("/v1/memories", json={"user": user, "assistant": assistant}).raise_for_status()
    return shared_service


@pytest.mark.parametrize("given", [SAMPLES])
@pytest.mark.parametrize("name", SHOWN)
def test_a_picture_shows_the_panel(
    page: "Page", remembering: CragsideServer, watch: Watch, tmp_path: Path, name: str
) -> None:
    route, act = SHOWN[name]
    page.set_default_timeout(PATIENCE)
    page.goto(remembering.console(route))
    act(page)
    page.wait_for_timeout(500)  # the graph comes to rest
    kept = PICTURES / f"console-{name}.png"
    taking = bool(os.environ.get("SCREENSHOTS"))
    # A picture of a new panel has none before it.
    wanted = None if taking and not kept.exists() else _size(kept)
    picture = kept if taking else tmp_path / kept.name
    page.screenshot(path=picture, animations="disabled")
    with Image.open(picture) as taken:
        assert len(taken.convert("RGB").getcolors(2**24) or ()) > 50  # not an empty page
        assert wanted in (None, taken.size)
        if taking:
            taken.convert("RGB").save(picture, optimize=True)


def _size(picture: Path) -> tuple[int, int]:
    with Image.open(picture) as opened:
        return opened.size
