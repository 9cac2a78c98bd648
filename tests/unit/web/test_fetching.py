"""Pages that are fetched, and the limits of a fetch."""

import asyncio
import gzip
import ssl
import subprocess
import tracemalloc
import zlib
from ipaddress import ip_network

import pytest

from cragside import __version__
from cragside.adapters.web import fetcher, guard
from cragside.adapters.web.guard import Guard, SystemResolver
from cragside.bootstrap import Container
from cragside.domain.addresses import is_public, parse_address
from cragside.domain.errors import ConfigurationError
from cragside.ports.files import FetchFailed
from cragside.settings import load_settings
from tests.unit.web.loopback_sites import SECRET, STAND_IN, VICTIM, Site, answer, redirect

pytestmark = pytest.mark.allow_hosts([VICTIM, STAND_IN])

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


async def fails(net, reason, url=None, **keywords):
    with pytest.raises(FetchFailed) as failure:
        await net.fetcher(**keywords).fetch(url or net.url())
    assert failure.value.reason == reason
    return failure.value


def drip(*chunks, then=b"", pause=0.01):
    """A page that sends its chunks, and then one more again and again without end."""

    async def write(writer):
        for chunk in chunks:
            writer.write(chunk)
        while then:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(pause)

    return write


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e"]
)
def test_public_addresses_are_admitted(address):
    host = f"[{address}]" if ":" in address else address
    url = Guard().target(f"https://{host}/page#part")
    assert str(url) == f"https://{host}/page"
    assert Guard().admit(url, [address]) == {address}
    assert Guard().admit(Guard().target("https://public.example/"), [address]) == {address}


@pytest.mark.parametrize(
    "network",
    [
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "::1/128", "fc00::/7", "fe80::/10"),
        *("ff00::/8", "2001:db8::/32", "169.254.169.254/32", "fd00:ec2::254/128"),
    ],
)
def test_reserved_and_metadata_networks_are_not_public(network: str) -> None:
    reserved = ip_network(network)
    assert not is_public(reserved[0])
    assert not is_public(reserved[-1])


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("HTTPS://Public.Example", "https://public.example"),
        ("https://public.example./a?b=c#d", "https://public.example/a?b=c"),
        ("https://bücher.example/ä?q=ü", "https://xn--bcher-kva.example/%C3%A4?q=%C3%BC"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://PUBLIC．example/", "https://public.example/"),
        ("https://public.example:443/", "https://public.example/"),
        ("https://public.example:8443/", "https://public.example:8443/"),
        ("http://1.example.com/", "http://1.example.com/"),
        ("http://0x7f.example/", "http://0x7f.example/"),
        ("http://a_b.example/", "http://a_b.example/"),
        ("http://public.example/@user?x=http://127.0.0.1/", "http://public.example/@user?x=http://127.0.0.1/"),
        ("http://public.example/a%20b%2Fc", "http://public.example/a%20b%2Fc"),
        ("http://[2606:4700:0000::1111]/", "http://[2606:4700::1111]/"),
    ],
)
def test_urls_become_canonical(given, canonical):
    assert str(Guard().target(given)) == canonical


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/b", "http://[2606:4700::1111]/b"),
        ("b?c", "http://[2606:4700::1111]/a/b?c"),
        ("?c", "http://[2606:4700::1111]/a/?c"),
        ("//public.example/b", "http://public.example/b"),
        ("https://public.example", "https://public.example"),
        ("../../../b", "http://[2606:4700::1111]/b"),
    ],
)
def test_redirects_may_be_relative(location, leads_to):
    base = Guard().target("http://[2606:4700::1111]/a/")
    assert str(Guard().target(location, base)) == leads_to


def test_a_redirect_from_https_to_http_is_refused():
    base = Guard().target("https://public.example/")
    with pytest.raises(guard.AddressRefused, match="from https to http"):
        Guard().target("http://public.example/", base)
    assert str(Guard().target("//other.example/", base)) == "https://other.example/"


@pytest.mark.parametrize(
    ("allow", "host", "address"),
    [
        ("wiki.corp", "wiki.corp", "10.0.0.1"),
        ("WIKI.corp", "wiki.corp.", "10.0.0.1"),
        ("wiki", "wiki", "fd00::1"),
        ("*.corp", "a.b.corp", "10.0.0.1"),
        ("10.0.0.0/8", "wiki.corp", "10.0.0.1"),
        ("10.0.0.1", "wiki", "10.0.0.1"),
        ("fd00::/8", "wiki", "fd00::1"),
        ("[fd00::1]", "wiki", "fd00::1"),
        ("100.64.0.0/10", "node.tailnet.example", "100.101.102.103"),
    ],
)
def test_an_allowed_host_is_admitted_on_every_port(allow, host, address):
    allowing = Guard([" ", f" {allow} "])
    assert allowing.admit(allowing.target(f"http://{host}:3000/"), [address]) == {address}


@pytest.mark.parametrize(
    ("allow", "host", "found"),
    [
        ("*.corp", "corp", ["10.0.0.1"]),
        ("wiki.corp", "other.wiki.corp", ["10.0.0.1"]),
        ("*.corp", "wiki.corp.example", ["10.0.0.1"]),
        ("10.0.0.1", "public.example", ["10.0.0.2"]),
        ("10.0.0.1", "public.example", ["10.0.0.1", "10.0.0.2"]),
        ("127.0.0.0/8", "public.example", ["::ffff:127.0.0.1"]),
        ("10.0.0.0/8", "public.example", ["64:ff9b::10.0.0.1"]),
        ("10.0.0.0/8", "wiki.corp", ["8.8.8.8"]),
    ],
)
def test_only_allowed_hosts_are_admitted(allow, host, found):
    allowing = Guard([allow])
    with pytest.raises(guard.AddressRefused):
        allowing.admit(allowing.target(f"http://{host}/"), found)


@pytest.mark.parametrize("entry", ["http://wiki.corp", "wiki.corp:80", "10.0.0.0/33", "*", "*.*.corp", "a b", "127.1"])
def test_an_entry_that_is_no_host_is_a_configuration_error(entry, tmp_path):
    settings = load_settings({"RAG_HOME": str(tmp_path), "RAG_FETCH_ALLOW": f"wiki.corp, {entry}"})
    with pytest.raises(ConfigurationError, match="RAG_FETCH_ALLOW"):
        Container(settings)


async def test_the_container_fetches_from_allowed_hosts(net, tmp_path):
    net.site.pages["/"] = answer(b"hello")
    settings = load_settings({"RAG_HOME": str(tmp_path), "RAG_FETCH_ALLOW": f"wiki.corp,{STAND_IN}"})
    container = Container(settings)
    assert (await container.fetcher.fetch(net.url(host=STAND_IN))).content == b"hello"
    with pytest.raises(FetchFailed, match="not at a public address"):
        await container.fetcher.fetch(net.url(host=VICTIM))
    await container.disconnect()
    await container.close()


async def test_a_page_has_its_url_type_and_charset(net):
    net.site.pages["/page?q=1"] = answer(b"<p>hello", "Text/HTML; charset=ISO-8859-1")
    page = await net.fetcher().fetch(net.url("/page?q=1#part"))
    assert (page.url, page.content, page.status) == (net.url("/page?q=1"), b"<p>hello", 200)
    assert (page.content_type, page.charset) == ("text/html", "iso-8859-1")


async def test_a_request_has_only_a_user_agent(net):
    net.site.pages["/"] = answer(status=302, Location="/next", Set_Cookie="session=1; Path=/")
    net.site.pages["/next"] = answer(b"hello")
    await net.fetcher().fetch(net.url())
    lines = net.site.requests[1].decode().split("\r\n")
    names = {line.partition(":")[0].lower() for line in lines[1:] if line}
    assert names == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert f"User-Agent: cragside/{__version__}" in lines
    assert f"Host: public.example:{net.port}" in lines


async def test_redirects_are_followed_to_the_fifth(net):
    for hop in range(5):
        net.site.pages[f"/{hop}"] = redirect(f"/{hop + 1}")
    net.site.pages["/5"] = answer(b"there")
    page = await net.fetcher().fetch(net.url("/0"))
    assert (page.url, page.content) == (net.url("/5"), b"there")
    net.site.pages["/5"] = redirect("/6")
    net.site.pages["/6"] = answer(b"too far")
    assert (await fails(net, "redirect_limit", net.url("/0"))).status == 302


async def test_a_redirect_in_circles_ends(net):
    net.site.pages["/"] = redirect("/")
    await fails(net, "redirect_limit")
    assert net.site.connections == 6


async def test_a_redirect_to_nowhere_is_a_failure(net):
    net.site.pages["/"] = answer(status=302)
    assert (await fails(net, "fetch_failed")).status == 302


@pytest.mark.parametrize("status", [204, 206, 300, 304, 400, 401, 403, 404, 407, 410, 429, 500, 503, 599])
async def test_an_answer_that_is_no_page_is_a_failure_with_its_status(net, status):
    net.site.pages["/"] = answer(status=status)
    assert (await fails(net, "fetch_failed")).status == status


@pytest.mark.parametrize(
    "content_type",
    [
        "application/pdf",
        "text/html",
        "application/xhtml+xml",
        "text/plain",
        "text/markdown",
        "application/json",
        "application/ld+json",
        DOCX,
    ],
)
async def test_types_that_can_be_read_are_fetched(net, content_type):
    net.site.pages["/"] = answer(b"hello", f"{content_type.upper()} ;x=y")
    assert (await net.fetcher().fetch(net.url())).content_type == content_type


@pytest.mark.parametrize(
    ("content_type", "told"),
    [
        ("image/png", "image/png"),
        ("application/octet-stream", "application/octet-stream"),
        ("application/zip", "application/zip"),
        ("text/html, image/png", "unknown"),
        ("", "unknown"),
        ("nonsense", "unknown"),
        ("<script>/+json", "unknown"),
        ("+json", "unknown"),
    ],
)
async def test_other_types_are_refused_by_name_before_their_body(net, content_type, told):
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode()
    net.site.pages["/"] = drip(head, then=b"x")
    failure = await fails(net, f"unsupported_content_type: {told}")
    assert failure.status == 200


async def test_a_page_of_the_limit_is_fetched_and_a_byte_more_is_not(net):
    net.site.pages["/"] = answer(b"x" * 1000)
    assert len((await net.fetcher(max_bytes=1000).fetch(net.url())).content) == 1000
    net.site.pages["/"] = answer(b"x" * 1001)
    failure = await fails(net, "too_large", max_bytes=1000)
    assert "1,000 bytes" in failure.message


async def test_a_length_over_the_limit_is_not_waited_for(net):
    net.site.pages["/"] = drip(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999999999\r\n\r\n", then=b"x", pause=1
    )
    await fails(net, "too_large")


@pytest.mark.parametrize("head", ["", "Transfer-Encoding: chunked\r\n"])
async def test_a_body_without_end_is_cut_off(net, head):
    chunk = b"x" * 60_000
    framed = b"%x\r\n%b\r\n" % (len(chunk), chunk) if head else chunk
    net.site.pages["/"] = drip(
        f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{head}\r\n".encode(), then=framed, pause=0
    )
    await fails(net, "too_large", max_bytes=1_000_000)


def bomb(encoding, size):
    if encoding == "gzip":
        return gzip.compress(bytes(size))
    if encoding == "raw":
        raw = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        return raw.compress(bytes(size)) + raw.flush()
    if encoding == "members":
        return gzip.compress(bytes(size // 100)) * 100
    return zlib.compress(bytes(size), 9)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw", "members"])
async def test_a_compressed_page_is_limited_by_its_unpacked_size(net, encoding):
    named = {"raw": "deflate", "members": "gzip"}.get(encoding, encoding)
    net.site.pages["/"] = answer(bomb(encoding, 100_000_000), Content_Encoding=named)
    tracemalloc.start()
    try:
        await fails(net, "too_large", max_bytes=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw"])
async def test_compressed_pages_are_unfolded(net, encoding):
    named = {"raw": "deflate"}.get(encoding, encoding)
    net.site.pages["/"] = answer(bomb(encoding, 100_000), Content_Encoding=named)
    assert (await net.fetcher().fetch(net.url())).content == bytes(100_000)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "x-gzip", "nonsense"])
async def test_compressions_that_were_not_asked_for_are_refused(net, encoding):
    net.site.pages["/"] = answer(gzip.compress(gzip.compress(b"hello")), Content_Encoding=encoding)
    await fails(net, "fetch_failed")


@pytest.mark.parametrize("body", [b"no gzip at all", gzip.compress(b"hello", mtime=0)[:10] + b"\xff" * 40])
async def test_a_damaged_compression_is_a_failure(net, body):
    net.site.pages["/"] = answer(body, Content_Encoding="gzip")
    await fails(net, "fetch_failed")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 10_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
    ],
    ids=lambda raw: ascii(raw[:60]),
)
async def test_an_answer_that_is_not_http_is_a_failure(net, raw):
    net.site.pages["/"] = raw
    failure = await fails(net, "fetch_failed")
    assert STAND_IN not in failure.message


@pytest.mark.parametrize(
    "page",
    [
        drip(then=b"H", pause=0.5),
        drip(b"HTTP/1.1 200 OK\r\n", then=b"X: x\r\n", pause=0.1),
        drip(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", then=b"x", pause=0.05),
        drip(then=b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.05),
        drip(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 1000\r\n\r\n", pause=0.05),
    ],
    ids=["no status", "endless headers", "slow body", "endless interim answers", "redirects without pause"],
)
async def test_a_site_that_takes_its_time_is_left(net, page):
    net.site.pages["/"] = page
    with pytest.raises(FetchFailed) as failure:
        await net.fetcher(timeout=0.3, max_redirects=10**6).fetch(net.url())
    assert failure.value.reason == "timeout"


async def test_a_name_that_is_never_resolved_is_left(net):
    class Silent:
        async def addresses(self, name):
            await asyncio.Event().wait()

        async def close(self):
            pass

    await fails(net, "timeout", resolver=Silent(), timeout=0.05)


@pytest.mark.parametrize("answers", [{}, {"public.example": [[]]}])
async def test_a_name_without_address_is_a_failure(net, answers):
    net.resolver.answers = answers
    assert (await fails(net, "fetch_failed")).status is None


async def test_a_site_that_does_not_listen_is_a_failure_without_its_address(net):
    await net.site.stop()
    failure = await fails(net, "fetch_failed")
    assert STAND_IN not in failure.message
    assert failure.url == net.url()


async def test_an_unprintable_url_is_escaped(net):
    failure = await fails(net, "ssrf_blocked", "http://public.example/\ud800")
    assert failure.url == "http://public.example/?"


async def test_five_pages_are_fetched_at_a_time(net):
    together, most = 0, 0
    full = asyncio.Event()

    async def page(writer):
        nonlocal together, most
        together += 1
        most = max(most, together)
        if together == 5:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        together -= 1
        writer.write(answer(b"hello"))

    net.site.pages["/"] = page
    fetching = net.fetcher()
    pages = await asyncio.gather(*(fetching.fetch(net.url(), workspace=f"w{n % 2}") for n in range(20)))
    assert len(pages) == 20
    assert most == 5


async def test_waiting_for_a_turn_is_limited_and_in_order(net):
    open_gate, served = asyncio.Event(), []

    def gated(path):
        async def page(writer):
            served.append(path)
            await open_gate.wait()
            writer.write(answer(b"hello"))

        return page

    net.site.pages |= {path: gated(path) for path in ("/first", "/second", "/third")}
    patient, hasty = net.fetcher(parallel=1), net.fetcher(parallel=1, timeout=0.2)
    hasty._turns = patient._turns  # the same turns, with less patience
    fetches = [asyncio.create_task(patient.fetch(net.url("/first")))]
    while not served:
        await asyncio.sleep(0.01)
    with pytest.raises(FetchFailed) as failure:
        async with asyncio.timeout(5):
            await hasty.fetch(net.url("/never"))
    assert (failure.value.reason, failure.value.status) == ("timeout", None)
    for path in ("/second", "/third"):
        fetches.append(asyncio.create_task(patient.fetch(net.url(path))))
        await asyncio.sleep(0)
    open_gate.set()
    assert [page.content for page in await asyncio.gather(*fetches)] == [b"hello"] * 3
    assert served == ["/first", "/second", "/third"]


def test_a_fetcher_serves_one_event_loop_after_another():
    async def crowd(fetching):
        return await asyncio.gather(*(fetching.fetch("http://127.0.0.1/") for _ in range(12)), return_exceptions=True)

    fetching = fetcher.GuardedFetcher()
    for _ in range(2):
        assert {type(failure) for failure in asyncio.run(crowd(fetching))} == {FetchFailed}


@pytest.fixture
def certificate(tmp_path):
    """A certificate for public.example that nobody vouches for."""
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=public.example", "-addext", "subjectAltName=DNS:public.example",
        "-keyout", tmp_path / "key.pem", "-out", tmp_path / "certificate.pem",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
async def tls_site(net, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    site = Site(STAND_IN)
    site.names = []
    context.sni_callback = lambda _socket, name, _context: site.names.append(name)
    site.default = answer(SECRET)
    await site.start(ssl=context)
    yield site
    await site.stop()


async def test_an_untrusted_certificate_is_refused(net, tls_site):
    failure = await fails(net, "fetch_failed", f"https://public.example:{tls_site.port}/")
    assert "certificate" in failure.message
    assert tls_site.requests == []


async def test_certificates_are_checked_against_the_name_not_the_address(net, tls_site, certificate, monkeypatch):
    trusting = ssl.create_default_context(cafile=str(certificate / "certificate.pem"))
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
    page = await net.fetcher().fetch(f"https://public.example:{tls_site.port}/")
    assert page.content == SECRET
    assert tls_site.names == ["public.example"]
    net.resolver.answers["other.example"] = [[STAND_IN]]
    failure = await fails(net, "fetch_failed", f"https://other.example:{tls_site.port}/")
    assert "certificate" in failure.message


async def test_https_to_a_site_without_tls_is_a_failure(net):
    async def serve(_reader, writer):
        writer.write(answer(SECRET))
        await writer.drain()
        writer.close()  # from Python 3.12 on, leaving the server's block waits for its connections to close

    async with await asyncio.start_server(serve, STAND_IN) as server:
        port = server.sockets[0].getsockname()[1]
        failure = await fails(net, "fetch_failed", f"https://public.example:{port}/")
    assert "TLS" in failure.message


async def test_the_operating_system_is_asked_for_names_in_threads_that_can_be_given_back():
    resolver = SystemResolver()
    assert {parse_address(address) is not None for address in await resolver.addresses("localhost")} == {True}
    with pytest.raises(OSError, match="name"):
        await resolver.addresses("a" * 64 + ".example")
    await resolver.close()
    assert await resolver.addresses("127.0.0.1") == ["127.0.0.1"]
    await resolver.close()
    await resolver.close()
