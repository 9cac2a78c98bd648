"""Serves an application below a path, such as `/rag`, for reverse proxies that share a name among services."""

from starlette.types import ASGIApp, Receive, Scope, Send

from cragside.entrypoints.proxy.headers import send_whole


def below(prefix: str | None, app: ASGIApp) -> ASGIApp:
    """`app` at `prefix` as well as at `/`: some reverse proxies remove the prefix, others leave it."""
    if prefix is None:
        return app
    start, raw_start = f"{prefix}/", f"{prefix}/".encode()

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == prefix and scope["method"] in ("GET", "HEAD"):
            # Relative links of our pages need the slash.
            await send_whole(send, 308, [(b"location", raw_start)])
            return
        if scope["type"] == "http" and scope["path"].startswith(start):
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            if raw.startswith(raw_start):  # escaped letters in the prefix are not the prefix
                cut = len(raw_start) - 1
                # In place: the log and the connection's own refusals use the same path.
                scope["path"], scope["raw_path"] = scope["path"][cut:], raw[cut:]
        await app(scope, receive, send)

    return served
