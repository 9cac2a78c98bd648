"""The console in a real browser, in front of a real service.

`page` is a page in a fresh browser context. The test fails if a script fails in it, if it logs an error, if it violates
its Content-Security-Policy, or if it asks another machine for anything. `watch.allow` says what a test expects. `look`
says how it looks: `LIGHT`, `DARK`, `NARROW`, `GERMAN`, or another `Look`. `service` is a `CragsideServer` that starts
with what `given` says; `shared_service` is the same for tests that only read, and starts once for each file. A test
changes both: `@pytest.mark.parametrize("look", [LIGHT, DARK], ids=str)`, `parametrize("given", [Given(token="a")])`.

Playwright's synchronous interface keeps asyncio from running in its thread. So the browser is one for each file, and
the tests of a file that uses it are all synchronous.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.console.looks import LIGHT, Look
from tests.console.watch import Watch
from tests.services.axe import Violation, violations
from tests.services.cragside_server import NOBODY, CragsideServer, ForkedServer, Given
from tests.services.stub_ollama import StubOllama
from tests.services.threads import in_a_thread

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Axe: TypeAlias = "Callable[[Page], list[Violation]]"


@pytest.fixture(scope="module")
def browser(chromium: str) -> "Iterator[Browser]":
    from tests.services.chromium import launched

    with launched(chromium) as opened:
        yield opened


@pytest.fixture
def look() -> Look:
    return LIGHT


@pytest.fixture
def context(browser: "Browser", look: Look) -> "Iterator[BrowserContext]":
    with look.context(browser) as opened:
        yield opened


@pytest.fixture
def watch(context: "BrowserContext") -> Iterator[Watch]:
    """Collect the faults of the page so far; a test names the expected ones."""
    watching = Watch(context)
    yield watching
    if watching.wrong:
        pytest.fail("\n".join(["The page has errors:", *watching.wrong]), pytrace=False)


@pytest.fixture
def page(context: "BrowserContext", watch: Watch) -> "Page":
    return context.new_page()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Close the page before its service stops: what it still asks for would fail."""
    page = getattr(item, "funcargs", {}).get("page")
    if page is not None and not page.is_closed():
        page.wait_for_timeout(0)  # lets the last events arrive
        page.close()


@pytest.fixture
def axe(axe_core: str) -> Axe:
    """A function that finds barriers in a page: `assert axe(page) == []`."""
    return lambda page: violations(page, axe_core)


@pytest.fixture
def given() -> Given:
    return Given()


@pytest.fixture
def stub() -> Iterator[StubOllama]:
    """The scripted Ollama of a service with `Given(ollama="stub")`."""
    with in_a_thread(StubOllama(_answer)) as running:
        yield running


@pytest.fixture
def service(given: Given, request: pytest.FixtureRequest) -> Iterator[CragsideServer]:
    """A service for one test."""
    stub = request.getfixturevalue("stub").url if given.ollama == "stub" else ""
    with ForkedServer(given, ollama=_ollama(given, stub, request)) as running:
        yield running


@pytest.fixture
def start_service() -> Iterator[Callable[[Given], CragsideServer]]:
    """A function that starts a service of which only the test knows what it is given."""
    with ExitStack() as stack:
        yield lambda given: stack.enter_context(ForkedServer(given, ollama=NOBODY))


@pytest.fixture(scope="module")
def services(request: pytest.FixtureRequest) -> Iterator[Callable[[Given], CragsideServer]]:
    running: dict[str, CragsideServer] = {}
    with ExitStack() as stack:

        def start(given: Given) -> CragsideServer:
            if repr(given) not in running:
                stub = stack.enter_context(in_a_thread(StubOllama(_answer))).url if given.ollama == "stub" else ""
                server = ForkedServer(given, ollama=_ollama(given, stub, request))
                running[repr(given)] = stack.enter_context(server)
            return running[repr(given)]

        yield start


@pytest.fixture
def shared_service(given: Given, services: Callable[[Given], CragsideServer]) -> CragsideServer:
    """A service for all tests of the file that ask for one of the same kind. They change nothing in it."""
    return services(given)


def _answer(_: object) -> str:
    return "The lamps were lit in 1880 [1]."


def _ollama(given: Given, stub: str, request: pytest.FixtureRequest) -> str:
    return {"none": NOBODY, "stub": stub}.get(given.ollama) or str(request.getfixturevalue("ollama"))
