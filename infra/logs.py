"""Prints the log lines of an environment: python -m infra.logs -c env=dev --since 15 --follow."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import boto3

from infra.deployed import Deployed, telling
from infra.environments.choice import ANY, add_context, chosen

_PAUSE_SECONDS = 2.0
# Lines reach CloudWatch some seconds after they were written, so this much is read again.
_LATE_MS = 30_000
_MOST_MINUTES = 10 * 365 * 24 * 60  # CloudWatch keeps lines for ten years at most


@dataclass(frozen=True, slots=True)
class Line:
    """A line, when it was written, and the group that it is in."""

    id: str
    milliseconds: int
    group: str
    text: str

    def __str__(self) -> str:
        """The line as it is printed."""
        at = datetime.fromtimestamp(self.milliseconds / 1000, UTC)
        return f"{at:%Y-%m-%dT%H:%M:%S}Z {self.group} {self.text.rstrip()}"


class Tail:
    """The lines of groups, each once, in the order in which they were written."""

    def __init__(self, client: Any, groups: Mapping[str, str], since_ms: int) -> None:
        self._client = client
        self._groups = groups
        self._since = since_ms
        self._told: dict[str, int] = {}

    def more(self) -> list[Line]:
        """The lines that came since the last time."""
        found = [line for name in self._groups for line in self._lines(name) if line.id not in self._told]
        self._told.update({line.id: line.milliseconds for line in found})
        self._since = max([self._since, *(at - _LATE_MS for at in self._told.values())])
        self._told = {line: at for line, at in self._told.items() if at >= self._since}
        return sorted(found, key=lambda line: line.milliseconds)

    def _lines(self, name: str) -> Iterator[Line]:
        pages = self._client.get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=self._groups[name], startTime=self._since):
            for event in page["events"]:
                yield Line(event["eventId"], event["timestamp"], name, event["message"])


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 < minutes <= _MOST_MINUTES:
        raise argparse.ArgumentTypeError(f"{text} is not a number of minutes from 0 to {_MOST_MINUTES} (ten years)")
    return minutes


@telling
def main(arguments: Sequence[str] | None = None, session: boto3.Session | None = None) -> int:
    """Print lines. Return 2 if there is no log."""
    parser = argparse.ArgumentParser(prog="python -m infra.logs", description="Print log lines.", allow_abbrev=False)
    add_context(parser)
    parser.add_argument("--since", type=_minutes, default=15, metavar="MINUTES", help="how far back; default 15")
    parser.add_argument("--follow", action="store_true", help="print those that come until you press Ctrl+C")
    given = parser.parse_args(arguments)
    try:
        deployed = Deployed(chosen({**dict(given.context), **ANY}), session)
        since = int((time.time() - given.since * 60) * 1000)
        tail = Tail(deployed.session.client("logs"), deployed.log_groups(), since)
        for _ in count() if given.follow else range(1):
            for line in tail.more():
                print(line, flush=True)
            time.sleep(_PAUSE_SECONDS if given.follow else 0)
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
