"""The address of a Redis database: what it may say, and how a wrong one is told."""

import pytest

from cragside.databases.server_addresses import BadAddress, RedisAddress


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("redis://:hush@cache.example.org", "redis://cache.example.org"),
        ("rediss://me:hu%40sh@10.0.0.7:6380/3?ssl_cert_reqs=none", "rediss://10.0.0.7:6380/3"),
        ("redis://[fd00::7]:6379/0", "redis://[fd00::7]:6379/0"),
    ],
)
def test_messages_have_neither_user_nor_password(uri: str, shown: str) -> None:
    address = RedisAddress.parse(uri)
    assert (str(address), address.uri) == (shown, uri)
    assert "hush" not in repr(address)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://hush@cache:6379", "begin it with redis:// or rediss://"),
        ("redis://:hush℀@cache:6379", "letters beyond ASCII"),
        ("redis://:hush[@cache:6379", "letters beyond ASCII"),
        ("redis://:1?hush@cache:6379", "write @ as %40"),
        ("redis://:hush@cache:6379/0?ssl_cert_reqs=none", "Begin it with rediss://"),
        ("redis://:hush@cache:port", "the port has to be a number"),
        ("redis:///0", "name the host"),
        ("redis://:hush@cache/rag", "has to be a number"),
        ("redis://cache/0?socket_timeout=hush", "unknown option; those known are ssl_ca_certs"),
        ("redis://:hush@ca che:6379", "a blank or a backslash"),
        (f"redis://:hush@{'x' * 64}", "a part that is empty, too long"),
        ("rediss://:hush@cache?ssl_cert_reqs=bogus", "ssl_cert_reqs has to be one of required, optional, none"),
        ("rediss://:hush@cache?ssl_check_hostname=maybe", "ssl_check_hostname has to be one of true, false"),
        ("rediss://:hush@cache?ssl_ca_certs=/none/hush.pem", "the file of ssl_ca_certs is missing or cannot be read"),
        ("rediss://:hush@cache?ssl_certfile=/none/hush.pem", "the file of ssl_certfile is missing"),
        ("rediss://:hush@cache?ssl_keyfile=%00hush", "the file of ssl_keyfile is missing"),
        ("rediss://:hush@cache?ssl_keyfile=/dev/null", "ssl_keyfile needs ssl_certfile"),
        ("rediss://:hush@cache?ssl_ca_path=/none/hush", "the folder of ssl_ca_path is missing"),
        ("rediss://:hush@cache?ssl_cert_reqs=none&ssl_cert_reqs=required", "an option is there twice"),
    ],
)
def test_a_wrong_address_is_told_without_its_password(uri: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said) as error:
        RedisAddress.parse(uri)
    assert "hush" not in str(error.value)
