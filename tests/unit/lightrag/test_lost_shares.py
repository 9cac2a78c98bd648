"""A share that another database has lost is named with that database."""

import pytest

from cragside.store.ledger.postgres.journal import ShareLost


@pytest.mark.parametrize(
    ("role", "share"),
    [
        ("graph", "the graph in Neo4j"),
        ("vector", "its share in Qdrant"),
        ("kv", "its share in Redis"),
        ("doc_status", "its list of documents in Redis"),
    ],
)
def test_the_database_and_the_remedy_are_named(role: str, share: str) -> None:
    lost = ShareLost(role)
    assert lost.reason == f"{share} was restored from a backup or emptied"
    assert str(lost).endswith(f"{lost.reason}. Run cragside repair.")
