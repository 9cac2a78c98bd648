"""The address of a Neo4j database: what it may say, and how a wrong one is told."""

import pytest

from cragside.adapters.bad_address import BadAddress
from cragside.adapters.neo4j.address import Neo4jAddress


def test_messages_have_neither_user_nor_password() -> None:
    address = Neo4jAddress.parse("neo4j+s://me:hu%40sh@graphs.example.org:7687", database="rag")
    assert (address.user, address.password, address.database) == ("me", "hu@sh", "rag")
    assert str(address) == "neo4j+s://graphs.example.org:7687"
    assert "hu@sh" not in repr(address)


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
        ("neo4j://graphs", "set NEO4J_USERNAME and NEO4J_PASSWORD"),
    ],
)
def test_a_wrong_address_is_told_without_its_password(uri: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said) as error:
        Neo4jAddress.parse(uri)
    assert "hush" not in str(error.value)
