import pytest

from cragside.domain.addresses import origin_patterns
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.origins import Origins
from cragside.settings import load_settings

HERE = "localhost:8642"


def sent(host: str | None = HERE, **headers: str | tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    pairs = [] if host is None else [(b"host", host.encode())]
    for name, values in headers.items():
        given = (values,) if isinstance(values, str) else values
        pairs += [(name.replace("_", "-").encode(), value.encode("latin-1")) for value in given]
    return pairs


def may_call(headers: list[tuple[bytes, bytes]], allowed: str = "") -> bool:
    return Origins(origin_patterns(allowed) if allowed else ()).may_call(headers)


def may_ask(headers: list[tuple[bytes, bytes]], allowed: str = "") -> bool:
    return Origins(origin_patterns(allowed) if allowed else ()).may_ask(headers)


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "http://localhost:8642",
        "https://localhost:3000",
        "http://127.0.0.1:5173",
        "http://127.8.8.8",
        "http://[::1]:3000",
        "http://ui.localhost:3000",
    ],
)
def test_pages_of_this_machine_may_call_a_server_on_this_machine_and_no_other(origin: str) -> None:
    assert may_call(sent(origin=origin))
    assert may_call(sent("[::1]:8642", origin=origin))
    assert not may_call(sent("rag.example", origin=origin))
    assert not may_call(sent(None, origin=origin))


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.nip.io",
        "http://evillocalhost",
        "http://localhost@evil.example",
        "http://localhost:80@evil.example",
        "http://evil.example#localhost",
        "http://evil.example/localhost",
        "http://localhost/",
        "http://localhost\\.evil.example",
        "http://localhost:",
        "http://localhost:port",
        "http://localhost:99999",
        "http://localhost:٣",
        "HTTP://LOCALHOST",
        "http://LOCALHOST:3000",
        "http://localhost:3000 ,https://evil.example",
        "http://localhost https://evil.example",
        "//localhost",
        "localhost",
        "",
        " ",
        "null",
        "NULL",
        "*",
        "file://",
        "file://localhost",
        "chrome-extension://localhost",
        "app://localhost",
        "javascript://localhost",
        "http://0.0.0.0:3000",
        "http://[::1",
        "http://[::1]evil.example",
        "http://[::2]",
        "http://2130706433",
        "http://127.1",
        "http://192.168.1.5",
        "http://l\xf6calhost",
        "http://",
        "http://.localhost",
    ],
)
def test_other_pages_may_not_call(origin: str) -> None:
    headers = sent(origin=origin.encode().decode("latin-1"))
    assert not may_call(headers)
    assert not may_call([*headers, (b"sec-fetch-site", b"same-origin")])


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize(
    "origins",
    [
        ("http://localhost:3000", "https://evil.example"),
        ("https://evil.example", "http://localhost:3000"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("", "http://localhost:3000"),
    ],
)
def test_several_origins_are_never_allowed(origins: tuple[str, ...]) -> None:
    assert not may_call(sent(origin=origins), "http://localhost:*")
    assert not may_ask(sent(origin=origins), "http://localhost:*")


@pytest.mark.parametrize(
    ("host", "origin", "same"),
    [
        ("rag.example", "https://rag.example", True),
        ("rag.example", "http://rag.example", True),
        ("RAG.example:443", "https://rag.example", True),
        ("rag.example:8642", "http://rag.example:8642", True),
        ("[fd00::1]:8642", "http://[fd00::1]:8642", True),
        ("rag.example:80", "https://rag.example", False),
        ("rag.example:8642", "http://rag.example:8643", False),
        ("rag.example", "https://rag.example:8443", False),
        ("rag.example", "https://www.rag.example", False),
        ("rag.example", "https://rag.example.", False),
        ("rag.example", "app://rag.example", False),
        ("rag.example@evil.example", "https://evil.example", False),
        ("", "http://", False),
    ],
)
def test_the_same_origin_has_the_hosts_name_and_port(host: str, origin: str, same: bool) -> None:
    assert may_call(sent(host, origin=origin)) is same


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_sec_fetch_site_decides_the_same_origin(site: str) -> None:
    assert not may_call(sent("rag.example", origin="http://rag.example", sec_fetch_site=site))


def test_two_hosts_are_no_origin() -> None:
    assert not may_call([*sent("rag.example", origin="http://rag.example"), (b"host", b"rag.example")])


@pytest.mark.parametrize(
    ("host", "sites", "allowed"),
    [
        (HERE, (), True),
        (None, (), True),
        (HERE, ("none",), True),
        (HERE, ("same-origin",), True),
        (HERE, ("same-site",), True),
        ("rag.example", ("same-origin",), True),
        ("rag.example", ("same-site",), False),
        (HERE, ("cross-site",), False),
        (HERE, ("CROSS-SITE",), False),
        (HERE, ("none", "cross-site"), False),
        (HERE, ("else",), False),
    ],
)
def test_a_request_without_origin_is_judged_by_its_site(
    host: str | None, sites: tuple[str, ...], allowed: bool
) -> None:
    assert may_call(sent(host, sec_fetch_site=sites)) is allowed
    assert may_ask(sent(host, sec_fetch_site=sites)) is allowed


@pytest.mark.parametrize(
    ("origin", "accepted"),
    [
        ("http://localhost", True),
        ("https://localhost:3000", True),
        ("http://127.0.0.1:1", True),
        ("http://0.0.0.0:3000", True),
        ("app://obsidian.md", True),
        ("file://", True),
        ("tauri://localhost", True),
        ("vscode-webview://1a2b", True),
        ("vscode-file://vscode-app", True),
        ("http://127.0.0.2", False),
        ("http://ui.localhost", False),
        ("http://[::1]:3000", False),
        ("http://localhost.evil.example", False),
        ("http://localhost:3000/", False),
        ("HTTP://localhost", False),
        ("chrome-extension://abc", False),
        ("null", False),
        ("", False),
    ],
)
def test_evidence_is_for_the_pages_that_ollama_accepts_by_default(origin: str, accepted: bool) -> None:
    assert may_ask(sent(origin=origin)) is accepted


@pytest.mark.parametrize(
    ("allowed", "origin", "listed"),
    [
        ("https://app.example", "https://app.example", True),
        ("https://APP.example:443/", "https://app.example", True),
        (" https://a.example , http://nas.lan:3000 ", "http://nas.lan:3000", True),
        ("https://app.example", "http://app.example", False),
        ("https://app.example", "https://app.example:8443", False),
        ("https://app.example", "https://app.example.", False),
        ("https://app.example", "https://app.example.evil.example", False),
        ("http://nas.lan:*", "http://nas.lan:9", True),
        ("http://nas.lan:*", "http://nas.lan", True),
        ("http://nas.lan:*", "http://nas.lan.evil.example:9", False),
        ("https://*.app.example", "https://a.b.app.example", True),
        ("https://*.app.example", "https://app.example", False),
        ("https://*.app.example", "https://evilapp.example", False),
        ("https://*.app.example:*", "https://a.app.example:9", True),
        ("http://[::1]:*", "http://[::1]:3000", True),
        ("http://[0:0::1]:80", "http://[::1]", True),
        ("chrome-extension://*", "chrome-extension://abcdef", True),
        ("chrome-extension://abcdef", "chrome-extension://fedcba", False),
        ("app://*", "https://evil.example", False),
        ("null", "null", True),
        ("https://null.example", "null", False),
        ("https://xn--mller-kva.example", "https://xn--mller-kva.example", True),
    ],
)
def test_origins_are_listed_exactly_or_with_a_star(allowed: str, origin: str, listed: bool) -> None:
    assert may_call(sent(origin=origin), allowed) is listed
    assert may_ask(sent(origin=origin), allowed) is listed or origin.startswith("http://[::1]")


@pytest.mark.parametrize(
    "given",
    [
        "*",
        "https://*",
        "http://*:*",
        "https://*.com",
        "https://app.*",
        "https://*app.example",
        "app.example",
        "https://app.example/path",
        "https://user:hush@app.example",
        "https://müller.example",
        "https://app.example:99999",
        "https://app.example;https://b.example",
        "https://app.example,,https://b.example",
        "https://",
        "nonsense",
    ],
)
def test_an_invalid_origin_is_a_configuration_error(given: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"RAG_ALLOW_ORIGINS: .*Entry \d is not an origin: write origins as"
    ) as error:
        load_settings({"RAG_ALLOW_ORIGINS": given})
    assert "hush" not in error.value.message
