import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.entrypoints.access import Keyring, local_host


def authorised(headers, token):
    return Keyring(token, {}).grant(headers) is not None


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ([(b"authorization", b"Bearer s3cret")], True),
        ([(b"authorization", b"bearer  s3cret ")], True),
        ([(b"x-api-key", b"s3cret")], True),
        ([(b"authorization", b"Bearer wrong"), (b"x-api-key", b"s3cret")], True),
        ([], False),
        ([(b"authorization", b"s3cret")], False),
        ([(b"authorization", b"Basic s3cret")], False),
        ([(b"authorization", b"Bearer")], False),
        ([(b"authorization", b"Bearer s3cre")], False),
        ([(b"x-api-key", b"")], False),
        ([(b"x-api-key", b"s3cret\xe9")], False),
        ([(b"cookie", b"s3cret")], False),
    ],
)
def test_the_token_comes_as_bearer_or_api_key(headers, allowed):
    assert authorised(headers, "s3cret") is allowed


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_everybody_may_come_in(token):
    assert authorised([], token)


def test_a_token_may_be_written_in_any_script():
    assert authorised([(b"x-api-key", "gehéim".encode())], "gehéim")


@given(st.lists(st.tuples(st.sampled_from([b"authorization", b"x-api-key"]), st.binary(max_size=30))))
def test_other_bytes_are_no_token(headers):
    assert not authorised(headers, "a token that no test makes up")


@pytest.mark.parametrize(
    "host",
    [
        b"localhost",
        b"LOCALHOST:8642",
        b"localhost.",
        b"app.localhost:1",
        b"127.0.0.1",
        b"127.9.9.9:80",
        b"[::1]:8642",
    ],
)
def test_names_of_this_machine_are_local(host):
    assert local_host([(b"host", host)])


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"localhost.evil.example",
        b"evillocalhost",
        b"127.0.0.1.nip.io",
        b"0.0.0.0",
        b"192.168.1.5:8642",
        b"[::2]",
        b"[::1",
        b"",
        b"localhost:80@evil.example",
        b"\xff\xfe",
        b"localhost, evil.example",
    ],
)
def test_other_names_are_not_local(host):
    assert not local_host([(b"host", host)])


def test_the_bound_host_is_local():
    assert local_host([(b"host", b"rag.lan:8642")], "RAG.lan")
    assert not local_host([(b"host", b"rag.lan:8642")])


def test_no_host_is_no_browser_and_two_are_nobody():
    assert local_host([])
    assert not local_host([(b"host", b"localhost"), (b"host", b"localhost")])
