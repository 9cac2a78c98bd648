"""The database of the whole store fails in each way."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.faults.faults import Way
from tests.faults.matrix import DOCUMENT, FAULTS
from tests.faults.stack import BUDGET, SWAN, WHO, Stack, serving
from tests.faults.wrong_server import POSTGRES
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.postgres import Postgres
    from tests.services.toxiproxy import Toxiproxy


@pytest.fixture(scope="module")
def stack(postgres: "Postgres", toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    port = urlsplit(postgres.uri).port or 0
    with (
        migrated(postgres) as uri,
        toxiproxy.proxy(port) as proxy,
        serving(SWAN, POSTGRES_URI=uri.replace(f":{port}/", f":{proxy.port}/")) as service,
    ):
        way = Way(proxy, POSTGRES, too_long=2 * BUDGET)
        # They are at hand for two seconds.
        besides = frozenset({"settings"})
        yield Stack("PostgreSQL", service, way, WHO, DOCUMENT, besides=besides)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_postgres(stack: Stack, fault: str) -> None:
    stack.withstands(fault)
