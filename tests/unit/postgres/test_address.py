"""The address of a PostgreSQL database: what it may say, and how a wrong one is told."""

import json
import ssl
from pathlib import Path

import pytest

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.server_addresses import BadAddress


@pytest.mark.parametrize(
    ("uri", "host", "port", "shown"),
    [
        ("postgresql://me:pw@db.example.org/rag", "db.example.org", 5432, "postgresql://db.example.org:5432/rag"),
        ("postgres://me@10.0.0.7:6543/rag", "10.0.0.7", 6543, "postgresql://10.0.0.7:6543/rag"),
        ("postgresql://me:pw@[fd00::7]:6543/rag", "fd00::7", 6543, "postgresql://[fd00::7]:6543/rag"),
        ("postgresql:///rag?host=/var/run/Pg", "/var/run/Pg", 5432, "postgresql:///rag?host=/var/run/Pg"),
        ("postgresql://me@%2Fvar%2Frun%2FPg:6543/rag", "/var/run/Pg", 6543, "postgresql:///rag?host=/var/run/Pg"),
        ("postgresql://me:pw@/rag?host=db", "db", 5432, "postgresql://db:5432/rag"),
    ],
)
def test_hosts_are_names_addresses_and_sockets(uri: str, host: str, port: int, shown: str) -> None:
    address = PostgresAddress.parse(uri)
    assert (address.host, address.port, address.database) == (host, port, "rag")
    assert str(address) == shown
    assert "pw" not in repr(address)


def test_parts_are_percent_encoded() -> None:
    address = PostgresAddress.parse("postgresql://a%40b:p%3A%2F%3F%23%25@db/my%20rag")
    assert (address.user, address.password, address.database) == ("a@b", "p:/?#%", "my rag")


def test_a_server_is_told_no_setting_but_the_name_of_the_application() -> None:
    given = PostgresAddress.parse("postgresql://me@db/rag?application_name=bot&statement_cache_size=0")
    assert given.arguments()["server_settings"] == {"application_name": "bot"}
    assert given.statement_cache_size == 0


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("mysql://me:hunter2@db/rag", "begin it with postgresql://"),
        ("db.example.org/rag", "begin it with postgresql://"),
        ("postgresql://me:hunter2@/rag", "name the host"),
        ("postgresql://me:hunter2@db", "name the database"),
        ("postgresql://me:hunter2@db/", "name the database"),
        ("postgresql://db/rag", "name the user"),
        ("postgresql://me:hunter2@db:port/rag", "the port has to be a number"),
        ("postgresql://me:hunter2@db:99999/rag", "the port has to be a number"),
        ("postgresql://me:hunter2@one,two/rag", "name one host"),
        ("postgresql://me:hunter2@one/rag?host=two", "names two hosts"),
        ("postgresql://me:hunter2@d b/rag", "a blank or a backslash"),
        ("postgresql://me:hunter2@/rag?host=a..b", "a part that is empty"),
        ("postgresql://me:hunter2@[::1/rag", "IPv6 in brackets"),
        ("postgresql://me:hunter2℀@db/rag", "letters beyond ASCII"),
        ("postgresql://me:hun@ter2@db/rag", "write @ as %40"),
        ("postgresql://me:hun#hunter2@db/rag", "write @ as %40"),
        ("postgresql://me:hun/hunter2@db/rag", "write @ as %40"),
        ("postgresql://me:1?hunter2=1@db/rag", "write @ as %40"),
        ("postgresql://me:hunter2@db/rag?pool=9", "pool is no option here"),
        ("postgresql://me:hunter2@db/rag?sslmode=hunter2", "sslmode has to be one of"),
        ("postgresql://me:hunter2@db/rag?sslmode=require&sslmode=disable", "twice"),
        ("postgresql://me:hunter2@db/rag?sslmode=verify-full&sslrootcert=/hunter2", "the file of sslrootcert"),
        (f"postgresql://me:hunter2@db/rag?sslmode=verify-full&sslrootcert={__file__}", "holds no certificate"),
        (f"postgresql://me:hunter2@db/rag?sslrootcert={__file__}", "needs sslmode=verify-full"),
        (f"postgresql://me:hunter2@db/rag?sslkey={__file__}", "sslkey needs sslcert"),
        (f"postgresql://me:hunter2@db/rag?sslmode=require&sslcert={__file__}", "no certificate with its key"),
        ("postgresql://me:hunter2@db/rag?statement_cache_size=many", "has to be a number"),
        ("postgresql://me:hunter2@db/rag?auth=iam&sslmode=require", "Leave the password out"),
        ("postgresql://me@db/rag?auth=iam", "needs sslmode"),
        ("postgresql://me:hunter2@db/rag?auth=scram", "auth has to be iam"),
    ],
)
def test_a_wrong_address_says_what_to_change_and_no_secret(uri: str, said: str) -> None:
    with pytest.raises(BadAddress) as refused:
        PostgresAddress.parse(uri)
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_require_encrypts_and_only_the_verify_modes_verify() -> None:
    found = {}
    for mode in ("require", "verify-ca", "verify-full"):
        tls = PostgresAddress.parse(f"postgresql://me@db/rag?sslmode={mode}").tls
        assert isinstance(tls, ssl.SSLContext)
        found[mode] = (tls.verify_mode, tls.check_hostname)
    assert found == {
        "require": (ssl.CERT_NONE, False),
        "verify-ca": (ssl.CERT_REQUIRED, False),
        "verify-full": (ssl.CERT_REQUIRED, True),
    }
    assert PostgresAddress.parse("postgresql://me@db/rag").tls == "prefer"


def test_a_socket_needs_no_tls(tmp_path: Path) -> None:
    assert PostgresAddress.parse(f"postgresql:///rag?host={tmp_path}&sslmode=require").tls == "disable"


def test_a_host_of_rds_is_verified_by_its_own_authorities_unless_the_address_says_otherwise() -> None:
    host = "rag.abc.eu-central-1.rds.amazonaws.com"
    tls = PostgresAddress.parse(f"postgresql://me@{host}/rag?auth=iam").tls
    assert isinstance(tls, ssl.SSLContext)
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert "Amazon RDS eu-central-1 Root CA RSA2048 G1" in str(tls.get_ca_certs())
    assert PostgresAddress.parse(f"postgresql://me@{host}/rag?sslmode=disable").tls == "disable"
    elsewhere = PostgresAddress.parse("postgresql://me@db.example.org/rag?sslmode=verify-full").tls
    assert isinstance(elsewhere, ssl.SSLContext)
    assert not any("Amazon RDS" in str(each) for each in elsewhere.get_ca_certs())


LOGIN = {"username": "me", "password": "p@/?#"}


@pytest.mark.parametrize(
    ("fields", "place", "shown"),
    [
        ({"host": "db", "port": 6543, "dbname": "rag", "engine": "postgres"}, "", "postgresql://db:6543/rag"),
        ({"host": "db", "port": "6543", "dbname": "rag", "dbClusterIdentifier": "c"}, "", "postgresql://db:6543/rag"),
        ({}, "postgresql://proxy:7000/other?application_name=bot", "postgresql://proxy:7000/other"),
        (
            {"host": "db", "dbname": "rag", "engine": "aurora-postgresql"},
            "postgresql://proxy",
            "postgresql://proxy:5432/rag",
        ),
        ({"host": "db", "dbname": "rag"}, "postgresql:///other", "postgresql://db:5432/other"),
    ],
)
def test_a_secret_of_rds_is_an_address_whose_place_may_be_said_apart(
    fields: dict[str, object], place: str, shown: str
) -> None:
    address = PostgresAddress.of_secret(json.dumps(LOGIN | fields), place)
    assert (str(address), address.user, address.password) == (shown, "me", "p@/?#")


def test_a_secret_may_have_a_whole_address() -> None:
    assert PostgresAddress.of_secret("postgresql://me:pw@db/rag").password == "pw"


@pytest.mark.parametrize(
    ("secret", "place", "said"),
    [
        ('{"username": "me"}', "postgresql://db/rag", "the secret has no password"),
        ('{"password": "hunter2"}', "postgresql://db/rag", "the secret has no username"),
        ('{"hunter2', "postgresql://db/rag", "no JSON"),
        ('{"username": "me", "password": "hunter2", "engine": "mysql"}', "postgresql://db/rag", "another database"),
        ('{"username": "me", "password": "hunter2", "host": "db"}', "", "name the database"),
        ('{"username": "me", "password": "hunter2"}', "", "name the host"),
        ('{"username": "me", "password": "hunter2"}', "postgresql://you:hunter2@db/rag", "leave user and password out"),
        ("postgresql://me:hunter2@db/rag", "postgresql://db/rag", "Unset one of them"),
    ],
)
def test_a_wrong_secret_says_what_to_change_and_nothing_of_it(secret: str, place: str, said: str) -> None:
    with pytest.raises(BadAddress) as refused:
        PostgresAddress.of_secret(secret, place)
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)
