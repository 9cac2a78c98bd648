"""A wrong address of a database is told before anything else."""

from pathlib import Path

import pytest
from cli_services import refused
from typer.testing import CliRunner

from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session, place_of
from cragside.settings import load_settings
from tests.programs import output_of

POSTGRES = "postgresql://u:secret@127.0.0.1:1/d"
WRONG = [
    ("POSTGRES_URI", "mysql://u:secret@127.0.0.1/d", "begin it with postgresql://"),
    ("NEO4J_URI", "http://127.0.0.1:7474", "begin it with neo4j://"),
    ("REDIS_URI", "redis://:secret@127.0.0.1:6379/first", "the database behind the host has to be a number"),
    ("QDRANT_URL", "127.0.0.1:6333", "begin it with http:// or https://"),
]


def environment(home: Path, variable: str, address: str) -> dict[str, str]:
    return {"RAG_HOME": str(home), "POSTGRES_URI": POSTGRES, variable: address}


@pytest.mark.parametrize(("variable", "address", "said"), WRONG)
@pytest.mark.parametrize("command", ["migrate", "serve", "worker", "status"])
def test_each_command_ends_with_the_one_error(
    command: str, variable: str, address: str, said: str, tmp_path: Path
) -> None:
    session = Session(environment=environment(tmp_path, variable, address), folder=tmp_path)
    ran = refused(CliRunner().invoke(app, [command], obj=session))
    assert ran.startswith(f"error: {variable}: {said}")
    assert (len(ran.splitlines()), "secret" in ran) == (1, False)


@pytest.mark.parametrize(("variable", "address", "said"), WRONG)
def test_no_application_is_made_with_a_wrong_address(variable: str, address: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{variable}: {said}"):
        Container(load_settings(environment(tmp_path, variable, address)))


def test_reading_addresses_imports_no_driver_and_nothing_heavy() -> None:
    heavy = ("asyncpg", "neo4j", "qdrant_client", "redis", "lightrag", "numpy", "fastapi")
    script = (
        "import sys\nfrom cragside.composition.databases import check_addresses\n"
        "from cragside.settings import load_settings\n"
        f"check_addresses(load_settings({{'POSTGRES_URI': {POSTGRES!r}, 'NEO4J_URI': 'neo4j://u:p@h', "
        "'REDIS_URI': 'redis://h', 'QDRANT_URL': 'http://h:6333'}))\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    assert output_of(script) == "[]\n"


def test_two_sockets_are_two_places_and_their_user_is_not_told() -> None:
    places = {
        place_of(load_settings({"POSTGRES_URI": f"postgresql://ada:secret@/crag?host=/run/{server}"}))
        for server in ("pg16", "pg17")
    }
    assert places == {"postgresql:///crag?host=/run/pg16", "postgresql:///crag?host=/run/pg17"}
