"""cragside over servers of which one has faults, and what has to hold meanwhile and afterwards."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.faults.faults import HOW, Way
from tests.faults.matrix import CELLS, DOCUMENT, EVIDENCE, WEB, Cell, passing
from tests.services.cragside_server import CragsideServer, Given
from tests.services.stub_ollama import StubOllama
from tests.services.stub_searxng import StubSearxng
from tests.services.threads import in_a_thread

SWAN = {"swan.md": f"Joseph Swan lit the first house by electric light. {DOCUMENT} met Joseph Swan."}
PAGE = {
    "title": "Joseph Swan",
    "url": "https://swan.example/",
    "content": f"In 1880 Joseph Swan lit the first house by electric light, say the {WEB}.",
}
WHO = "Who lit the first house by electric light?"
BUDGET = 5.0
_FEW = 4
# For the request's way and what a machine with other work to do needs.
_SLACK = 5.0
# Longer than a lease.
# A task may wait 75 s for its retry and 60 s for its turn to try, before its work.
_HEALED_SECONDS = 200.0
_REFUSED = {503: "service_unavailable", 504: "timeout_error"}


@dataclass
class Stack:
    """A running cragside, the way to the component, and a question whose evidence has `says` while all is well.

    `says` is "" where that evidence is a matter of luck.
    """

    component: str
    service: CragsideServer
    way: Way
    question: str
    says: str
    # Whether an answer has what the component alone brings, where the evidence does not tell.
    brought: Callable[[httpx.Client], bool] | None = None
    budget: float = BUDGET
    # What may be in `degraded` besides.
    besides: frozenset[str] = frozenset()
    # How a reason may begin once the fault is known.
    later: tuple[str, ...] = ()
    # Whether documents are enriched.
    enrich: bool = True
    # Whether chats pass through to another server than the component.
    passes: bool = True
    # A question that does not need it, if there is one.
    spared: str = ""
    _sent: int = 0
    _accepted: set[str] = field(default_factory=set)

    def withstands(self, fault: str) -> None:
        """Requests and documents are treated as the matrix says while there is the fault, and all heals by itself."""
        cell = CELLS[self.component][fault]
        with self.service.client() as http:
            self._finishes(http)
            assert self._sent_anew(http).status_code == 202
        with HOW[fault](self.way), self.service.client() as http:
            if cell.sometimes:
                self._asks_until_it_fails(http, cell)
            else:
                self._asks(http, cell)
            if fault == "down" and self.brought is not None:
                assert not self.brought(http), "the component is not needed for it"
            self._serves_others(http)
            accepted = self._offers(http, cell)
        with self.service.client() as http:
            self.heals(http)
            if not accepted:
                assert self._sent_again(http).status_code == 202
            self._finishes(http)

    def heals(self, http: httpx.Client) -> None:
        """The question gets its evidence, and nothing is missing."""

        def whole() -> bool:
            found = _enriched(http, self.question)
            brought = self.brought is None or self.brought(http)
            return brought and not _degraded(found).keys() - self.besides and self.says in found["prompt"]

        _wait(whole, "it does not heal")

    def _asks_until_it_fails(self, http: httpx.Client, cell: Cell) -> None:
        """A few times at least, until a request has met the fault, or connections were refused meanwhile."""
        before, met = self.way.proxy.refusals, list[bool]()

        def enough() -> bool:
            met.append(self._asks(http, cell))
            return len(met) >= _FEW and (any(met) or self.way.proxy.refusals > before)

        _wait(enough, "the fault is not there")

    def _asks(self, http: httpx.Client, cell: Cell) -> bool:
        """Return True if the request met the fault."""
        began = time.monotonic()
        found = _enriched(http, self.question)
        assert time.monotonic() - began < self.budget + _SLACK
        degraded = {name: reason for name, reason in _degraded(found).items() if name not in self.besides}
        if cell.sometimes and not degraded:
            assert self.says in found["prompt"], found
            return False
        instead = EVIDENCE[cell.evidence]
        assert instead in found["prompt"], found
        assert self.says in ("", instead) or self.says not in found["prompt"], found
        assert degraded.keys() == cell.degraded.keys(), degraded
        for component, reason in degraded.items():
            begins = passing(self.component, component) if cell.sometimes else (cell.degraded[component],)
            assert reason.startswith((*begins, *self.later)), degraded
        return bool(degraded)

    def _serves_others(self, http: httpx.Client) -> None:
        """Check that requests which do not need the component work as always."""
        if self.spared:
            assert _degraded(_enriched(http, self.spared)) == {}
        plain = {"prompt": "Say hello.", "model": "judge"}
        assert http.post("/v1/enrich", json=plain).json() == plain
        if not self.passes:
            return
        chat = {"model": "judge", "messages": [{"role": "user", "content": "Say hello."}], "stream": False}
        assert http.post("/api/chat", json=chat).json()["message"]["content"] == "Hello!"

    def _offers(self, http: httpx.Client, cell: Cell) -> bool:
        """Return True if a new document was accepted."""
        answer = self._sent_anew(http)
        if cell.document == "accepted" or (cell.sometimes and answer.status_code == 202):
            assert answer.status_code == 202, answer.text
            return True
        error = answer.json()["error"]
        assert error["type"] == _REFUSED[answer.status_code], answer.text
        assert error["message"]
        if cell.document == "stored":
            assert error["details"]["component"] == "queue"
            assert "The document itself is stored" in error["message"]
            assert "searchable" in self._statuses(http)
        return False

    def _finishes(self, http: httpx.Client) -> None:
        done = {"enriched" if self.enrich else "searchable"}
        _wait(lambda: self._statuses(http) <= done, "a document is not indexed")

    def _sent_anew(self, http: httpx.Client) -> httpx.Response:
        self._sent += 1
        return self._sent_again(http)

    def _sent_again(self, http: httpx.Client) -> httpx.Response:
        text = f"Otter number {self._sent} holds hands while it sleeps in its bed of kelp."
        return self.send(http, f"otter-{self._sent}.md", text)

    def send(self, http: httpx.Client, name: str, text: str) -> httpx.Response:
        """Add a document."""
        answer = http.post("/v1/documents", json={"name": name, "text": text, "enrich": self.enrich})
        if answer.status_code == 202:
            self._accepted.add(name)
        return answer

    def _statuses(self, http: httpx.Client) -> set[str]:
        """The statuses of all documents. Each one that was accepted is there."""
        listed = http.get("/v1/documents", params={"limit": 100}).json()["documents"]
        assert self._accepted <= {each["name"] for each in listed}, "an accepted document is lost"
        return {each["status"] for each in listed}


@contextmanager
def serving(
    documents: Mapping[str, str], kind: type[CragsideServer] = CragsideServer, **environment: str
) -> Iterator[CragsideServer]:
    """cragside with these settings, in front of an Ollama that says hello, and with a page in the web about Swan."""
    with (
        in_a_thread(StubOllama(lambda _: "Hello!")) as ollama,
        in_a_thread(StubSearxng(PAGE)) as web,
        ExitStack() as started,
    ):
        settings = {"RAG_TIMEOUT_SECONDS": str(BUDGET), "SEARXNG_HOST": web.url, **environment}
        given = Given(documents=documents, environment=settings)
        yield started.enter_context(kind(given, ollama=ollama.url))


def _enriched(http: httpx.Client, question: str) -> dict[str, Any]:
    answer = http.post("/v1/enrich", json={"prompt": f"/rag {question}"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _degraded(enriched: dict[str, Any]) -> dict[str, str]:
    return {each["component"]: each["reason"] for each in enriched["metadata"]["rag_context"]["degraded"]}


def _wait(until: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _HEALED_SECONDS
    while not until():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)
