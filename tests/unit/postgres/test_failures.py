"""Failures of PostgreSQL name their cause and the remedy."""

import asyncpg
import pytest

from cragside.databases.postgres.connections import meaning_of


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (asyncpg.InvalidPasswordError("secret"), "the user or the password in POSTGRES_URI. Correct them"),
        (asyncpg.InvalidAuthorizationSpecificationError("no entry"), "let the user in with pg_hba.conf"),
        (asyncpg.InvalidCatalogNameError("secret"), "Create it, or correct POSTGRES_URI"),
        (ConnectionRefusedError(111, "secret"), "PostgreSQL does not answer. Start it, or correct POSTGRES_URI"),
        (asyncpg.CannotConnectNowError("secret"), "starting, stopping or recovering. Wait, or see its log"),
        (ConnectionError('server at "secret:5432" rejected SSL upgrade'), "which sslmode in POSTGRES_URI asks for"),
    ],
)
def test_a_failure_says_what_to_do(failure: Exception, said: str) -> None:
    _, unusable = meaning_of(failure)
    assert said in unusable
    assert "secret" not in unusable
