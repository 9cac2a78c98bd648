"""LightRAG's storages of a store in PostgreSQL, while several have it open."""

from typing import Any

import pytest

from cragside.store.driver import GraphChange
from cragside.store.errors import LedgerError
from cragside.store.postgres.store import OpenStorages


class Values:
    def __init__(self) -> None:
        self.written: dict[str, dict[str, Any] | None] = {}

    async def write(self, changes: dict[str, dict[str, Any] | None]) -> None:
        self.written |= changes


async def test_what_was_opened_first_is_written_to_until_it_is_closed() -> None:
    storages, first, second = OpenStorages(), Values(), Values()
    for each in (first, second):
        storages.values.add("text_chunks", each)
    await storages.write_texts({"a": {"content": "x"}})
    storages.values.remove("text_chunks", first)
    await storages.write_texts({"b": None})
    assert (first.written, second.written) == ({"a": {"content": "x"}}, {"b": None})


async def test_nothing_is_left_out_in_silence_when_a_storage_is_closed() -> None:
    storages, values = OpenStorages(), Values()
    storages.values.add("text_chunks", values)
    storages.values.remove("text_chunks", values)
    for change in (
        storages.write_texts({"a": None}),
        storages.erase_texts(["a"]),
        storages.write_graph(GraphChange(nodes={"Swan": {}})),
        storages.make_vector_tables(16),
    ):
        with pytest.raises(LedgerError, match="was closed meanwhile"):
            await change
    await storages.write_graph(GraphChange())
