"""Sessions of aiohttp with one host."""

from typing import Any

import aiohttp

from cragside.domain.forward_proxy import signed_proxy


def session_with(url: str, **options: Any) -> aiohttp.ClientSession:
    """A session that keeps no cookie and takes the proxy that the environment has for `url`.

    `options` are those of `aiohttp.ClientSession`.
    """
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), proxy=signed_proxy(url), **options)
