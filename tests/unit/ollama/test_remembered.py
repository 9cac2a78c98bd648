import asyncio

import pytest

from cragside.databases.renewable import RememberedAnswer
from cragside.domain.errors import ServiceUnavailable
from tests.clocks import MovedClock


class Source:
    def __init__(self):
        self.clock = MovedClock()
        self.asked = 0
        self.failure = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.remembered = RememberedAnswer(self.fetch, fine=30, silent=5, clock=self.clock)

    async def fetch(self):
        self.asked += 1
        await self.gate.wait()
        if self.failure:
            raise self.failure
        return self.asked


@pytest.fixture
async def source():
    return Source()


async def test_an_answer_is_good_for_thirty_seconds(source):
    assert [await source.remembered.get(), await source.remembered.get()] == [1, 1]
    source.clock.move(30)
    assert await source.remembered.get() == 2


async def test_silence_is_believed_for_five_seconds(source):
    source.failure = ServiceUnavailable("ollama", "silent")
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="silent"):
            await source.remembered.get()
    assert source.asked == 1
    source.failure = None
    source.clock.move(5)
    assert await source.remembered.get() == 2


async def test_an_answer_that_cannot_be_read_is_a_failure_of_the_host(source):
    source.failure = AttributeError("'list' object has no attribute 'items'")
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="answered nonsense") as caught:
            await source.remembered.get()
    assert (source.asked, caught.value.component) == (1, "ollama")


async def test_concurrent_callers_share_one_call(source):
    source.gate.clear()
    waiting = [asyncio.create_task(source.remembered.get()) for _ in range(10)]
    await asyncio.sleep(0)
    source.gate.set()
    assert await asyncio.gather(*waiting) == [1] * 10


async def test_a_cancelled_caller_does_not_cancel_the_others(source):
    source.gate.clear()
    first, second = (asyncio.create_task(source.remembered.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    source.gate.set()
    assert await second == 1


async def test_a_failure_reported_by_others_counts(source):
    await source.remembered.get()
    source.remembered.failed(ServiceUnavailable("ollama", "died"))
    with pytest.raises(ServiceUnavailable, match="died"):
        await source.remembered.get()


async def test_a_forgotten_answer_is_requested_again(source):
    await source.remembered.get()
    source.remembered.forget()
    assert await source.remembered.get() == 2


async def test_every_caller_gets_an_exception_of_its_own(source):
    source.failure = ServiceUnavailable("ollama", "silent")
    outcomes = await asyncio.gather(*(source.remembered.get() for _ in range(2)), return_exceptions=True)
    assert outcomes[0] is not outcomes[1]
