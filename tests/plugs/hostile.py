"""Something that is no cragside of good will: an answer for each name, by which its address ends."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.plugs.conftest import TOKEN
from tests.unit.plugins.test_hostile_service import MALFORMED, PASSAGE, Handler, Hostile, evidence

_FORGED = {"type": "unauthorized", "message": f"no\nERROR Bearer {TOKEN}", "details": {"token": TOKEN}}
_ANSWERS: dict[str, Any] = {f"malformed-{number}": answer for number, answer in enumerate(MALFORMED)}
NAMES = (*_ANSWERS, "redirect", "error", "cookie", "cookie-again", "unscored")


@contextmanager
def answering() -> Iterator[Hostile]:
    """The server. It sends whoever follows a redirect to itself."""
    with Hostile() as server:

        def write(handler: Handler) -> None:
            name = handler.path.split("/")[1]
            passage = {key: value for key, value in PASSAGE.items() if name != "unscored" or key != "score"}
            if name == "redirect":
                handler.send({}, 307, Location=f"{server.url}/followed/v1/enrich")
            elif name == "error":
                handler.send({"error": _FORGED}, 401)
            elif name in _ANSWERS:
                handler.send(_ANSWERS[name])
            else:
                handler.send(evidence(handler.body["messages"], passage), Set_Cookie="session=of-another; Path=/")
            server.seen[-1][0]["Path"] = handler.path

        server.write = write
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def wrong(told: dict[str, Any], server: Hostile) -> dict[str, Any]:
    """Collect the faults that a plug made of hostile answers."""
    found = {name: told[name] for name in NAMES if not _is_right(name, told[name])}
    paths = [headers["Path"] for headers, _ in server.seen]
    leaks = [headers for headers, _ in server.seen if "Cookie" in headers or "followed" in headers["Path"]]
    if len(paths) != len(NAMES) or leaks or TOKEN in json.dumps(told):
        found["seen"] = [paths, leaks, TOKEN in json.dumps(told)]
    return found


def _is_right(name: str, outcome: str) -> bool:
    if name == "error":
        return outcome == "Unauthorized: no ERROR Bearer ***"
    if name == "redirect" or name in _ANSWERS:
        return outcome.startswith("ProcessingError: ")
    return bool(PASSAGE["content"] in outcome)
