import hmac
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.domain.errors import Unauthorized, ValidationError
from cragside.entrypoints.access import Grant, Keyring, Pass, local_host, near_host, workspace_of


def opening(*workspaces):
    return Grant((Pass(workspaces=workspaces or None),))


def authorised(headers, token):
    return Keyring((token,), {}).grant(headers) is not None


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
def test_the_token_may_be_a_bearer_token_or_an_api_key(headers, allowed):
    assert authorised(headers, "s3cret") is allowed


@pytest.mark.parametrize("token", [None, ""])
def test_without_configured_tokens_all_requests_are_allowed(token):
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
        b"localhost.:1",
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
        b"192.168.1.5:8642",
        b"[::1",
        b"",
        b"localhost:80@evil.example",
        b"\xff\xfe",
        b"localhost, evil.example",
    ],
)
def test_other_names_are_not_local(host):
    assert not local_host([(b"host", host)])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8642",
        "host.docker.internal:8642",
        "HOST.Docker.Internal.",
        f"{socket.gethostname().upper()}:8642",
        "192.168.1.20:8642",
        "[fd00::1]:8642",
        "[fe80::1]",
        "rag.lan:8642",
        "RAG.lan.",
    ],
)
def test_names_of_this_machine_and_of_its_network_are_near(host):
    assert near_host([(b"host", host.encode())], "RAG.lan")


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "mymac.local.evil.example",
        "192.168.1.20.nip.io",
        "8.8.8.8:80",
        "[2001:4860:4860::8888]",
        "192.168.1",
        "rag.lan",
        "",
        "192.168.1.20@evil.example",
        "mymac.local, evil.example",
        "mymac.local:80:80",
        "mymac.local/",
        "\xff.local/x",
    ],
)
def test_no_name_that_a_page_can_rebind_is_near(host):
    assert not near_host([(b"host", host.encode())], "127.0.0.1")


def test_a_request_without_host_is_allowed_and_one_with_two_is_refused():
    assert local_host([])
    assert not local_host([(b"host", b"localhost"), (b"host", b"localhost")])
    assert near_host([], "")
    assert not near_host([(b"host", b"mymac.local"), (b"host", b"evil.example")], "")


BOUND = {"a-key": ["a"], "both-key": ["a", "b"]}


@pytest.mark.parametrize(
    ("brought", "opened"),
    [
        ([b"every-key"], None),
        ([b"a-key"], ("a",)),
        ([b"both-key"], ("a", "b")),
        ([b"a-key", b"both-key"], ("a", "b")),
        ([b"a-key", b"wrong"], ("a",)),
        ([b"a-key", b"every-key"], None),
    ],
)
def test_a_token_opens_its_workspaces(brought, opened):
    assert Keyring(("every-key",), BOUND).grant([(b"x-api-key", key) for key in brought]).workspaces == opened


@pytest.mark.parametrize("brought", [[b"wrong"], []])
def test_an_unknown_token_grants_nothing(brought):
    assert Keyring(("every-key",), BOUND).grant([(b"x-api-key", key) for key in brought]) is None


def test_with_only_bound_tokens_a_token_is_required():
    assert Keyring((), BOUND).grant([]) is None


def test_a_bound_token_stays_bound_if_it_is_also_the_common_one():
    assert Keyring(("a-key",), BOUND).grant([(b"x-api-key", b"a-key")]).workspaces == ("a",)


@pytest.mark.parametrize("brought", [b"every-key", b"a-key", b"both-key", b"wrong"])
def test_every_sent_token_is_compared(brought, monkeypatch):
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append(one) or compare(one, other))
    Keyring(("every-key",), BOUND).grant([(b"x-api-key", brought)])
    assert len(set(compared)) == 3


@pytest.mark.parametrize(
    ("grant", "named", "headers", "workspace"),
    [
        (Grant(), None, {}, "home"),
        (Grant(), "b", {}, "b"),
        (Grant(), None, {b"x-rag-workspace": b"b", b"lightrag-workspace": b"c"}, "b"),
        (Grant(), None, {b"x-rag-workspace": b" ", b"lightrag-workspace": b"c"}, "c"),
        (Grant(), "a", {b"x-rag-workspace": b"b"}, "a"),
        (opening("a"), None, {}, "a"),
        (opening("a", "home"), None, {}, "home"),
        (opening("a", "b"), "b", {b"x-rag-workspace": b"z"}, "b"),
        (opening("a"), "A", {}, "a"),
    ],
)
def test_the_first_named_workspace_counts(grant, named, headers, workspace):
    assert workspace_of(grant, headers.items(), named, "home") == workspace


@pytest.mark.parametrize(
    ("grant", "named", "headers"),
    [
        (opening("a"), "b", {}),
        (opening("a"), None, {b"lightrag-workspace": b"b"}),
        (opening("a", "b"), None, {}),
        (opening("a"), "B", {}),
    ],
)
def test_a_workspace_that_is_not_granted_is_refused(grant, named, headers):
    with pytest.raises(Unauthorized):
        workspace_of(grant, headers.items(), named, "home")


@pytest.mark.parametrize("name", ["", " ", "../a", "a/b", ".a", "a\n", "x" * 64, 7, ["a"], True])
def test_an_invalid_workspace_name_is_refused(name):
    with pytest.raises(ValidationError):
        workspace_of(Grant(), [], name, "home")
