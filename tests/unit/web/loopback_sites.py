"""A site that may be fetched and one that must not be, on loopback, and a watch over every socket of the process."""

import asyncio
import sys
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable

from cragside.adapters.web.fetcher import GuardedFetcher

VICTIM = "127.0.0.1"
STAND_IN = "127.0.0.2"  # plays the public Internet, which tests have no access to
SECRET = b"the victim's secret"


class Watch(list[tuple[str, object]]):
    """Record the code that opens a socket, without threads that other tests left running."""

    def __init__(self):
        super().__init__()
        self._others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def see(self, event, seen):
        if threading.get_ident() not in self._others:
            self.append((event, seen))


watches: list[Watch] = []


def _audit(event, arguments):
    if watches and event in ("socket.connect", "socket.getaddrinfo"):
        seen = arguments[1] if event == "socket.connect" else arguments[0]
        for watch in watches:
            watch.see(event, seen)


sys.addaudithook(_audit)


def answer(body=b"", content_type="text/plain", status=200, **headers):
    """An HTTP answer as bytes; `_` in a header's name stands for `-`."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def redirect(location, status=302):
    return answer(status=status, Location=location)


class Site:
    """Answers paths with bytes, or with what a coroutine function writes; counts connections and keeps requests."""

    def __init__(self, host):
        self.host = host
        self.connections = 0
        self.requests: list[bytes] = []
        self.pages: dict[str, bytes | Callable[..., Awaitable[None]]] = {}
        self.default = answer(b"nothing here", status=404)

    async def start(self, port=0, **tls):
        self._server = await asyncio.start_server(self._serve, self.host, port, **tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        self._server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(request)
            page = self.pages.get(request.split(b" ")[1].decode(), self.default)
            if isinstance(page, bytes):
                writer.write(page)
                await writer.drain()
            else:
                await page(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class ScriptedResolver:
    """Answers each name from its script, one answer a question; the last one is repeated."""

    def __init__(self, answers: dict[str, list[list[str]]]):
        self.answers = answers
        self.asked: dict[str, int] = defaultdict(int)
        self.closed = False

    async def addresses(self, name: str) -> list[str]:
        self.asked[name] += 1
        if name not in self.answers:
            raise OSError("no such name")
        script = self.answers[name]
        return script[min(self.asked[name], len(script)) - 1]

    async def close(self) -> None:
        self.closed = True


class Net:
    """Both sites on one port, and fetchers for which the stand-in counts as public."""

    def __init__(self, port, site, victim, watch):
        self.port = port
        self.site = site
        self.victim = victim
        self.watch = watch
        self.resolver = ScriptedResolver({"public.example": [[STAND_IN]]})
        self.fetchers: list[GuardedFetcher] = []

    def url(self, path="/", host="public.example"):
        return f"http://{host}:{self.port}{path}"

    def fetcher(self, allow: Iterable[str] = (STAND_IN,), **keywords):
        fetcher = GuardedFetcher(allow=allow, resolver=keywords.pop("resolver", self.resolver), **keywords)
        self.fetchers.append(fetcher)
        return fetcher

    @property
    def connected(self):
        """Return the addresses that sockets of this process reached, and the names that were looked up."""
        return {seen if isinstance(seen, str | bytes) else seen[0] for _, seen in self.watch}
