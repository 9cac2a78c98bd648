"""The seven faults: each is a name and a context in which a way to a server has it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.faults.wrong_server import Answer, Protocol, wrong_server
from tests.services.toxiproxy import Proxy

_FLAP_SECONDS = 0.2


@dataclass(frozen=True)
class Way:
    """The way to a server. Answers that take `too_long` seconds come too late, and `few_bytes` are no whole one."""

    proxy: Proxy
    protocol: Protocol
    too_long: float
    few_bytes: int = 60


Fault = Callable[[Way], AbstractContextManager[None]]


def _fault(begin: Callable[[Way], None]) -> Fault:
    @contextmanager
    def fault(way: Way) -> Iterator[None]:
        try:
            begin(way)
            yield
        finally:
            way.proxy.heal()

    return fault


def _wrong(answer: Callable[[Protocol], Answer]) -> Fault:
    @contextmanager
    def fault(way: Way) -> Iterator[None]:
        with wrong_server(answer(way.protocol)) as port:
            try:
                way.proxy.lead_to(port)
                yield
            finally:
                way.proxy.heal()

    return fault


@contextmanager
def _flapping(way: Way) -> Iterator[None]:
    """Refused and let in, again and again; first refused."""
    enough = threading.Event()

    def flap() -> None:
        accepts = False
        while not enough.wait(_FLAP_SECONDS):
            accepts = not accepts
            way.proxy.accept(accepts)

    way.proxy.accept(False)
    with ThreadPoolExecutor(1) as pool:
        flapping = pool.submit(flap)
        try:
            yield
        finally:
            enough.set()
            wait([flapping])
            way.proxy.heal()
        flapping.result()  # raises what ended it


HOW: Mapping[str, Fault] = {
    "down": _fault(lambda way: way.proxy.accept(False)),
    # What is asked gets lost: a server that lost patience with its client would end the connection.
    "silent": _fault(lambda way: way.proxy.harm("timeout", "upstream", timeout=0)),
    "slow": _fault(lambda way: way.proxy.harm("latency", latency=int(way.too_long * 1000))),
    "error": _wrong(lambda protocol: protocol.refuse),
    "garbage": _wrong(lambda protocol: protocol.babble),
    "cut": _fault(lambda way: way.proxy.harm("limit_data", bytes=way.few_bytes)),
    "flapping": _flapping,
}
