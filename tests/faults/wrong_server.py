"""Servers that stand where another one is expected: they refuse in its protocol, or talk nonsense."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# Answers one connection, which is closed afterwards.
Answer = Callable[[socket.socket], None]

_NONSENSE = bytes(range(255, 0, -3)) * 4
_BOLT_5_4 = b"\x00\x00\x04\x05"


@dataclass(frozen=True)
class Protocol:
    """Answer as a wrong server: `refuse` is an error of the protocol, `babble` breaks the protocol."""

    refuse: Answer
    babble: Answer


def _http(status: str, body: bytes) -> Answer:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def answer(connection: socket.socket) -> None:
        while connection.recv(65536):  # the next request, or the rest of one
            connection.sendall(head + body)

    return answer


def _refuse_postgres(connection: socket.socket) -> None:
    """Return the answer of a PostgreSQL that recovers from a crash."""
    fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is in recovery mode\0\0"
    while asked := connection.recv(65536):
        if asked[4:8] == struct.pack("!I", 80877103):  # for TLS
            connection.sendall(b"N")
            continue
        connection.sendall(b"E" + struct.pack("!I", len(fields) + 4) + fields)
        return


def _refuse_bolt(connection: socket.socket) -> None:
    """Return the answer of a Neo4j whose database is not started."""
    connection.recv(65536)
    connection.sendall(_BOLT_5_4)
    connection.recv(65536)
    code, told = b"Neo.TransientError.General.DatabaseUnavailable", b"The database is not up."
    texts = [b"\x84code", b"\xd0" + bytes([len(code)]) + code, b"\x87message", b"\xd0" + bytes([len(told)]) + told]
    message = b"\xb1\x7f\xa2" + b"".join(texts)
    connection.sendall(struct.pack("!H", len(message)) + message + b"\0\0")
    connection.recv(65536)


def _babble(connection: socket.socket) -> None:
    while connection.recv(65536):
        connection.sendall(_NONSENSE)


HTTP = Protocol(_http("503 Service Unavailable", b'{"error": "busy"}'), _http("200 OK", _NONSENSE))
POSTGRES = Protocol(_refuse_postgres, _babble)
BOLT = Protocol(_refuse_bolt, _babble)


@contextmanager
def wrong_server(answer: Answer) -> Iterator[int]:
    """The port of a server that answers each connection so."""
    listening = socket.create_server(("127.0.0.1", 0))
    open_ones: set[socket.socket] = set()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            answer(connection)
        open_ones.discard(connection)

    def accept() -> None:
        with suppress(OSError):  # it is closed
            while True:
                connection, _ = listening.accept()
                open_ones.add(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listening.getsockname()[1]
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for connection in list(open_ones):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        accepting.join()
