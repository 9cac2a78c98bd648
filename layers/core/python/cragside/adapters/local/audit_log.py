"""The audit log: one line of JSON for each event, in a file that processes share, or on standard error."""

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cragside.domain.errors import ConfigurationError

STDERR = ("-", "stderr")
_log = logging.getLogger("cragside")


class AuditFile:
    """Appends events to a file of mode 0600. It opens the file for each event, so other tools can rotate it any time.

    An event that cannot be written is lost, but no request fails. The log warns once until writing succeeds again. JSON
    escapes line breaks and control characters, so no field can forge a line.
    """

    def __init__(self, place: str) -> None:
        self._path = None if place.strip() in STDERR else Path(place.strip()).expanduser()
        self._warned = False
        self._torn = False

    def check(self) -> None:
        """Raises `ConfigurationError` if events cannot be written."""
        try:
            self._append(b"")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigurationError(
                f"The audit log {self._path} cannot be written: {reason}. Set RAG_AUDIT_LOG to a file that can, or to "
                "stderr.",
                variable="RAG_AUDIT_LOG",
            ) from error

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event. A failure is logged, and the request continues."""
        line = json.dumps(dict(event)).encode() + b"\n"
        try:
            # A line that a full disk cut off is ended first.
            self._append(b"\n" + line if self._torn else line)
            self._warned = self._torn = False
        except OSError as error:
            if not self._warned:
                self._warned = True
                _log.warning("Events are missing from the audit log: %s", error.strerror or type(error).__name__)

    def _append(self, line: bytes) -> None:
        if self._path is None:
            sys.stderr.flush()
            self._put(2, line)
            return
        # O_NONBLOCK: a pipe must not wait for a reader.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            self._put(descriptor, line)
        finally:
            os.close(descriptor)

    def _put(self, descriptor: int, line: bytes) -> None:
        # One write, so that lines of several processes do not mix.
        written = os.write(descriptor, line) if line else 0
        if written < len(line):
            self._torn = True
            raise OSError(0, "only a part of an event could be written")
