"""The answer names the components that a search had to do without."""

import asyncio

from cragside.domain.outcome import Degradation, leave_out, left_out


async def test_what_a_task_leaves_out_is_told_once() -> None:
    async def search() -> None:
        leave_out("graph", "Neo4j does not answer.")

    with left_out() as missing:
        await asyncio.gather(search(), search())
    assert missing == [Degradation("graph", "Neo4j does not answer.")]


async def test_searches_side_by_side_do_not_hear_of_each_other() -> None:
    async def search(component: str) -> list[str]:
        with left_out() as missing:
            await asyncio.sleep(0)
            leave_out(component, "It is away.")
            await asyncio.sleep(0)
            return [each.component for each in missing]

    assert await asyncio.gather(search("graph"), search("vectors")) == [["graph"], ["vectors"]]


def test_nothing_is_kept_where_nobody_wants_to_know() -> None:
    leave_out("graph", "It is away.")
    with left_out() as missing:
        pass
    assert missing == []
