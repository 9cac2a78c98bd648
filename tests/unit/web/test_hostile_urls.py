"""A table of URLs, names and redirects that must not be fetched: none reaches the victim or opens another socket."""

import pytest

from cragside.adapters.web import guard
from cragside.ports.files import FetchFailed
from tests.unit.web.loopback_sites import SECRET, STAND_IN, VICTIM, redirect

pytestmark = pytest.mark.allow_hosts([VICTIM, STAND_IN])

PRIVATE = "is not at a public address"
METADATA = "metadata service"
MALFORMED = "malformed"
LOCAL = "name of a local network"
CREDENTIALS = "credentials"
SCHEME = "Only http:// and https://"
ABSOLUTE = "has to begin with http:// or https://"
UNSAFE = "blanks, backslashes or control characters"
ENCODED = "percent-encoded or has a zone"
PORT = "Port"
PORT_NUMBER = "must be a number from 1 to 65535"
UNUSABLE = "an address that cannot be used"

NOT_PUBLIC_4 = [
    "0.0.0.0", "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "127.0.0.1", "127.0.0.53", "127.1.1.1", "127.255.255.255", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.9",
    "192.0.0.10", "192.0.0.171", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.1",
    "192.168.255.255", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.254", "255.255.255.255",
]  # fmt: skip
METADATA_4 = [
    "169.254.169.254", "169.254.0.1", "169.254.170.2", "169.254.170.23", "169.254.42.42", "169.254.0.23",
    "169.254.169.253", "169.254.169.123", "100.100.100.200", "168.63.129.16", "192.0.0.192",
]  # fmt: skip
NOT_PUBLIC_6 = [
    "::", "::1", "::2", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8",
    "0:0:0:0:0:ffff:7f00:0001", "0000:0000:0000:0000:0000:0000:0000:0001", "::127.0.0.1", "::7f00:1",
    "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1",
    "64:ff9b:1:ffff::7f00:1", "100::1", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1",
    "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:7f00:0001::1", "2002:808:808::1",
    "2620:4f:8000::1", "3ffe::1", "3fff::1", "3fff:fff:ffff::1", "4000::1", "5f00::1", "fc00::1", "fd00::1",
    "fdff:ffff:ffff:ffff::1", "fec0::1", "feff::1", "ff02::1", "ff05::1:3", "ffff:ffff::1",
    "2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:10.0.0.1",
]  # fmt: skip
# Such services, then their IPv4 addresses in IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
METADATA_6 = [
    "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe", "fe80::1", "FE80::A",
    "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::FFFF:169.254.170.2", "::ffff:100.100.100.200", "::169.254.169.254",
    "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::168.63.129.16", "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0", "2002:a9fe:a9fe::",
    "2002:c000:c0::1", "2001:0:a9fe:a9fe::1", "2001::5601:5601", "2606:4700::5efe:169.254.169.254",
    "fd12::200:5efe:100.100.100.200",
]  # fmt: skip

# Forms that some resolver or parser takes for 127.0.0.1 or 169.254.169.254.
MALFORMED_HOSTS = [
    "2130706433", "2852039166", "0x7f000001", "0X7F000001", "017700000001", "0x7f.1", "0x7f.0.0.1", "0x7f.0x0.0x0.0x1",
    "0177.0.0.1", "0177.0.0.01", "0177.0.1", "127.1", "127.0.1", "127.0.0.01", "127.0.0.001", "0127.0.0.1",
    "127.0.0.0x1", "127.0.0.1.1", "127.0.0.256", "127.0.0", "127", "0", "0x0", "00000000", "169.254.43518",
    "0xa9fea9fe", "0251.0376.0251.0376", "127.0.0.1.", "127.0.0.1..", "2130706433.", "127.1.", "1.127.1",
    "4294967297", "425.510.425.510", "0x", "0xg", "１２７.１", "①②⑦.1", "0ⅹ7f.1", "127。1", "127．0．1",
    "127｡1", "٠x7f.1", "[127.0.0.1]", "[0x7f000001]", "[2130706433]", "[::1", "::1]", "::1", "[::1]]", "[[::1]]",
    "[]", "[:]", "[::1]x", "x[::1]", "[::1].example", "[v1.fe80::1]", "[vF.x]", "[localhost]", "[::ffff:127.1]",
    "[::g]", "[1::2::3]", "[::１]", "[::1.2.3]",
    "..", ".", ".example.com", "example..com", "example.com..", "-", "-a.example", "a-.example", "*.example.com",
    "exam!ple.com", "exa$mple.com", "a,b.example", "a'b.example", 'a"b.example', "a<b.example", "a|b.example",
    "a^b.example", "a`b.example", "{a}.example", "a;b.example", "a=b.example", "a&b.example", "a+b.example",
    "~.example", "(a).example", "ex\u00adample.com", "local\u200dhost", "local\u2060host", "\u202elocalhost",
    "127.0.0.1\u3002", "a" * 64 + ".example", "a." * 126 + "toolong", "l" * 300, "xn--" + "a" * 80 + ".example",
    "example.com:80:80", "127.0.0.1:80:80",
]  # fmt: skip
LOCAL_NAMES = [
    "localhost", "LOCALHOST", "LocalHost", "localhost.", "ⓛocalhost", "ｌocalhost", "loc𝐚lhost", "localhost。",
    "a.localhost", "a.b.localhost.", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback",
    "metadata", "metadata.google.internal", "METADATA.google.internal.", "metadata.goog.internal", "instance-data",
    "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com",
    "ip-10-0-0-1.ec2.internal", "kubernetes", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
    "host.docker.internal", "gateway.docker.internal", "router.lan", "nas.home.arpa", "printer.local", "wiki.corp",
    "fritz.home", "x.intranet", "x.private", "ollama", "neo4j", "postgres", "searxng", "redis", "hidden.onion",
]  # fmt: skip

WHOLE_URLS = [
    # schemes
    *((f"{scheme}://{VICTIM}:{{port}}/", SCHEME) for scheme in (
        "file", "ftp", "ftps", "gopher", "dict", "ldap", "ldaps", "tftp", "sftp", "ssh", "telnet", "ws", "wss", "jar",
        "netdoc", "smb", "unix", "http+unix", "view-source", "feed", "httpx", "xhttp", "s3", "git", "redis",
    )),
    ("file:///etc/passwd", SCHEME),
    ("javascript:alert(1)", SCHEME),
    ("data:text/html,<p>hello", SCHEME),
    ("about:blank", SCHEME),
    ("mailto:someone@public.example", SCHEME),
    ("blob:http://127.0.0.1:{port}/x", SCHEME),
    ("url:http://127.0.0.1:{port}/", SCHEME),
    ("jar:http://127.0.0.1:{port}/!/", SCHEME),
    ("http:127.0.0.1:{port}/", SCHEME),
    ("http:/127.0.0.1:{port}/", SCHEME),
    ("http:///127.0.0.1:{port}/", SCHEME),
    ("http:////127.0.0.1:{port}/", SCHEME),
    ("http://", SCHEME),
    ("http://?x", SCHEME),
    ("http://#x", SCHEME),
    ("https:", SCHEME),
    ("//127.0.0.1:{port}/", ABSOLUTE),
    ("/etc/passwd", ABSOLUTE),
    ("127.0.0.1", ABSOLUTE),
    ("[::1]:80/", ABSOLUTE),
    ("", ABSOLUTE),
    ("?http://127.0.0.1/", ABSOLUTE),
    ("public.example", ABSOLUTE),
    # credentials, and what looks like a host but is one's name
    ("http://user@127.0.0.1:{port}/", CREDENTIALS),
    ("http://user:password@127.0.0.1:{port}/", CREDENTIALS),
    ("http://public.example@127.0.0.1:{port}/", CREDENTIALS),
    ("http://public.example:80@127.0.0.1:{port}/", CREDENTIALS),
    ("http://public.example&@127.0.0.1:{port}#@public.example/", CREDENTIALS),
    ("http://public.example%23@127.0.0.1:{port}/", CREDENTIALS),
    ("http://public.example;@127.0.0.1:{port}/", CREDENTIALS),
    ("http://127.0.0.1:{port}@public.example/", CREDENTIALS),
    ("http://a@b@127.0.0.1:{port}/", CREDENTIALS),
    ("http://@127.0.0.1:{port}/", CREDENTIALS),
    ("http://:@127.0.0.1:{port}/", CREDENTIALS),
    ("http://:password@public.example:{port}/", CREDENTIALS),
    ("https://user@public.example/", CREDENTIALS),
    ("http://[::1]@127.0.0.1:{port}/", CREDENTIALS),
    # characters that parsers drop or change
    ("http://127.0.0.1:{port}\\@public.example/", UNSAFE),
    ("http:\\\\127.0.0.1:{port}/", UNSAFE),
    ("http:/\\127.0.0.1:{port}/", UNSAFE),
    ("http://public.example\\.127.0.0.1:{port}/", UNSAFE),
    (" http://127.0.0.1:{port}/", UNSAFE),
    ("http://127.0.0.1:{port}/ ", UNSAFE),
    ("http://127.0.0.1 :{port}/", UNSAFE),
    ("http://127.0.0.1:{port} public.example/", UNSAFE),
    ("http://public.example:{port}/\r\nHost: 127.0.0.1", UNSAFE),
    ("http://public.example\r\n@127.0.0.1:{port}/", UNSAFE),
    ("http://127.0.\t0.1:{port}/", UNSAFE),
    ("ht\ntp://127.0.0.1:{port}/", UNSAFE),
    ("\x00http://127.0.0.1:{port}/", UNSAFE),
    ("http://127.0.0.1\x00.public.example:{port}/", UNSAFE),
    ("http://127.0.0.1:{port}/\x7f", UNSAFE),
    ("http://127.0.0.1:{port}/\x85", UNSAFE),
    ("http://127.0.0.1\u00a0:{port}/", UNSAFE),
    ("http://127.0.0.1\u2028:{port}/", UNSAFE),
    ("\ufeffhttp://127.0.0.1:{port}/", UNSAFE),
    ("http://\ud800.example:{port}/", UNSAFE),
    ("http://public.example:{port}/\udfff", UNSAFE),
    # hosts that are encoded, or have a zone
    ("http://%31%32%37.0.0.1:{port}/", ENCODED),
    ("http://%6c%6f%63%61%6c%68%6f%73%74:{port}/", ENCODED),
    ("http://127%2e0%2e0%2e1:{port}/", ENCODED),
    ("http://127.0.0.1%2f.public.example:{port}/", ENCODED),
    ("http://127.0.0.1%00.public.example:{port}/", ENCODED),
    ("http://127.0.0.1%23.public.example:{port}/", ENCODED),
    ("http://public.example%5c127.0.0.1:{port}/", ENCODED),
    ("http://[fe80::1%25eth0]:{port}/", ENCODED),
    ("http://[fe80::1%eth0]:{port}/", ENCODED),
    ("http://[::1%25lo]:{port}/", ENCODED),
    ("http://[::1%251]:{port}/", ENCODED),
    ("http://[%3a%3a1]:{port}/", ENCODED),
    ("http://127.0.0.1:%38%30/", ENCODED),
    # ports
    *((f"http://public.example:{port}/", PORT) for port in (
        1, 7, 21, 22, 23, 25, 53, 110, 143, 445, 587, 993, 2375, 3306, 3389, 5432, 6379, 7687, 9000, 9200, 11211, 11434,
        27017, 65535,
    )),
    *((f"http://public.example:{port}/", PORT_NUMBER) for port in (
        "0", "65536", "99999999", "-80", "+80", "80a", "٨٠", "８０", "0x50", "8e1", "",
    ) if port),
    # lengths
    ("http://127.0.0.1:{port}/" + "a" * 5000, "longer than"),
    ("http://" + "a" * 100_000, "longer than"),
    # the plain ones, in the forms that clients write
    ("HTTP://127.0.0.1:{port}/", PRIVATE),
    ("https://127.0.0.1:{port}/", PRIVATE),
    ("http://127.0.0.1:{port}", PRIVATE),
    ("http://127.0.0.1:{port}?x", PRIVATE),
    ("http://127.0.0.1:{port}#@public.example/", PRIVATE),
    ("http://127.0.0.1:{port}/?@public.example", PRIVATE),
    ("http://127.0.0.1:000{port}/", PRIVATE),
    ("http://１２７.0.0.1:{port}/", PRIVATE),
    ("http://127。0。0。1:{port}/", PRIVATE),
    ("http://127．0．0．1:{port}/", PRIVATE),
    ("http://①②⑦.⓪.⓪.①:{port}/", PRIVATE),
    ("http://𝟏𝟐𝟕.𝟎.𝟎.𝟏:{port}/", PRIVATE),
]  # fmt: skip

# What a name answers with, in the order of the questions; the page is asked for as http://evil.example.
ANSWERS = [
    *(([address], PRIVATE) for address in NOT_PUBLIC_4),
    *(([address], METADATA) for address in METADATA_4),
    *(([address], PRIVATE) for address in NOT_PUBLIC_6),
    *(([address], METADATA) for address in METADATA_6),
    (["8.8.8.8", VICTIM], PRIVATE),
    ([VICTIM, "8.8.8.8"], PRIVATE),
    (["8.8.8.8", "8.8.4.4", "1.1.1.1", "10.0.0.1"], PRIVATE),
    (["2606:4700::1111", "::1"], PRIVATE),
    (["8.8.8.8", "::1"], PRIVATE),
    (["2606:4700::1111", VICTIM], PRIVATE),
    (["8.8.8.8", "169.254.169.254"], METADATA),
    ([STAND_IN, VICTIM], PRIVATE),
    (["fe80::1%eth0"], UNUSABLE),
    (["::1%lo"], UNUSABLE),
    (["8.8.8.8", "fe80::1%2"], UNUSABLE),
    (["0x7f.1"], UNUSABLE),
    (["2130706433"], UNUSABLE),
    (["127.1"], UNUSABLE),
    (["localhost"], UNUSABLE),
    ([""], UNUSABLE),
]

LOCATIONS = [
    *((f"http://{address}:{{port}}/", PRIVATE) for address in NOT_PUBLIC_4[::4]),
    *((f"http://{address}/latest/meta-data/", METADATA) for address in METADATA_4),
    *((f"http://[{address}]:{{port}}/", PRIVATE) for address in NOT_PUBLIC_6[::4]),
    *((f"http://[{address}]/", METADATA) for address in METADATA_6),
    *((f"http://{host}:{{port}}/", MALFORMED) for host in MALFORMED_HOSTS[:30] if host.isascii()),
    *((f"http://{name}:{{port}}/", LOCAL) for name in LOCAL_NAMES[::4]),
    ("//127.0.0.1:{port}/", PRIVATE),
    ("//localhost:{port}/", LOCAL),
    ("//user@127.0.0.1:{port}/", CREDENTIALS),
    ("//2130706433:{port}/", MALFORMED),
    ("http://user:password@public.example:{port}/", CREDENTIALS),
    ("http://public.example@127.0.0.1:{port}/", CREDENTIALS),
    ("\\\\127.0.0.1:{port}\\", UNSAFE),
    ("/\\127.0.0.1:{port}/", UNSAFE),
    ("http:\\\\127.0.0.1:{port}/", UNSAFE),
    ("http://127.0.0.1:{port} /", UNSAFE),
    ("http:127.0.0.1:{port}/", SCHEME),
    ("http:///127.0.0.1:{port}/", SCHEME),
    ("file:///etc/passwd", SCHEME),
    ("gopher://127.0.0.1:{port}/_GET", SCHEME),
    ("javascript:alert(1)", SCHEME),
    ("data:text/plain,hello", SCHEME),
    ("ftp://127.0.0.1/", SCHEME),
    ("http://other.example:22/", PORT),
    ("http://public.example:99999/", PORT_NUMBER),
    ("http://%31%32%37.0.0.1:{port}/", ENCODED),
    ("http://evil.example:{port}/", PRIVATE),
    ("http://mixed.example:{port}/", PRIVATE),
    ("/\udcff\udcfe", UNSAFE),
    ("http://\udcff.example/", UNSAFE),
    ("/" + "a" * 5000, "longer than"),
]

URLS = [
    *((f"http://{address}:{{port}}/", PRIVATE) for address in NOT_PUBLIC_4),
    *((f"http://{address}/latest/meta-data/", METADATA) for address in METADATA_4),
    *((f"http://[{address}]:{{port}}/", PRIVATE) for address in NOT_PUBLIC_6),
    *((f"http://[{address}]:{{port}}/", METADATA) for address in METADATA_6),
    *((f"http://{host}:{{port}}/", "") for host in MALFORMED_HOSTS),
    *((f"http://{name}:{{port}}/", LOCAL) for name in LOCAL_NAMES),
    *WHOLE_URLS,
]


def test_the_table_is_long_enough():
    cases = {*(url for url, _ in URLS), *(tuple(found) for found, _ in ANSWERS), *(f"-> {to}" for to, _ in LOCATIONS)}
    assert len(cases) == len(URLS) + len(ANSWERS) + len(LOCATIONS) > 600


async def refused(net, url, *, allow=()):
    with pytest.raises(FetchFailed) as failure:
        await net.fetcher(allow=allow).fetch(url)
    assert failure.value.reason == "ssrf_blocked"
    assert net.victim.connections == 0
    return failure.value


@pytest.mark.attack("hostile addresses")
@pytest.mark.parametrize(("url", "says"), URLS, ids=ascii)
async def test_a_hostile_url_opens_no_socket(net, url, says):
    failure = await refused(net, url.replace("{port}", str(net.port)))
    assert says in failure.message
    assert failure.status is None
    assert net.watch == []
    assert not net.resolver.asked


@pytest.mark.attack("hostile addresses")
@pytest.mark.parametrize(("addresses", "says"), ANSWERS, ids=str)
async def test_a_name_with_a_hostile_address_opens_no_socket(net, addresses, says):
    net.resolver.answers["evil.example"] = [addresses]
    failure = await refused(net, net.url(host="evil.example"))
    assert says in failure.message
    assert not any(address in failure.message for address in addresses if address)
    assert net.watch == []
    assert net.resolver.asked == {"evil.example": 1}


@pytest.mark.attack("hostile redirects")
@pytest.mark.parametrize(("location", "says"), LOCATIONS, ids=ascii)
async def test_a_redirect_is_checked_like_the_first_url(net, location, says):
    net.resolver.answers |= {"evil.example": [[VICTIM]], "mixed.example": [["8.8.8.8", VICTIM]]}
    net.site.pages["/"] = redirect(location.replace("{port}", str(net.port)))
    failure = await refused(net, net.url(), allow=["public.example"])
    assert says in failure.message
    assert failure.status == 302
    assert net.connected == {STAND_IN}
    assert net.site.connections == 1


@pytest.mark.parametrize("name", LOCAL_NAMES[::3], ids=ascii)
async def test_an_allowed_range_does_not_make_local_names_public(net, name):
    net.resolver.answers = {name.lower().rstrip(".") if name.isascii() else "localhost": [["8.8.8.8"]]}
    failure = await refused(net, f"http://{name}:{net.port}/", allow=[STAND_IN])
    assert LOCAL in failure.message
    assert net.watch == []


@pytest.mark.attack("hostile redirects")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_every_kind_of_redirect_is_checked(net, status):
    net.site.pages["/"] = redirect(f"http://{VICTIM}:{net.port}/", status)
    await refused(net, net.url(), allow=[STAND_IN])
    assert net.connected == {STAND_IN}


@pytest.mark.attack("hostile redirects")
@pytest.mark.parametrize("hops", range(1, 6))
async def test_the_last_of_several_redirects_is_checked(net, hops):
    for hop in range(1, hops):
        net.site.pages[f"/{hop}"] = redirect(f"/{hop + 1}")
    net.site.pages[f"/{hops}"] = redirect(f"http://{VICTIM}:{net.port}/")
    await refused(net, net.url("/1"), allow=[STAND_IN])
    assert net.site.connections == hops


async def test_the_checked_address_is_the_connected_address(net):
    net.resolver.answers["rebound.example"] = [[STAND_IN], [VICTIM]]
    net.site.pages["/"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nsite"
    page = await net.fetcher().fetch(net.url(host="rebound.example"))
    assert page.content == b"site"
    assert net.resolver.asked == {"rebound.example": 1}
    assert net.connected == {STAND_IN}


async def test_a_name_that_changes_its_address_between_redirects_is_checked_again(net):
    net.resolver.answers["rebound.example"] = [[STAND_IN], [VICTIM]]
    net.site.pages["/"] = redirect("/secret")
    await refused(net, net.url(host="rebound.example"), allow=[STAND_IN])
    assert net.resolver.asked == {"rebound.example": 2}
    assert net.connected == {STAND_IN}


async def test_a_connection_that_fails_does_not_ask_for_the_name_again(net):
    await net.site.stop()
    net.resolver.answers["rebound.example"] = [[STAND_IN], [VICTIM]]
    with pytest.raises(FetchFailed) as failure:
        await net.fetcher().fetch(net.url(host="rebound.example"))
    assert failure.value.reason == "fetch_failed"
    assert net.victim.connections == 0
    assert net.connected == {STAND_IN}


async def test_a_socket_is_only_made_to_a_checked_address(net, monkeypatch):
    # As if the client read an address where the guard had read a name.
    monkeypatch.setattr("aiohttp.connector.is_ip_address", lambda host: True)
    monkeypatch.setattr("aiohttp.connector.is_canonical_ipv4_address", lambda host: True)
    net.resolver.answers["evil.example"] = [[STAND_IN]]
    with pytest.raises(FetchFailed):
        await net.fetcher().fetch(net.url(host="evil.example"))
    assert net.watch == []


async def test_without_the_rules_for_addresses_the_victim_is_reached(net, monkeypatch):
    monkeypatch.setattr(guard, "is_public", lambda address: True)
    net.resolver.answers["evil.example"] = [[VICTIM]]
    page = await net.fetcher(allow=()).fetch(net.url(host="evil.example"))
    assert page.content == SECRET
    assert net.victim.connections == 1


@pytest.mark.attack("hostile addresses")
@pytest.mark.parametrize("address", [*METADATA_4, *METADATA_6])
async def test_metadata_services_stay_out_of_reach_whatever_is_allowed(net, address):
    net.resolver.answers["evil.example"] = [[address]]
    allow = ["0.0.0.0/0", "::/0", "evil.example"]
    literal = f"[{address}]" if ":" in address else address
    assert METADATA in (await refused(net, f"http://{literal}/", allow=allow)).message
    assert METADATA in (await refused(net, "http://evil.example/", allow=allow)).message
    assert net.watch == []


async def test_neither_proxies_nor_passwords_of_the_environment_are_used(net, monkeypatch, tmp_path):
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(variable, f"http://{VICTIM}:{net.port}")
    (tmp_path / "netrc").write_text("machine public.example login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    net.site.pages["/"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nsite"
    assert (await net.fetcher().fetch(net.url())).content == b"site"
    assert b"authorization" not in net.site.requests[0].lower()
    assert net.victim.connections == 0
