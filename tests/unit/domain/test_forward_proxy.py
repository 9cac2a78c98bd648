import logging

import pytest

from cragside.domain.forward_proxy import forward_proxy, way_to

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def by(url):
    proxy = forward_proxy(url)
    return proxy and proxy.url


def test_without_variables_hosts_are_asked_directly():
    assert by("https://models.example.com/v1") is None


def test_each_scheme_has_its_proxy_and_all_proxy_is_for_the_rest(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://secure.example:3128")
    monkeypatch.setenv("all_proxy", "plain.example")
    assert by("https://models.example.com") == "http://secure.example:3128"
    assert by("http://models.example.com:11434") == "http://plain.example:80"


@pytest.mark.parametrize("host", ["localhost", "127.1", "[::1]", "[fe80::1%25eth0]", "ollama", "GPU.LAN.", "gpu.local"])
def test_this_machine_and_local_networks_are_asked_directly(monkeypatch, host):
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    assert by(f"http://{host}:11434") is None


@pytest.mark.parametrize("host", ["models.example.com", "8.8.8.8", "[2606:4700::1]", "localhost.example.com"])
def test_public_hosts_are_asked_by_the_proxy(monkeypatch, host):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    assert by(f"http://{host}/v1") == "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("entry", "direct"),
    [
        ("*", True), ("models.example.com", True), ("MODELS.example.com", True), ("example.com", True),
        (".example.com", True), ("*.example.com", True), ("odels.example.com", False), ("other.com", False),
        ("models.example.com:443", True), ("models.example.com:8443", False), ("https://models.example.com/", True),
        ("", False), (",, ,", False), ("::1", False), ("[::1]", False), ("[::1]:443", False), ("10.0.0.0/8", False),
        ("fd00::/8", False), ("10.0.0.0/99", False), ("[", False), ("http://", False), ("a b models.example.com", True),
        ("\u00fc.example", False), (":", False), (":443", False), ("localhost,127.0.0.1,::1,.example.com", True),
    ],
)  # fmt: skip
def test_no_proxy_names_hosts_and_odd_entries_name_none(monkeypatch, entry, direct):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("NO_PROXY", entry)
    assert (by("https://models.example.com/v1") is None) is direct


@pytest.mark.parametrize(
    ("entry", "host", "direct"),
    [
        ("8.8.0.0/16", "8.8.4.4", True), ("8.8.4.4", "8.8.4.4", True), ("8.8.4.4:443", "8.8.4.4", True),
        ("8.8.4.0/24", "9.8.4.4", False), ("2606:4700::/32", "[2606:4700::1]", True),
        ("[2606:4700::1]", "[2606:4700::1]", True), ("[2606:4700::1]:443", "[2606:4700::1]", True),
        ("[2606:4700::1]:80", "[2606:4700::1]", False), ("2606:4700::1", "[2606:4700::2]", False),
    ],
)  # fmt: skip
def test_no_proxy_names_addresses_and_ranges(monkeypatch, entry, host, direct):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("NO_PROXY", entry)
    assert (by(f"https://{host}") is None) is direct


@pytest.mark.parametrize(
    "address",
    [
        "socks5://proxy:1080",
        "socks://u:hush@proxy",
        "https://proxy",
        "http://proxy:port",
        "http://[::1",
        "http://",
        "://",
    ],
)
def test_a_proxy_that_is_not_https_is_told_and_not_taken(monkeypatch, caplog, address):
    monkeypatch.setenv("ALL_PROXY", address)
    with caplog.at_level(logging.WARNING, "cragside"):
        assert by("https://models.example.com") is None
    assert "ALL_PROXY has" in caplog.text
    assert "hush" not in caplog.text


def test_credentials_of_the_proxy_are_in_no_message(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://us%40er:h%2Fush@[2606:4700::1]:3128")
    proxy = forward_proxy("http://models.example.com")
    assert proxy.headers == {"Proxy-Authorization": "Basic dXNAZXI6aC91c2g="}
    assert proxy.signed_url == "http://us%40er:h%2Fush@[2606:4700::1]:3128"
    assert "ush" not in repr(proxy) + way_to("http://models.example.com")
    assert way_to("http://models.example.com") == " through the proxy http://[2606:4700::1]:3128"


@pytest.mark.parametrize("url", ["", "models.example.com", "http://[", "http://models.example.com:port", "http://"])
def test_an_address_that_is_none_has_no_proxy(monkeypatch, url):
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example")
    assert by(url) is None
