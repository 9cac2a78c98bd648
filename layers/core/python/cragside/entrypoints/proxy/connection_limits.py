"""Limits for clients' connections."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits for clients' connections. Times are in seconds.

    A server holds `most` connections, `spare` of them only for `/healthz`. A request's head must be complete within
    `head_seconds` and has at most `head_bytes` and `most_headers`. Of its body, at least `body_bytes` must arrive in
    each `body_seconds`. A client may be idle for `keep_alive_seconds` after an answer: chat clients pause for longer
    than uvicorn's 5 seconds. It may read nothing of an answer for `stall_seconds`, and may keep a closed connection
    open for `close_seconds`. One that has closed its own side counts as gone if its answer does not begin within
    `half_closed_seconds`.
    """

    most: int
    spare: int = 32
    head_seconds: float = 15
    head_bytes: int = 64 * 1024
    most_headers: int = 200
    body_seconds: float = 30
    body_bytes: int = 4096
    keep_alive_seconds: float = 75
    stall_seconds: float = 120
    close_seconds: float = 15
    half_closed_seconds: float = 2
    check_seconds: float = 1

    @property
    def too_large(self) -> str:
        """What a client is told whose request's head is too large."""
        return (
            f"A request's head has at most {self.head_bytes:,} bytes and {self.most_headers} headers. "
            "Send fewer or shorter headers."
        )
