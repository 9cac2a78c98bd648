"""The child process that parses, within limits. It reads requests from standard input and answers on standard output.

    python -P -m cragside.adapters.documents.child MEMORY_BYTES IDLE_SECONDS KIND

A request is a line of JSON, {"kind", "name", "file_type", "charset", "ocr", "seconds", "size"}, and `size` bytes.
The answer is a line {"size"} and that many bytes of JSON: {"reading": ...}, {"refused": REASON} or {"missing": MODULE}.
"""

import os
import select
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any, BinaryIO

import orjson

from cragside.adapters.documents.kinds import KINDS
from cragside.adapters.documents.reading import FileOrigin, Ocr, Unreadable, contained
from cragside.domain.characters import encodable

# Addresses, numbers and headers are repeated in a text that the file has once.
_MOST_GROWTH = 300
_GROWN_CHARACTERS = 2_000_000


def main() -> None:
    """Serve until standard input ends, no request comes for a while, or a limit ends the process."""
    memory, idle = (int(argument) for argument in sys.argv[1:3])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Output of libraries must not mix with the answers.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    # Imported before the limits forbid writing files, so Python can cache the bytecode, which saves seconds.
    for library in KINDS[sys.argv[3]].libraries:
        with suppress(ImportError):
            import_module(library)
    _bound(memory)
    while _awaited(requests, idle) and (header := requests.readline()):
        asked = orjson.loads(header)
        _allow(asked["seconds"])
        answer = _answer(asked, requests)
        answers.write(orjson.dumps({"size": len(answer)}) + b"\n" + answer)
        answers.flush()


def _answer(asked: Mapping[str, Any], requests: BinaryIO) -> bytes:
    content = requests.read(asked["size"])
    ocr = Ocr(**asked["ocr"]) if asked["ocr"] else None
    origin = FileOrigin(asked["name"], asked["file_type"], asked["charset"], ocr)
    try:
        with contained():
            reading = KINDS[asked["kind"]].reader(content, origin)
            if len(reading.text) > _GROWN_CHARACTERS + _MOST_GROWTH * len(content):
                raise Unreadable(f"holds {_MOST_GROWTH} times as much text as the file is long, which is the limit")
            fields = {**asdict(reading), "text": encodable(reading.text)}
            return orjson.dumps({"reading": fields}, default=str)
    except Unreadable as error:
        return orjson.dumps({"refused": encodable(error.reason)})
    except ModuleNotFoundError as error:
        return orjson.dumps({"missing": error.name})


def _awaited(requests: BinaryIO, idle: int) -> bool:
    if sys.platform == "win32":
        return True
    return bool(select.select([requests], [], [], idle)[0])


def _bound(memory: int) -> None:
    """Limit the memory, and forbid writing files and core dumps."""
    if sys.platform == "win32":
        return
    import resource

    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):
            continue  # macOS cannot limit the address space; the time limit still applies


def _allow(seconds: int) -> None:
    """Allow this much processor time for the next file."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
