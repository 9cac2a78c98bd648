"""Names of hosts that a local network gives out, none of which is public."""

_LOCAL = (
    "localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa", "svc",
    "onion", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com",
)  # fmt: skip


def is_local_name(host: str) -> bool:
    """Tell if a name in small letters is one of a local network: it has no dot, or such an end."""
    return "." not in host or any(f".{host}".endswith(f".{name}") for name in _LOCAL)
