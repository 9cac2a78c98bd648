"""The address of a Neo4j database: what it may say, and how a wrong one is told."""

import pytest

from cragside.databases.neo4j import Neo4jDatabase, Neo4jFailure
from cragside.databases.server_addresses import BadAddress, Neo4jAddress


def test_messages_have_neither_user_nor_password() -> None:
    address = Neo4jAddress.parse("neo4j+s://me:hu%40sh@graphs.example.org:7687", database="rag")
    assert (address.user, address.password, address.database) == ("me", "hu@sh", "rag")
    assert str(address) == "neo4j+s://graphs.example.org:7687"
    assert "hu@sh" not in repr(address)


def test_an_address_may_have_a_policy_which_messages_leave_out() -> None:
    address = Neo4jAddress.parse("neo4j://me:secret@graphs:7687?policy=eu")
    assert (address.uri, str(address)) == ("neo4j://graphs:7687?policy=eu", "neo4j://graphs:7687")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://me:hush@graphs:7474", "begin it with neo4j://"),
        ("neo4j://me:hush@graphs:port", "the port has to be a number"),
        ("neo4j://me:hush@:7687", "name the host"),
        ("neo4j://me:hush@graphs/rag", "name the database in NEO4J_DATABASE"),
        ("neo4j://me:hush℀@graphs", "letters beyond ASCII"),
        ("neo4j://me:1?hush@graphs", "write @ as %40"),
        ("neo4j://me:1#hush@graphs", "write @ as %40"),
        ("neo4j://me:1/hush@graphs", "write @ as %40"),
        ("bolt://me:hush@graphs?policy=eu", "begins with bolt has no options"),
        ("neo4j://me:secret@graphs?password=hush", "the only option that it can have is policy"),
        ("neo4j://me:secret@graphs?policy=eu&policy=hush", "the only option that it can have is policy"),
        ("neo4j://me:secret@graphs?hush", "the only option that it can have is policy"),
        ("neo4j://me:hush@gra phs", "a blank or a backslash"),
        (f"bolt://me:hush@{'x' * 300}", "a part that is empty, too long"),
        (f"bolt://me:hush@{'x.' * 150}", "more than 253 characters"),
        ("bolt://me:hush@a..b", "a part that is empty"),
        ("neo4j://graphs", "set NEO4J_USERNAME and NEO4J_PASSWORD"),
    ],
)
def test_a_wrong_address_is_told_without_its_password(uri: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said) as error:
        Neo4jAddress.parse(uri)
    assert "hush" not in str(error.value)


async def test_an_address_that_the_driver_refuses_is_no_outage() -> None:
    database = Neo4jDatabase(Neo4jAddress("bolt://127.0.0.1:1?other=1", "me", "hush"), most=1)
    with pytest.raises(Neo4jFailure, match="driver refuses the address") as error:
        await database.rows("RETURN 1")
    assert "NEO4J_URI" in error.value.unusable
    await database.close()
