"""The queue in PostgreSQL fails in each way, while the store does not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from typing_extensions import override

from tests.faults import queue_apart
from tests.faults.faults import Way
from tests.faults.matrix import DOCUMENT, FAULTS
from tests.faults.stack import SWAN, WHO, Stack, serving
from tests.faults.wrong_server import POSTGRES
from tests.services.backends import migrated
from tests.services.cragside_server import CragsideServer

if TYPE_CHECKING:
    from tests.services.postgres import Postgres
    from tests.services.toxiproxy import Toxiproxy


class QueueApart(CragsideServer):
    """A service whose queue can fail alone."""

    @override
    def command(self) -> list[str]:
        return [*queue_apart.PROGRAM, *super().command()[3:]]


@pytest.fixture(scope="module")
def stack(postgres: "Postgres", toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    port = urlsplit(postgres.uri).port or 0
    with migrated(postgres) as uri, toxiproxy.proxy(port) as proxy:
        through = {queue_apart.VARIABLE: uri.replace(f":{port}/", f":{proxy.port}/")}
        with serving(SWAN, QueueApart, POSTGRES_URI=uri, **through) as service:
            way = Way(proxy, POSTGRES, too_long=2 * queue_apart.PATIENCE_SECONDS, few_bytes=5)
            yield Stack("The queue", service, way, WHO, DOCUMENT)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_queue(stack: Stack, fault: str) -> None:
    stack.withstands(fault)
