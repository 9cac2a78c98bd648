"""The compose file exposes nothing, holds no secret, and agrees with the settings and with .env.example."""

import ipaddress
import re
import runpy
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from cragside.settings import Settings, load_settings, variable_of
from tests import compose
from tests.compose import ROOT, services

SERVICES = services()
KNOWN = {variable_of(name) for name in Settings.model_fields}
OURS = ("migrate", "api", "worker")
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|AUTH|KEY|_URI$")
# The stand-in for AWS takes any credentials.
NO_SECRET = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "NEO4J_URI"}
DATABASES = {"postgres", "neo4j", "aws"}
every_service = pytest.mark.parametrize("name", SERVICES)


@every_service
def test_a_service_listens_on_loopback_alone(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        address = str(port).partition(":")[0]
        assert ipaddress.ip_address(address).is_loopback
    assert SERVICES[name].get("network_mode") is None


@every_service
def test_a_secret_comes_from_a_variable_that_has_to_be_set(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if SECRET.search(variable) and variable not in NO_SECRET:
            assert re.search(r"\$\{\w+:\?is not set; \.env\.example says how to make it\}", value), variable


def test_the_databases_can_be_reached_by_cragside_alone() -> None:
    networks = yaml.safe_load(compose.TEXT)["networks"]
    assert networks["stores"] == {"internal": True}
    assert all(set(SERVICES[name]["networks"]) == {"stores"} for name in DATABASES)
    inside = {name for name, service in SERVICES.items() if "stores" in service["networks"]}
    assert inside == DATABASES | set(OURS)


def test_every_variable_is_in_the_example_and_the_example_has_no_other() -> None:
    assert set(compose.example()) == set(compose.variables()) | {"COMPOSE_PROFILES"}


def test_commands_in_the_same_folder_do_not_take_the_variables_for_settings() -> None:
    assert not set(compose.example()) & KNOWN
    assert not any(name.startswith("RAG_") for name in compose.example())


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("left_out", ["", "CRAGSIDE_OLLAMA", "CRAGSIDE_QUEUE"])
def test_the_settings_of_cragside_are_known_and_accepted(name: str, left_out: str) -> None:
    given = {**compose.example(), **dict.fromkeys(compose.secrets(), "0123456789abcdef")}
    if left_out:
        given[left_out] = ""
    environment = SERVICES[name]["environment"]
    ours = {variable: compose.filled_in(value, given) for variable, value in environment.items()}
    assert {variable for variable in ours if not variable.startswith("AWS_")} <= KNOWN
    settings = load_settings({**ours, "RAG_HOME": "/var/lib/cragside"})
    assert settings.asks_for_token
    assert (settings.ollama_base_url is None) == (left_out == "CRAGSIDE_OLLAMA")
    assert (settings.queue_url is None) == (left_out == "CRAGSIDE_QUEUE")


def test_the_stand_in_for_aws_makes_the_queue_that_the_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in SERVICES["api"]["environment"].items():
        if variable.startswith("AWS_") and variable != "AWS_ENDPOINT_URL":
            monkeypatch.setenv(variable, value)
    with mock_aws():
        for _ in range(2):  # it runs at every start
            runpy.run_path(str(ROOT / "packaging/aws/queues.py"))
        sqs = boto3.client("sqs")
        url = sqs.get_queue_url(QueueName=compose.example()["CRAGSIDE_QUEUE"].rpartition("/")[2])["QueueUrl"]
        found: dict[str, Any] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert found["FifoQueue"] == "true"
    assert "cragside-dead.fifo" in found["RedrivePolicy"]
