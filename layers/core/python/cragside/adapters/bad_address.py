"""Reading the addresses of databases, and the error of one that cannot be used."""

from urllib.parse import SplitResult, urlsplit

ENCODED = "In user and password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25"

_LONGEST_HOST = 253


class BadAddress(ValueError):
    """An address that does not say where the database is. The message says what to change, and holds no secret."""


def split_address(uri: str, *schemes: str) -> SplitResult:
    """The parts of `SCHEME://USER:PASSWORD@HOST:PORT/...`, with a scheme of these. Raises `BadAddress`."""
    try:
        parts = urlsplit(uri.strip())
    except ValueError:
        raise BadAddress(
            "its host cannot be read. Write an address of IPv6 in brackets, as [::1], and encode letters beyond ASCII."
            f" {ENCODED}, [ as %5B and ] as %5D"
        ) from None
    if parts.scheme not in schemes:
        raise BadAddress(f"begin it with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    # Otherwise a part of the password could be taken for a host or a path and shown in messages.
    if "@" in parts.path or "@" in parts.query or "#" in uri or parts.netloc.count("@") > 1:
        raise BadAddress(f"it cannot be told where the password ends. {ENCODED}")
    check_host(parts.netloc.rpartition("@")[2])
    return parts


def check_host(place: str) -> None:
    """Raise `BadAddress` for a host that no driver can look up. `place` may have a port, or be an IPv6 address."""
    host = place if place.startswith("[") else place.partition(":")[0]
    if any(letter.isspace() or letter in "\\\0" for letter in host):
        raise BadAddress("its host has a blank or a backslash")
    # The path of a Unix socket may be written as a host.
    if not host.lower().startswith("%2f"):
        try:
            longest = len(host.encode("idna"))
        except UnicodeError:
            raise BadAddress("its host has a part that is empty, too long or of letters that no host has") from None
        if longest > _LONGEST_HOST:
            raise BadAddress(f"its host has more than {_LONGEST_HOST} characters")
