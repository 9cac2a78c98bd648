"""The graph over HTTP, as the console shows it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.knowledge import Knowledge

STAFF = "Alice Weber leads the Harbour Museum."
DIARY = "Alice Weber opened the Harbour Museum on Monday."
LOAN = "The Harbour Museum lent a map to the City Library."
TEXTS = {"staff.md": STAFF, "diary.md": DIARY, "loan.md": LOAN}
TYPES = {"Alice Weber": "person", "Harbour Museum": "organization", "City Library": "organization"}


class Extractor:
    """A model that reads the names that a text has, and relates the first two."""

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        text = next(text for text in TEXTS.values() if text in prompt)
        names = [name for name in TYPES if name in text]
        rows = ["<|#|>".join(("entity", name, TYPES[name], text)) for name in names]
        return "\n".join([*rows, "<|#|>".join(("relation", *names[:2], "knows", text)), "<|COMPLETE|>"])


# They only read.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    async with Knowledge(tmp_path_factory.mktemp("home"), members={"language_model": Extractor()}) as knowledge:
        for name, text in TEXTS.items():
            await knowledge.add(name, text)
            await knowledge.index()
        yield knowledge.http


def names(part: dict[str, Any]) -> list[str]:
    return [entity["name"] for entity in part["entities"]]


async def test_the_graph_shows_the_best_connected_and_counts_all(http: httpx.AsyncClient) -> None:
    part = (await http.get("/v1/graph", params={"limit": 2})).json()
    assert names(part) == ["Harbour Museum", "Alice Weber"]
    assert part["entities"][0]["type"] == "organization"
    assert part["entities"][0]["mentions"] == 3
    assert [(each["source"], each["target"]) for each in part["relationships"]] == [("Alice Weber", "Harbour Museum")]
    assert (part["capped"], part["total"], part["types"]) == (True, 3, {"organization": 2, "person": 1})


async def test_the_graph_can_be_of_one_type(http: httpx.AsyncClient) -> None:
    part = (await http.get("/v1/graph", params={"type": "organization"})).json()
    assert names(part) == ["Harbour Museum", "City Library"]
    assert (part["capped"], part["total"]) == (False, 3)


async def test_an_entity_is_found_as_one_types(http: httpx.AsyncClient) -> None:
    assert names((await http.get("/v1/graph/search", params={"text": "mus"})).json()) == ["Harbour Museum"]
    assert names((await http.get("/v1/graph/search", params={"limit": 1})).json()) == ["Harbour Museum"]
    assert names((await http.get("/v1/graph/search", params={"text": "i", "type": "person"})).json()) == ["Alice Weber"]


async def test_a_neighbourhood_reaches_as_many_steps_as_asked(http: httpx.AsyncClient) -> None:
    one = (await http.get("/v1/graph/neighbourhood", params={"entity": "alice weber"})).json()
    assert (names(one), one["capped"]) == (["Alice Weber", "Harbour Museum"], False)
    two = (await http.get("/v1/graph/neighbourhood", params={"entity": "Alice Weber", "depth": 2, "limit": 2})).json()
    assert (names(two), two["capped"]) == (["Alice Weber", "Harbour Museum"], True)
    missing = await http.get("/v1/graph/neighbourhood", params={"entity": "Nobody"})
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found")
    assert "Nobody" in missing.json()["error"]["message"]


async def test_the_passages_that_say_so_are_shown_with_their_documents(http: httpx.AsyncClient) -> None:
    both = (await http.get("/v1/graph/passages", params={"entity": "Alice Weber", "limit": 1})).json()
    assert both["total"] == 2
    (first,) = both["passages"]
    assert (first["name"], first["text"], first["page"], first["section"]) == ("staff.md", STAFF, None, None)
    shown = (await http.get(f"/v1/documents/{first['document']}/content", params={"passage": first["id"]})).json()
    assert shown["passage"]["start"] == 0
    ends = {"source": "City Library", "target": "Harbour Museum"}
    related = (await http.get("/v1/graph/passages", params=ends)).json()
    assert ([each["text"] for each in related["passages"]], related["total"]) == ([LOAN], 1)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, 400),
        ({"source": "Alice Weber"}, 400),
        ({"entity": "Alice Weber", "target": "City Library"}, 400),
        ({"entity": "Nobody"}, 404),
        ({"source": "Alice Weber", "target": "Nobody"}, 404),
        ({"source": "Alice Weber", "target": "City Library"}, 200),
    ],
)
async def test_passages_are_of_one_entity_or_of_two(
    http: httpx.AsyncClient, given: dict[str, str], status: int
) -> None:
    assert (await http.get("/v1/graph/passages", params=given)).status_code == status


@pytest.mark.parametrize("path", ["", "/search?text=a", "/neighbourhood?entity=a", "/passages?entity=a"])
async def test_limits_are_bounded(http: httpx.AsyncClient, path: str) -> None:
    joint = "&" if "?" in path else "?"
    for limit in (0, 2001):
        assert (await http.get(f"/v1/graph{path}{joint}limit={limit}")).status_code == 400


async def test_an_empty_workspace_has_an_empty_graph(http: httpx.AsyncClient) -> None:
    empty = (await http.get("/v1/graph", params={"workspace": "nobody"})).json()
    assert empty == {"entities": [], "relationships": [], "capped": False, "total": 0, "types": {}}
