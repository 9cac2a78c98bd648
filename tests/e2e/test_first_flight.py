"""dev from deployment to destruction, in an AWS emulator. The tests build on each other, in this order."""

import json
import re

import pytest
from flight import SAID, STACK, Flight, say

from tests.blocks import assert_shown, blocks

pytestmark = pytest.mark.e2e

QUESTION = "/rag Why did Mercury's orbit puzzle astronomers?"
BODY_LIMIT = 2_900_000


def test_health_is_open(flight: Flight) -> None:
    answer = flight.call("GET", "/healthz")
    say(f"GET /healthz, no token: {answer.status_code} {answer.text}")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})


def test_a_rag_prompt_is_returned_with_cited_evidence(flight: Flight) -> None:
    answer = flight.call("POST", "/v1/enrich", token=flight.token, body={"model": "llama3.2", "prompt": QUESTION})
    assert answer.status_code == 200, answer.text
    enriched = answer.json()
    found = enriched["metadata"]["rag_context"]
    say(f"POST /v1/enrich {QUESTION!r}: {answer.status_code}, verdict {found['verdict']}")
    for line in re.findall(r"^\[\d+\] .+$", enriched["prompt"], re.MULTILINE):
        say(f"  {line}")
    assert (found["verdict"], found["degraded"]) == ("local", [])
    assert found["documents"][0]["title"] == "Mercury, the innermost planet"
    assert "[1] Mercury, the innermost planet" in enriched["prompt"]
    assert enriched["prompt"].rstrip().endswith("Why did Mercury's orbit puzzle astronomers?")


def test_a_plain_prompt_is_left_alone(flight: Flight) -> None:
    request = {"model": "llama3.2", "prompt": "Why is the sky blue? ", "metadata": {"temperature": 0.2}}
    answer = flight.call("POST", "/v1/enrich", token=flight.token, body=request)
    say(f"POST /v1/enrich {request['prompt']!r}: {answer.status_code}, untouched: {answer.json() == request}")
    assert (answer.status_code, answer.json()) == (200, request)


@pytest.mark.parametrize("token", ["wrong", None])
def test_without_the_token_there_is_no_answer(flight: Flight, token: str | None) -> None:
    answer = flight.call("POST", "/v1/enrich", token=token, body={"prompt": QUESTION})
    error = answer.json()["error"]
    say(f"POST /v1/enrich with {'no' if token is None else 'a wrong'} token: {answer.status_code} {error['type']}")
    assert (answer.status_code, error["type"], error["retryable"]) == (401, "unauthorized", False)


def test_a_body_above_the_limit_is_refused(flight: Flight) -> None:
    answer = flight.call("POST", "/v1/enrich", token=flight.token, body={"prompt": "x" * BODY_LIMIT})
    error = answer.json()["error"]
    say(f"POST /v1/enrich of more than {BODY_LIMIT:,} bytes: {answer.status_code} {error['type']}")
    assert (answer.status_code, error["type"]) == (413, "payload_too_large")


def test_an_unknown_path_is_answered_in_the_same_envelope(flight: Flight) -> None:
    answer = flight.call("GET", "/v1/nothing", token=flight.token)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")


def test_the_token_is_only_in_the_secret(flight: Flight) -> None:
    template = flight.client("cloudformation").get_template(StackName=STACK)["TemplateBody"]
    functions = flight.client("lambda").list_functions()["Functions"]
    assert len(flight.token) == 43
    assert flight.token.isalnum()
    for place in (json.dumps(template), json.dumps(functions, default=str), flight.emulator.log):
        assert flight.token not in place


def test_drift_is_what_somebody_changed_by_hand(flight: Flight) -> None:
    """The token's secret too: its `Ref` is its ARN, and it is neither missing nor changed."""
    assert flight.drifts(STACK) == {}
    flight.client("secretsmanager").update_secret(SecretId=flight.outputs["TokenSecret"], Description="by hand")
    assert flight.drifts(STACK) == {"AWS::SecretsManager::Secret": "MODIFIED"}


def test_nothing_is_left_after_the_destruction(flight: Flight) -> None:
    flight.destroy()
    left = flight.left()
    say(f"left: {', '.join(kind for kind, found in left.items() if found) or 'nothing'}")
    assert not any(left.values()), left


def test_the_readme_shows_this_output() -> None:
    (shown,) = [block for block in blocks("README.md", "text") if block.first_line.startswith("ministack")]
    assert_shown(shown.text, "\n".join(SAID))
