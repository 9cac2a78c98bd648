"""The address of a Qdrant server: what it may say, and how a wrong one is told."""

import pytest

from cragside.databases.server_addresses import BadAddress, QdrantAddress


def test_messages_have_no_key() -> None:
    address = QdrantAddress.parse(" https://qdrant.example.org:6333/behind/ ", "hush")
    assert (str(address), address.api_key) == ("https://qdrant.example.org:6333/behind", "hush")
    assert "hush" not in repr(address)


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("grpc://hush:6334", "", "begin it with http:// or https://"),
        (":memory:", "", "begin it with http:// or https://"),
        ("http://hush℀@qdrant", "", "letters beyond ASCII"),
        ("http://qdrant:hush", "", "the port has to be a number"),
        ("https:///hush", "", "name the host"),
        ("http://hush st:6333", "", "a blank or a backslash"),
        ("http://hush\\st:6333", "", "a blank or a backslash"),
        (f"http://{'hush' * 16}", "", "a part that is empty, too long"),
        ("https://me:hush@qdrant", "", "set QDRANT_API_KEY instead"),
        ("https://qdrant?api-key=hush", "", "no [?] and no #"),
        ("https://qdrant", "hush\nX-Other: 1", "QDRANT_API_KEY has characters"),
    ],
)
def test_a_wrong_address_is_told_without_its_secrets(url: str, key: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said) as error:
        QdrantAddress.parse(url, key)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "key", "told"),
    [
        ("http://qdrant:6333", "hush", True),
        ("http://qdrant:6333", "", False),
        ("https://qdrant:6333", "hush", False),
        ("http://127.0.0.1:6333", "hush", False),
        ("http://[::1]:6333", "hush", False),
        ("http://localhost:6333", "hush", False),
    ],
)
def test_a_key_is_told_to_a_network_that_does_not_hide_it(url: str, key: str, told: bool) -> None:
    assert QdrantAddress.parse(url, key).tells_its_key is told
