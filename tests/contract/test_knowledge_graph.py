"""The graph port: a graph that LightRAG has merged answers the same on every database, and baked."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
import pytest_asyncio

from cragside.bootstrap import Container
from cragside.composition.store_files import Baking
from cragside.domain.document import SourceText
from cragside.domain.knowledge import Neighbourhood
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.knowledge_graph import KnowledgeGraph
from tests.indexing import delete
from tests.services.backends import BACKENDS, made

# One loop for all tests, which share the graphs.
pytestmark = pytest.mark.asyncio(loop_scope="module")

# What is read out of each text: entities with their type, then relations with their keywords, descriptions last.
STAFF = "Alice Weber leads the Harbour Museum since 1990."
DIARY = "Alice Weber opened the Harbour Museum on Monday."
LOAN = "The Harbour Museum lent a map to the City Library."
WORK = "Zoe Brandt works at the City Library."
POST = "The Österreichische Post brings letters. A Mill grinds, a mill is a mill."
TEXTS = {"staff.md": STAFF, "diary.md": DIARY, "loan.md": LOAN, "work.md": WORK, "post.md": POST}
TYPES = {
    "Alice Weber": "person",
    "Harbour Museum": "organization",
    "City Library": "organization",
    "Zoe Brandt": "person",
    "Österreichische Post": "organization",
    "Mill": "artifact",
    "mill": "concept",
}
NAMED = {
    STAFF: ("Alice Weber", "Harbour Museum"),
    DIARY: ("Alice Weber", "Harbour Museum"),
    LOAN: ("Harbour Museum", "City Library"),
    WORK: ("Zoe Brandt", "City Library"),
    POST: ("Österreichische Post", "Mill", "mill"),
}
VERBS = {STAFF: "leads", DIARY: "leads", LOAN: "lends", WORK: "works at"}


class Extractor:
    """A model that reads the scripted rows out of each text."""

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        rows: list[str] = []
        for text, names in NAMED.items():
            if text in prompt:
                rows += ["<|#|>".join(("entity", name, TYPES[name], text)) for name in names]
                if text in VERBS:
                    rows.append("<|#|>".join(("relation", *names, VERBS[text], text)))
        return "\n".join([*rows, "<|COMPLETE|>"])


@dataclass
class Case:
    """A graph, and the id of the passage that holds each text."""

    graph: KnowledgeGraph
    passages: dict[str, str]


@pytest_asyncio.fixture(params=[*BACKENDS, "baked"], scope="module", loop_scope="module")
async def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Case]:
    """A graph of each kind for all tests of the file, which only read it."""
    folder = tmp_path_factory.mktemp("graph")
    home = folder / "home"
    baked = request.param == "baked"
    with nullcontext(SqliteBackend()) if baked else made(request) as backend:
        container = Container(load_settings({"RAG_HOME": str(home)}), language_model=Extractor(), backend=backend)
        repository = (await container.workspaces.open("default")).passages
        for name, text in TEXTS.items():
            (outcome,) = await repository.save_documents([SourceText(name, text)])
            assert outcome.status == "indexed"
        if baked:
            known = await repository.status()
            await container.close()
            with Baking.into(folder / "baked") as baking:
                home.rename(baking.home)
                baking.publish(known)
            container = Container(load_settings({"RAG_HOME": str(folder / "baked")}))
        library = (await container.workspaces.open("default")).documents
        passages = {}
        for document in (await library.documents())[0]:
            (passage,) = await library.passages(document.id)
            passages[passage.text] = passage.id
        yield Case((await container.workspaces.open("default")).graph, passages)
        await container.close()


async def test_an_entity_has_its_connections_and_documents(case: Case) -> None:
    view = await case.graph.entity("Harbour Museum")
    assert view is not None
    assert (view.entity.name, view.entity.type, view.entity.mentions) == ("Harbour Museum", "organization", 3)
    assert sorted(view.entity.description.splitlines()) == sorted([STAFF, DIARY, LOAN])
    assert [(link.entity, link.relationship, link.direction) for link in view.connections] == [
        ("Alice Weber", "leads", "incoming"),
        ("City Library", "lends", "outgoing"),
    ]
    assert sorted(view.connections[0].description.splitlines()) == sorted([STAFF, DIARY])
    assert {name for _, name in view.documents} == {"staff.md", "diary.md", "loan.md"}
    assert all(identifier for identifier, _ in view.documents)


async def test_an_entity_has_its_times(case: Case) -> None:
    view = await case.graph.entity("Harbour Museum")
    assert view is not None
    assert view.entity.first_seen is not None
    assert view.entity.last_seen is not None
    first, last = map(datetime.fromisoformat, (view.entity.first_seen, view.entity.last_seen))
    assert first.tzinfo is not None
    # Whole seconds are all that LightRAG keeps of the later one.
    assert first.replace(microsecond=0) <= last


async def test_connections_and_documents_are_limited(case: Case) -> None:
    view = await case.graph.entity("Harbour Museum", connections=1, documents=2)
    assert view is not None
    assert [link.entity for link in view.connections] == ["Alice Weber"]
    assert len(view.documents) == 2


async def test_a_connection_starts_at_the_entity_that_its_description_names_first(case: Case) -> None:
    library, zoe = await case.graph.entity("City Library"), await case.graph.entity("Zoe Brandt")
    assert library is not None
    assert zoe is not None
    assert [(link.entity, link.direction) for link in zoe.connections] == [("City Library", "outgoing")]
    assert ("Zoe Brandt", "incoming") in [(link.entity, link.direction) for link in library.connections]


@pytest.mark.parametrize("spelled", ["harbour museum", "HARBOUR MUSEUM", "Harbour museum"])
async def test_an_entity_is_found_in_any_case(case: Case, spelled: str) -> None:
    view = await case.graph.entity(spelled)
    assert view is not None
    assert view.entity.name == "Harbour Museum"


@pytest.mark.parametrize("spelled", ["österreichische post", "ÖSTERREICHISCHE POST"])
async def test_any_case_is_more_than_ascii(case: Case, spelled: str) -> None:
    view = await case.graph.entity(spelled)
    assert view is not None
    assert view.entity.name == "Österreichische Post"


async def test_an_exact_name_ranks_before_one_in_another_case(case: Case) -> None:
    for name in ("Mill", "mill"):
        view = await case.graph.entity(name)
        assert view is not None
        assert (view.entity.name, view.entity.type) == (name, TYPES[name])


@pytest.mark.parametrize("name", ["Nobody", "", "%", "Harbour", "\ud83d", "\x00", "' OR 1=1 --"])
async def test_an_unknown_entity_is_not_found(case: Case, name: str) -> None:
    assert await case.graph.entity(name) is None
    assert await case.graph.expand([name]) == Neighbourhood()


async def test_passages_name_entities_most_mentioned_first(case: Case) -> None:
    passages = [case.passages[STAFF], case.passages[LOAN], "no such passage"]
    assert await case.graph.of_passages(passages) == ["Harbour Museum", "City Library", "Alice Weber"]
    assert await case.graph.of_passages(passages, limit=1) == ["Harbour Museum"]
    assert await case.graph.of_passages([]) == []


async def test_each_passage_names_its_entities_best_connected_first(case: Case) -> None:
    staff, loan = case.passages[STAFF], case.passages[LOAN]
    named = {staff: ["Harbour Museum", "Alice Weber"], loan: ["City Library", "Harbour Museum"]}
    of_each, shown = await case.graph.within([staff, loan, "no such passage"])
    assert of_each == named
    assert [entity.name for entity in shown.entities] == ["Harbour Museum", "Alice Weber", "City Library"]
    assert (
        shown.relationships == (await case.graph.expand([each.name for each in shown.entities], depth=0)).relationships
    )
    of_each, shown = await case.graph.within([staff, loan], each=1, limit=1)
    assert of_each == {staff: ["Harbour Museum"], loan: ["City Library"]}
    assert [entity.name for entity in shown.entities] == ["Harbour Museum"]
    assert await case.graph.within([]) == ({}, Neighbourhood())


@pytest.mark.parametrize(
    ("depth", "reached"),
    [
        (0, ["Alice Weber"]),
        (1, ["Alice Weber", "Harbour Museum"]),
        (2, ["Alice Weber", "Harbour Museum", "City Library"]),
        (9, ["Alice Weber", "Harbour Museum", "City Library"]),
    ],
)
async def test_expanding_reaches_two_steps_at_most(case: Case, depth: int, reached: list[str]) -> None:
    found = await case.graph.expand(["alice weber"], depth=depth)
    assert [entity.name for entity in found.entities] == reached
    assert len(found.relationships) == len(reached) - 1
    assert not found.capped


async def test_relationships_among_the_entities_have_their_direction(case: Case) -> None:
    found = await case.graph.expand(["Zoe Brandt", "City Library"], depth=1)
    assert {(edge.source, edge.target, edge.type) for edge in found.relationships} == {
        ("Zoe Brandt", "City Library", "works at"),
        ("Harbour Museum", "City Library", "lends"),
    }
    assert {edge.description for edge in found.relationships} == {WORK, LOAN}


async def test_expanding_stops_at_its_limit_and_says_so(case: Case) -> None:
    found = await case.graph.expand(["Harbour Museum"], limit=2)
    assert [entity.name for entity in found.entities] == ["Harbour Museum", "Alice Weber"]
    assert found.capped
    assert (await case.graph.expand(list(TYPES), limit=3)).capped
    assert not (await case.graph.expand(list(TYPES), limit=len(TYPES))).capped


async def test_a_search_finds_parts_of_names_best_connected_first(case: Case) -> None:
    assert [entity.name for entity in await case.graph.search("MU")] == ["Harbour Museum"]
    assert [entity.name for entity in await case.graph.search("ÖSTER")] == ["Österreichische Post"]
    assert await case.graph.search("%") == []
    everything = [entity.name for entity in await case.graph.search("")]
    assert everything[:2] == ["City Library", "Harbour Museum"]
    assert set(everything) == set(TYPES)
    assert len(await case.graph.search("", limit=2)) == 2


async def test_a_search_and_an_overview_can_be_of_one_type(case: Case) -> None:
    found = [entity.name for entity in await case.graph.search("i", kind="person")]
    assert found == ["Alice Weber"]
    people = await case.graph.overview(kind="person")
    assert [entity.name for entity in people.entities] == ["Alice Weber", "Zoe Brandt"]
    assert people.relationships == ()
    assert await case.graph.search("", kind="Person") == []
    assert await case.graph.search("", kind="nothing\0\ud800") == []


async def test_types_are_counted_the_most_frequent_first(case: Case) -> None:
    assert list((await case.graph.kinds()).items()) == [
        ("organization", 3),
        ("person", 2),
        ("artifact", 1),
        ("concept", 1),
    ]


async def test_an_overview_has_the_best_connected_entities_and_the_edges_among_them(case: Case) -> None:
    whole = await case.graph.overview()
    assert {entity.name for entity in whole.entities} == set(TYPES)
    assert {(edge.source, edge.target) for edge in whole.relationships} == {NAMED[text] for text in VERBS}
    assert not whole.capped
    some = await case.graph.overview(limit=2)
    assert [entity.name for entity in some.entities] == ["City Library", "Harbour Museum"]
    assert [(edge.source, edge.type, edge.target) for edge in some.relationships] == [
        ("Harbour Museum", "lends", "City Library")
    ]
    assert some.capped


async def test_expanding_by_one_type_leaves_out_the_others_and_what_is_behind_them(case: Case) -> None:
    near = await case.graph.expand(["Alice Weber"], kind="organization")
    assert [entity.name for entity in near.entities] == ["Alice Weber", "Harbour Museum", "City Library"]
    alone = await case.graph.expand(["Alice Weber"], kind="person")
    assert [entity.name for entity in alone.entities] == ["Alice Weber"]
    assert not alone.capped


async def test_the_passages_that_name_an_entity_come_earliest_first(case: Case) -> None:
    found = await case.graph.naming("harbour museum")
    assert found == ([case.passages[text] for text in (STAFF, DIARY, LOAN)], 3)
    assert await case.graph.naming("Harbour Museum", limit=1) == ([case.passages[STAFF]], 3)
    assert await case.graph.naming("Nobody") is None


async def test_the_passages_that_relate_two_entities_are_found_from_either_end(case: Case) -> None:
    wanted = ([case.passages[STAFF], case.passages[DIARY]], 2)
    assert await case.graph.naming("Alice Weber", "Harbour Museum") == wanted
    assert await case.graph.naming("Harbour Museum", "Alice Weber") == wanted
    assert await case.graph.naming("Alice Weber", "City Library") == ([], 0)
    assert await case.graph.naming("Alice Weber", "Nobody") is None


async def test_an_unknown_workspace_has_an_empty_graph_and_asking_leaves_no_trace(
    tmp_path: Path, backend: Backend
) -> None:
    home = tmp_path / "home"
    container = Container(load_settings({"RAG_HOME": str(home)}), backend=backend)
    graph = (await container.workspaces.open("nobody")).graph
    assert await graph.entity("Harbour Museum") is None
    assert await graph.of_passages(["p"]) == []
    assert await graph.within(["p"]) == ({}, Neighbourhood())
    assert await graph.expand(["Harbour Museum"]) == Neighbourhood()
    assert await graph.search("") == []
    assert await graph.overview() == Neighbourhood()
    assert await graph.kinds() == {}
    assert await graph.naming("Harbour Museum") is None
    assert not home.exists()
    await container.close()


async def test_an_open_graph_sees_later_documents(tmp_path: Path, backend: Backend) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), language_model=Extractor(), backend=backend)
    graph = (await container.workspaces.open("default")).graph
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([SourceText("staff.md", STAFF)])
    assert await graph.entity("Alice Weber") is not None
    workspace = await container.workspaces.open("default")
    assert await delete(workspace.documents, workspace.work, (await workspace.documents.named("staff.md"))[0].id)
    assert await graph.entity("Alice Weber") is None
    assert (await graph.overview()).entities == ()
    assert await graph.naming("Alice Weber") is None
    await container.close()


async def test_concurrent_reads_of_the_whole_graph_succeed(case: Case) -> None:
    views = await asyncio.gather(*(case.graph.entity(name) for name in TYPES))
    assert all(view is not None for view in views)
