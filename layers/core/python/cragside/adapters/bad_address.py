"""Reading the addresses of databases, and the error of one that cannot be used."""

from urllib.parse import SplitResult, urlsplit

ENCODED = "In user and password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25"


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
    return parts
