"""The gate to a server that may be out of reach, with a server and a clock of its own."""

import asyncio

import pytest

from cragside.databases import gate
from cragside.databases.gate import Gate, ServerFailure
from tests.clocks import MovedClock


class Server:
    """Answers until it is told to hang. Its clock goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int = 3) -> None:
        monkeypatch.setattr(gate, "SILENCE_SECONDS", 0.01)
        monkeypatch.setattr(gate, "SIGN_SECONDS", 0.01)
        self.clock = MovedClock()
        self.signs = 0
        self.going_on, self.living = asyncio.Event(), asyncio.Event()
        self.going_on.set()
        self.living.set()
        self.gate = Gate("Neptune", ServerFailure, self.sign, most=most, clock=self.clock)

    async def sign(self) -> None:
        self.signs += 1
        await self.living.wait()

    async def asked_for_signs(self, times: int) -> None:
        while self.signs < times:
            await asyncio.sleep(0.001)
            self.clock.move(gate.SILENCE_SECONDS)

    async def ask(self) -> str:
        async with self.gate.passed():
            await self.going_on.wait()
            return "an answer"

    async def fail(self, error: Exception) -> None:
        async with self.gate.passed():
            raise error

    async def assert_shut(self) -> None:
        with pytest.raises(ServerFailure, match="Neptune does not answer"):
            await self.ask()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


async def test_all_who_wait_for_a_silent_server_are_told_after_one_sign_was_asked_for(server: Server) -> None:
    server.going_on.clear()
    server.living.clear()
    for failed in await asyncio.gather(*(server.ask() for _ in range(3)), return_exceptions=True):
        assert isinstance(failed, ServerFailure)
        assert failed.unusable == "is out of reach: Neptune does not answer"
    assert server.signs == 1


async def test_one_caller_tries_a_server_that_was_silent_and_lets_the_others_in(server: Server) -> None:
    server.gate.close_for_a_while(server.gate.silence())
    await server.assert_shut()
    server.clock.move(gate.PAUSE_SECONDS)
    server.going_on.clear()
    trying = asyncio.create_task(server.ask())
    await asyncio.sleep(0)
    await server.assert_shut()
    server.going_on.set()
    assert await trying == "an answer"
    assert await server.ask() == "an answer"


async def test_the_gate_stays_shut_while_the_one_who_tries_has_no_answer(server: Server) -> None:
    server.gate.close_for_a_while(server.gate.silence())
    server.clock.move(gate.PAUSE_SECONDS)
    with pytest.raises(OSError, match="nobody"):
        await server.fail(OSError("nobody is there"))
    await server.assert_shut()


async def test_an_answer_that_is_an_error_opens_the_gate(server: Server) -> None:
    server.gate.close_for_a_while(server.gate.silence())
    server.clock.move(gate.PAUSE_SECONDS)
    with pytest.raises(LookupError):
        await server.fail(LookupError("there is no such thing"))
    server.gate.answered()
    assert await server.ask() == "an answer"


async def test_a_sign_of_life_opens_the_gate(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "SIGN_SECONDS", 60.0)
    server.going_on.clear()
    server.living.clear()
    waiting = asyncio.create_task(server.ask())
    await server.asked_for_signs(1)
    server.gate.close_for_a_while(server.gate.silence())
    await server.assert_shut()
    server.living.set()
    await server.asked_for_signs(2)
    server.going_on.set()
    assert await server.ask() == "an answer"
    assert await waiting == "an answer"
    await server.gate.stop()


async def test_whoever_gives_up_says_nothing_of_the_server(server: Server) -> None:
    server.going_on.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await server.ask()
    server.going_on.set()
    assert await server.ask() == "an answer"


async def test_callers_beyond_the_connections_are_told_when_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "WAIT_SECONDS", 0.0)
    server = Server(monkeypatch, most=1)
    async with server.gate.passed():
        with pytest.raises(ServerFailure, match="all 1 connections to Neptune are in use"):
            await server.ask()


def test_a_second_event_loop_finds_all_places_free(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(server: Server) -> str:
        server.going_on = asyncio.Event()
        server.going_on.set()
        return await server.ask()

    server = Server(monkeypatch, most=1)
    assert [asyncio.run(ask(server)) for _ in range(2)] == ["an answer"] * 2
