"""TLS for connections to PostgreSQL, by libpq's options."""

import ssl
from collections.abc import Mapping
from pathlib import Path

from cragside.adapters.bad_address import BadAddress

_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES = ("sslrootcert", "sslcert", "sslkey")
_SYSTEM = "system"


def tls_of(options: Mapping[str, str]) -> ssl.SSLContext | str:
    """What `asyncpg.connect` takes as `ssl`. Raises `BadAddress`.

    `require` encrypts and does not verify. `verify-ca` verifies the certificate, and `verify-full` the host's name too.
    Both trust the system's authorities if no `sslrootcert` is given, where libpq looks for a file.
    """
    mode = options.get("sslmode", "prefer")
    if mode not in _MODES:
        raise BadAddress(f"sslmode has to be one of {', '.join(_MODES)}")
    verifies = mode.startswith("verify-")
    for name in _FILES:
        if name in options and not Path(options[name]).is_file() and not _is_system(name, options[name]):
            raise BadAddress(f"the file of {name} is not there")
    if "sslrootcert" in options and not verifies:
        raise BadAddress("sslrootcert needs sslmode=verify-full or verify-ca")
    if "sslkey" in options and "sslcert" not in options:
        raise BadAddress("sslkey needs sslcert")
    if "sslcert" in options and not verifies and mode != "require":
        raise BadAddress("sslcert needs sslmode=require, verify-ca or verify-full")
    return _context(mode, options) if verifies or mode == "require" else mode


def _is_system(name: str, value: str) -> bool:
    return name == "sslrootcert" and value == _SYSTEM


def _context(mode: str, options: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    try:
        roots = options.get("sslrootcert", _SYSTEM)
        if mode != "require" and roots == _SYSTEM:
            context.load_default_certs()
        elif mode != "require":
            context.load_verify_locations(roots)
    except (ssl.SSLError, OSError):
        raise BadAddress("the file of sslrootcert holds no certificate that can be read") from None
    try:
        if "sslcert" in options:
            # An empty password: otherwise a key with one would be asked for on the terminal.
            context.load_cert_chain(options["sslcert"], options.get("sslkey"), password="")
    except (ssl.SSLError, OSError):
        raise BadAddress("sslcert and sslkey are no certificate with its key, or the key has a password") from None
    return context
