"""TLS with a real PostgreSQL: what each sslmode accepts."""

import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from tests.services.postgres import Postgres, PostgresServer

_REQUEST = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class TlsServer(PostgresServer):
    """A PostgreSQL with a certificate of its own for the name localhost, which takes connections with TLS alone."""

    def __init__(self) -> None:
        super().__init__(settings={"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"})

    @property
    def certificate(self) -> Path:
        """The certificate, which is its own authority."""
        return self.home / "data/server.crt"

    def command(self) -> list[str]:
        command = super().command()
        if not self.certificate.exists():
            certify(self.home / "data/server", "localhost")
            for file in (self.certificate, self.certificate.with_suffix(".key")):
                if self._account:
                    os.chown(file, self._account["user"], self._account["group"])
            access = self.home / "data/pg_hba.conf"
            access.write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
        return command


def certify(path: Path, name: str) -> Path:
    """Make a certificate for a name, and its key beside it."""
    certificate, key = path.with_suffix(".crt"), path.with_suffix(".key")
    names = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", "2")
    subprocess.run([*_REQUEST, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate


@pytest.fixture
def server(started: Callable[..., TlsServer]) -> Iterator[TlsServer]:
    return started("postgres", TlsServer)


async def encrypted(server: TlsServer, options: str, host: str = "localhost") -> bool:
    """Return True if a connection with these options is encrypted."""
    uri = f"{server.uri.replace('127.0.0.1', host)}?{options}"
    database = PostgresDatabase(PostgresAddress.parse(uri), most=1)
    try:
        return bool(await database.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
    finally:
        await database.close()


async def test_each_mode_verifies_what_it_says(server: TlsServer, tmp_path: Path) -> None:
    roots = f"sslrootcert={server.certificate}"
    other = f"sslrootcert={certify(tmp_path / 'other', 'localhost')}"
    assert await encrypted(server, "")
    assert await encrypted(server, "sslmode=require")
    assert await encrypted(server, f"sslmode=verify-full&{roots}")
    assert await encrypted(server, f"sslmode=verify-ca&{roots}", host="127.0.0.1")
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
        await encrypted(server, "sslmode=disable")
    for options, host in (
        (f"sslmode=verify-full&{roots}", "127.0.0.1"),  # another name than the certificate's
        (f"sslmode=verify-ca&{other}", "localhost"),
        ("sslmode=verify-full", "localhost"),  # an authority that the system does not know
    ):
        with pytest.raises(ssl.SSLCertVerificationError) as refused:
            await encrypted(server, options, host)
        assert "certificate" in meaning_of(refused.value)[1]


@pytest.mark.parametrize("options", ["sslmode=require", "sslmode=verify-full"])
async def test_a_server_without_tls_is_told_with_the_setting(postgres: Postgres, options: str) -> None:
    database = PostgresDatabase(PostgresAddress.parse(f"{postgres.uri}?{options}"), most=1)
    with pytest.raises(ConnectionError) as refused:
        await database.value("SELECT 1")
    reason, unusable = meaning_of(refused.value)
    assert reason.startswith("PostgreSQL takes no TLS")
    assert "sslmode in POSTGRES_URI" in unusable
    await database.close()
