"""Asks what is deployed a question, and checks that the answer is cited: python -m infra.smoke -c env=dev.

With --url it asks there, with the token of the variable CRAGSIDE_TOKEN.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import httpx

from infra.choice import add_context, chosen
from infra.deployed import Deployed, telling

# The demo's documents answer it, which dev has.
QUESTION = "Why did Mercury's orbit puzzle astronomers?"
_PATH = "/v1/enrich"
_SECONDS = 35.0  # API Gateway gives up before


class Failed(Exception):
    """The deployment does not do its job."""


def checks(http: httpx.Client, question: str, token: str) -> Iterator[str]:
    """Check step by step, and say what each found. Raises `Failed` at the first that does not hold."""
    _expect(http.get("/healthz"), 200, "it does not run")
    yield "It runs."
    _expect(http.get("/ready"), 200, "a component that it needs is not there")
    yield "All that it needs is there."
    body = {"prompt": f"/rag {question}"}
    _expect(http.post(_PATH, json=body), 401, "a request without a token is answered")
    yield "A request without a token is refused."
    answer = _expect(
        http.post(_PATH, json=body, headers={"Authorization": f"Bearer {token}"}), 200, "the question is not answered"
    )
    try:
        lines = list(_cited(answer.json(), question))
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a proxy's page, or another service
        raise Failed(f"POST {_PATH}: the answer is none of cragside's: {_shown(answer)}") from error
    yield from lines


def _cited(answer: dict[str, Any], question: str) -> Iterator[str]:
    found = answer["metadata"]["rag_context"]
    parts = ", ".join(f"{part['component']!r} ({part['reason']!r})" for part in found["degraded"])
    if not found["documents"]:
        raise Failed(
            f"Nothing was found for {question!r}. Ask what your documents answer. Failed: {parts or 'nothing'}."
        )
    if parts:
        raise Failed(f"The evidence lacks what these would have given: {parts}.")
    yield f"Evidence was found: {found['verdict']!r}."
    for number, document in enumerate(found["documents"], start=1):
        if f"[{number}] {document['title']}" not in answer["prompt"]:
            raise Failed(f"The prompt does not cite {document['title']!r} as [{number}].")
        yield f"  [{number}] {document['title']!r}"


def _expect(answer: httpx.Response, status: int, otherwise: str) -> httpx.Response:
    if answer.status_code != status:
        asked = f"{answer.request.method} {answer.request.url.path}"
        raise Failed(f"{asked}: {answer.status_code}, {otherwise}. {_shown(answer)}")
    return answer


def _shown(answer: httpx.Response) -> str:
    """The beginning of an answer, without marks that a terminal or a pipeline's log would obey."""
    return repr(answer.text[:300])


@telling
def main(arguments: Sequence[str] | None = None, session: boto3.Session | None = None) -> int:
    """Print what was found. Return 1 if something does not hold, 2 if there is nothing to ask."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.smoke", description="Ask what is deployed.", allow_abbrev=False
    )
    add_context(parser)
    parser.add_argument("--question", default=QUESTION, help="one that the documents answer")
    parser.add_argument("--url", help="another address than that of the environment")
    given = parser.parse_args(arguments)
    try:
        if given.url:
            url, token = given.url, os.environ.get("CRAGSIDE_TOKEN", "")
        else:
            deployed = Deployed(chosen(dict(given.context), deploying=False), session)
            url, token = deployed.output("Endpoint"), deployed.token()
        with httpx.Client(base_url=url, timeout=_SECONDS) as http:
            for line in checks(http, given.question, token):
                print(line, flush=True)
    except httpx.LocalProtocolError:  # its text quotes the token
        print(
            "The token cannot be part of a header: it has to be one line of letters, digits and -._~+/=",
            file=sys.stderr,
        )
        return 2
    except (Failed, httpx.HTTPError) as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
