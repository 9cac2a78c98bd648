"""Drafts of the graph write no more than a merge adds, and LightRAG's own steps give the same in less time."""

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightrag import operate, utils

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.ports.embedder import Embedder
from cragside.store.drafts import DraftAnswers
from cragside.store.lightrag import GRAPH_FIELD_SEP, merged_ids, normalized_field, split_by
from tests.embedded_workspaces import embedded_workspaces, store_of
from tests.fakes import WordGrader
from tests.indexing import LONG, take, text

MARKERS = ("\n", "<|#|>", "<|COMPLETE|>", GRAPH_FIELD_SEP)
PIECES = st.sampled_from([*MARKERS, " ", "a", "B.", "ä", "<|", "|>", "\t"])


async def embedded(_: str | None) -> Embedder:
    return WordLlamaEmbedder()


class Written:
    """A storage of answers that notes what each call writes, and waits until it may."""

    namespace = "llm_response_cache"

    def __init__(self) -> None:
        self.global_config: dict[str, object] = {}
        self.calls: list[list[str]] = []
        self.free = asyncio.Event()

    async def upsert(self, data: dict[str, object]) -> None:
        self.calls.append(sorted(data))
        await self.free.wait()
        if "bad" in data:
            raise OSError("The disk is full.")


async def test_answers_that_come_together_are_written_together_and_later_ones_after_them() -> None:
    written = Written()
    answers = DraftAnswers(written)  # type: ignore[arg-type]
    first = [asyncio.create_task(answers.upsert({key: {}})) for key in "ab"]
    while not written.calls:
        await asyncio.sleep(0)
    later = asyncio.create_task(answers.upsert({"c": {}}))
    while len(written.calls) < 2:
        await asyncio.sleep(0)
    assert not any(task.done() for task in [*first, later])
    written.free.set()
    await asyncio.gather(*first, later)
    assert written.calls == [["a", "b"], ["c"]]


async def test_each_answer_of_a_writing_that_fails_is_told() -> None:
    written = Written()
    written.free.set()
    answers = DraftAnswers(written)  # type: ignore[arg-type]
    failures = await asyncio.gather(*(answers.upsert({key: {}}) for key in ("good", "bad")), return_exceptions=True)
    assert [type(failure) for failure in failures] == [OSError, OSError]


async def test_a_merge_adds_the_mentions_of_its_own_passages_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = embedded_workspaces(tmp_path, open_embedder=embedded, ranker=WordGrader())
    workspace = await workspaces.open("w")
    await take(workspace.documents, workspace.work, text("a.md", LONG))
    store = await store_of(workspaces, "w")
    known = {row[0] for row in await store.ledger.driver.all("SELECT passage FROM crag.mention WHERE store = $1")}
    added: list[tuple[str, ...]] = []
    many = store.ledger.driver.many

    async def noted(sql: str, rows: list[tuple[str, ...]]) -> None:
        if "mention" in sql:
            added.extend(rows)
        await many(sql, rows)

    monkeypatch.setattr(store.ledger.driver, "many", noted)
    await take(workspace.documents, workspace.work, text("b.md", LONG))
    assert added
    assert not {row[-1] for row in added} & known
    await workspaces.close()


@given(st.lists(PIECES).map("".join), st.lists(st.sampled_from(MARKERS), max_size=3))
def test_a_text_is_split_where_lightrag_splits_it(content: str, markers: list[str]) -> None:
    parts = re.split("|".join(re.escape(marker) for marker in markers), content) if markers else None
    expected = [content] if parts is None else [part.strip() for part in parts if part.strip()]
    assert split_by(content, markers) == expected


IDS = st.lists(st.sampled_from(["a", "b", " c", "", f"d{GRAPH_FIELD_SEP}a", "e"]), max_size=6)


@given(st.none() | IDS, st.none() | IDS)
def test_ids_are_put_together_as_lightrag_does(known: list[str] | None, new: list[str] | None) -> None:
    parts = [part.strip() for each in (*(known or ()), *(new or ())) for part in each.split(GRAPH_FIELD_SEP)]
    assert merged_ids(known, new) == list(dict.fromkeys(filter(None, parts)))


def test_lightrag_calls_what_takes_its_place() -> None:
    for module in (utils, operate):
        assert module.merge_source_ids is merged_ids
        assert module.split_string_by_multi_markers is split_by
        assert module.sanitize_and_normalize_extracted_text is normalized_field
    assert normalized_field(" “Sea otter” ", remove_inner_quotes=True) == "Sea otter"
    assert operate.normalize_entity_name("  &amp; Co ") == "& Co"
