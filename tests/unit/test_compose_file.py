"""The compose file exposes nothing, holds no secret, and agrees with the settings and with .env.example."""

import ipaddress
import re
import runpy
from pathlib import Path
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


def versions(text: str) -> list[str]:
    """The images that a Dockerfile begins with."""
    return re.findall(r"^ARG \w+_IMAGE=(\S+)$", text, re.MULTILINE)


@every_service
def test_a_service_listens_on_loopback_alone(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        address = str(port).partition(":")[0]
        assert ipaddress.ip_address(address).is_loopback
    assert SERVICES[name].get("network_mode") is None


@every_service
def test_an_image_is_pinned_to_a_version(name: str) -> None:
    service = SERVICES[name]
    made_here = compose.dockerfile_of(service)
    for image in versions(made_here) if made_here else [service["image"]]:
        assert re.search(r":v?\d+(\.\d+)+", image), image
    assert service["image"].endswith(":local") == bool(made_here)
    # Nobody else's image of the same name is taken.
    assert service.get("pull_policy") == (("build" if "build" in service else "never") if made_here else None)


@every_service
def test_a_service_has_a_health_check_or_ends_by_itself(name: str) -> None:
    service = SERVICES[name]
    if compose.is_once(service):
        awaited = [each["depends_on"][name] for each in SERVICES.values() if name in each.get("depends_on", ())]
        assert awaited
        assert {each["condition"] for each in awaited} == {"service_completed_successfully"}
    else:
        assert "test" in service.get("healthcheck", {}) or "\nHEALTHCHECK " in compose.dockerfile_of(service)


@every_service
def test_a_service_waits_until_what_it_needs_can_be_used(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        once = compose.is_once(SERVICES[needed])
        assert how["condition"] == ("service_completed_successfully" if once else "service_healthy")
        # What a profile leaves out may be missing.
        assert how.get("required", True) == ("profiles" not in SERVICES[needed])


@every_service
def test_a_service_has_no_right_that_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only") or name == "neo4j"
    assert not service.keys() & {"privileged", "cap_add", "devices", "pid", "ipc", "userns_mode"}
    assert "mem_limit" in service or name == "models"
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}


@every_service
def test_a_service_writes_to_no_folder_of_this_machine(name: str) -> None:
    declared = yaml.safe_load(compose.TEXT)["volumes"]
    for volume in SERVICES[name].get("volumes", ()):
        source, _, mode = re.fullmatch(r"([^:]+):([^:]+)(?::(ro))?", volume).groups()  # type: ignore[union-attr]
        if source.startswith("."):
            assert mode == "ro"
            assert (ROOT / source).exists()
        else:
            assert source in declared


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


def test_the_example_has_no_secret_and_the_defaults_of_the_file() -> None:
    example = compose.example()
    assert compose.secrets() == {name for name, value in example.items() if not value}
    for name, signs in compose.variables().items():
        if ":?" not in signs:
            defaults = set(re.findall(rf"\$\{{{name}:?-([^}}]*)\}}", compose.TEXT))
            assert defaults == {example[name]}


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


def test_one_of_the_profiles_starts_one_ollama() -> None:
    profiles = [SERVICES[name]["profiles"] for name in ("ollama", "ollama-gpu")]
    assert profiles == [["cpu"], ["gpu"]]
    assert SERVICES["models"]["profiles"] == ["cpu", "gpu"]
    assert compose.example()["COMPOSE_PROFILES"] == "cpu"
    assert SERVICES["ollama-gpu"]["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"] == ["gpu"]


def test_searxng_answers_in_json_and_gets_its_secret_from_the_environment() -> None:
    settings = yaml.safe_load((ROOT / "packaging/searxng/settings.yml").read_text())
    assert "json" in settings["search"]["formats"]
    assert "secret_key" not in settings["server"]


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


DOCKERFILES = sorted(path for path in [ROOT / "Dockerfile", *(ROOT / "packaging").glob("*/Dockerfile")])


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_a_dockerfile_is_pinned_and_its_program_is_not_root(path: Path) -> None:
    text = path.read_text()
    assert "latest" not in text
    assert versions(text)
    # Every stage begins with an image that the arguments name.
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) <= {
        f"${{{name}}}" for name in re.findall(r"^ARG (\w+_IMAGE)=", text, re.MULTILINE)
    }
    last = text.rpartition("\nFROM ")[2]
    (user,) = re.findall(r"^USER (\d+):\d+$", last, re.MULTILINE)
    assert int(user) > 0
    assert "\nHEALTHCHECK " in last
    assert not re.search(r"amd64|x86_64|arm64|aarch64|--platform", text)


def test_the_image_of_cragside_asks_the_route_of_the_service() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "http://127.0.0.1:8642/healthz" in text
    assert "--frozen" in text
    assert "--require-hashes" in text
    extras = re.search(r'^ARG EXTRAS="(.*)"$', text, re.MULTILINE)
    assert extras
    declared = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(extras[1].split()) <= set(declared)


def test_the_build_gets_what_the_dockerfile_copies_and_little_else() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == sources


def test_make_starts_and_ends_the_file() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("up", "down", "test-containers"):
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), target
    assert "COMPOSE := docker compose --file docker-compose.local.yml" in makefile
