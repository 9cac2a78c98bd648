"""Runs parsers in child processes, which contain crashes, endless loops and memory exhaustion."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from cragside.adapters.documents.kinds import Kind
from cragside.adapters.documents.reading import MAX_CHARACTERS, FileOrigin, Reading, Unreadable
from cragside.domain.characters import encodable
from cragside.domain.document import Mark
from cragside.domain.errors import ServiceUnavailable

# A character takes at most four bytes in UTF-8 and six in JSON's escapes. The rest is for marks and tier 1.
_LONGEST_ANSWER = 6 * MAX_CHARACTERS + 64 * 1024 * 1024
_IDLE_SECONDS = 60
_TOO_SLOW = "takes more than {seconds} s to read, which is the limit"


class _Ended(Exception):
    """The child ended instead of answering."""


class ParserProcesses:
    """Runs readers in reusable children, each replaced after `files` files or a failure.

    Of this process' environment, a child gets only the paths of Python's modules. It may take `memory` bytes of address
    space, and `seconds` of time and of processor time for each file; with OCR, those of `FileOrigin.ocr`.
    """

    def __init__(self, *, seconds: int, memory: int, files: int = 100) -> None:
        self._seconds = seconds
        self._memory = memory
        self._files = files
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._closed = False

    def read(self, kind: Kind, content: bytes, origin: FileOrigin) -> Reading:
        """Read a file; blocks. Raises `Unreadable`, also when the child dies."""
        seconds = origin.ocr.seconds if origin.ocr and kind.recognised else self._seconds
        while True:
            child, fresh = self._take(kind)
            try:
                answer = child.ask(kind, content, origin, seconds)
            except _Ended as ended:
                child.kill()
                # An idle child ends by itself, so this end has nothing to do with the file.
                if not fresh and child.left and not self._closed:
                    continue
                raise Unreadable(str(ended)) from None
            finally:
                with self._lock:
                    self._busy.discard(child)
            self._keep(child)
            return _reading(answer)

    def close(self) -> None:
        """Kill all children, also those that are reading."""
        with self._lock:
            self._closed = True
            children = [*self._idle, *self._busy]
            self._idle.clear()
        for child in children:
            child.kill()

    def _take(self, kind: Kind) -> "tuple[_Child, bool]":
        with self._lock:
            fresh = not self._idle
            child = _Child(kind, self._memory) if fresh else self._idle.pop()
            self._busy.add(child)
            return child, fresh

    def _keep(self, child: "_Child") -> None:
        with self._lock:
            keep = not self._closed and child.answered < self._files
            if keep:
                self._idle.append(child)
        if not keep:
            child.kill()


class _Child:
    def __init__(self, kind: Kind, memory: int) -> None:
        self.answered = 0
        self.left = False
        command = [sys.executable, "-P", "-m", "cragside.adapters.documents.child"]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - Python itself, with arguments of this file
                [*command, str(memory), str(_IDLE_SECONDS), kind.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        except OSError as error:
            raise ServiceUnavailable(
                "loader", f"No process to read files in could be started: {error.strerror}."
            ) from error

    def ask(self, kind: Kind, content: bytes, origin: FileOrigin, seconds: int) -> Mapping[str, Any]:
        """Return the child's answer. Raises `_Ended` with the reason if there is none in time."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            return self._exchange(kind, content, origin, seconds)
        except (OSError, ValueError, EOFError):
            raise _Ended(self._ending(late.is_set(), seconds)) from None
        finally:
            timer.cancel()

    def kill(self) -> None:
        """Kill the child and wait for its end."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # unwritten data is no longer needed

    def _exchange(self, kind: Kind, content: bytes, origin: FileOrigin, seconds: int) -> Mapping[str, Any]:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None  # noqa: S101,PT018 - both are pipes
        header = {
            "kind": kind.module,
            "name": encodable(origin.name),
            "file_type": origin.file_type,
            "charset": origin.charset,
            "ocr": asdict(origin.ocr) if origin.ocr else None,
            "seconds": seconds,
            "size": len(content),
        }
        requests.write(orjson.dumps(header) + b"\n")
        requests.write(content)
        requests.flush()
        size = orjson.loads(answers.readline(100))["size"]
        if size > _LONGEST_ANSWER:
            raise ValueError("longer than any answer")
        answer = answers.read(size)
        if len(answer) < size:
            raise EOFError
        self.answered += 1
        parsed: dict[str, Any] = orjson.loads(answer)
        return parsed

    def _ending(self, late: bool, seconds: int) -> str:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            code = None
        self.left = code == 0
        # 24 is SIGXCPU: its processor time was up.
        if late or code == -24:
            return _TOO_SLOW.format(seconds=seconds)
        return "cannot be read: its parser crashed, or needed more memory than a file may take"


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "PYTHONUTF8": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_THREAD_LIMIT": "1",  # Tesseract's threads wait for each other more than they work
    }


def _reading(answer: Mapping[str, Any]) -> Reading:
    if "refused" in answer:
        raise Unreadable(answer["refused"])
    if "missing" in answer:
        raise ServiceUnavailable("loader", f"This installation cannot read such files: {answer['missing']} is missing.")
    fields = answer["reading"]
    return Reading(**{**fields, "marks": tuple(Mark(**mark) for mark in fields["marks"])})
