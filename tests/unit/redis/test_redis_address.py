"""The address of a Redis database: what it may say, and how a wrong one is told."""

import pytest

from cragside.adapters.bad_address import BadAddress
from cragside.adapters.redis.address import RedisAddress


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
    ],
)
def test_a_wrong_address_is_told_without_its_password(uri: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said) as error:
        RedisAddress.parse(uri)
    assert "hush" not in str(error.value)
