import pytest

from cragside.domain.addresses import Nearness, nearness

MACHINE, NETWORK, CUSTOMARY, PUBLIC = Nearness
HOSTS = {
    MACHINE: (
        "localhost", "LOCALHOST", "localhost.", "app.localhost", "127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1",
        "::ffff:127.0.0.1", "127.0.0.1.",
    ),
    NETWORK: (
        "host.docker.internal", "HOST.Docker.Internal.", "gateway.containers.internal", "metadata.google.internal",
        "mymac.local", "my-mac.fritz.local", "here.example.com", "HERE.example.com.", "192.168.1.20", "10.0.0.1",
        "172.17.0.1", "100.100.1.2", "169.254.1.1", "0.0.0.0", "::", "::2", "fd00::1", "fe80::1", "fe80::1%25eth0",
        "::ffff:10.1.2.3", "224.0.0.1",
    ),
    CUSTOMARY: (
        "nas", "ollama", "local", "internal", "evillocal", "evil-internal", "evillocalhost", "GPU.LAN", "rag.lan",
        "gpu.home.arpa.", "wiki.corp", "fritz.home", "x.intranet", "x.private", "kubernetes.default.svc",
        "hidden.onion", "localhost.localdomain", "metadata.packet.net", "127.1", "2130706433", "0x7f000001",
        "192.168.1", "0xc0a80114", "3232235796", "192.168.1.020", "",
    ),
    PUBLIC: (
        "models.example.com", "8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "134744072", "localhost.example.com",
        "127.0.0.1.nip.io", "192-168-1-20.sslip.io", "mymac.local.example.com", "host.docker.internal.example.com",
        "evil.here.example.com", "evilhere.example.com", "lan.example", "home.arpa.example", "\xff.\xfe",
        "a." * 40_000 + "example", "1" * 40_000 + ".example",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("host", "near"), [(host, near) for near, hosts in HOSTS.items() for host in hosts])
def test_each_host_has_one_nearness(monkeypatch, host, near):
    monkeypatch.setattr("socket.gethostname", lambda: "Here.example.com")
    assert nearness(host) is near
