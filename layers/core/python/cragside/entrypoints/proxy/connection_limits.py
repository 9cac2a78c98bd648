"""What a client's connection may take: time, bytes and room."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What clients are granted. Times are in seconds.

    A server holds `most` connections. It does not use `spare` of them for requests other than `/healthz`. A request's
    head has to be complete in `head_seconds` and has at most `head_bytes` and `most_headers`. Of its body at least
    `body_bytes` have to come in each `body_seconds`. A client may be idle for `keep_alive_seconds` between an answer
    and the next request: chat clients pause for longer than uvicorn's 5 seconds. It may take none of an answer for
    `stall_seconds`, and may leave a closed connection open for `close_seconds`.
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
    check_seconds: float = 1
