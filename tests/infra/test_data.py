"""The servers of the self-hosted shape."""

import json
import subprocess
from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser

from infra.environments import named
from infra.environments.servers import SelfHosted
from infra.environments.shapes import SHAPES

pytestmark = pytest.mark.infra

KEY = "arn:aws:kms:eu-central-1:123456789012:key/0f1e2d3c-0000-4000-8000-000000000000"
HOSTS = ("Data", "Exit", "Ollama")


@pytest.fixture(scope="module")
def service(synthesise: Synthesiser) -> Synthesised:
    return synthesise(named("prod").changed(**SHAPES["self-hosted"]))


@pytest.fixture(scope="module")
def data(service: Synthesised) -> Synthesised:
    return service.stack("data")


@pytest.fixture(scope="module")
def smallest(synthesise: Synthesiser) -> Synthesised:
    servers = SelfHosted(neo4j=False, ollama_instance=None, searxng_instance=None)
    return synthesise(named("dev").changed(**{**SHAPES["self-hosted"], "servers": servers}))


def launched(data: Synthesised) -> dict[str, dict[str, Any]]:
    """Images that hosts are started from."""
    found = data.resources("AWS::EC2::LaunchTemplate").items()
    return {name.partition("Template")[0]: said["Properties"]["LaunchTemplateData"] for name, said in found}


def flat(value: Any) -> str:
    """A text that the template joins, with the names of what it refers to."""
    if isinstance(value, dict):
        return "".join(flat(part) for part in value.values())
    return "".join(map(flat, value)) if isinstance(value, list) else str(value)


def script(said: dict[str, Any]) -> str:
    return flat(said["UserData"]["Fn::Base64"]["Fn::Join"][1])


def test_a_host_has_encrypted_disks_and_session_tokens_and_no_key(data: Synthesised) -> None:
    found = launched(data)
    assert set(found) == set(HOSTS)
    for said in found.values():
        assert said["MetadataOptions"] == {"HttpPutResponseHopLimit": 1, "HttpTokens": "required"}
        assert all(device["Ebs"]["Encrypted"] for device in said["BlockDeviceMappings"])
        assert "KeyName" not in said
    public = {
        name: any(each.get("AssociatePublicIpAddress") for each in said.get("NetworkInterfaces", []))
        for name, said in found.items()
    }
    assert public == {"Data": False, "Exit": True, "Ollama": False}


def test_nobody_outside_reaches_a_host(service: Synthesised) -> None:
    for stack in (service.stack("data"), service.stack("network")):
        rules = [said["Properties"] for said in stack.resources("AWS::EC2::SecurityGroupIngress").values()]
        for group in stack.resources("AWS::EC2::SecurityGroup").values():
            rules += group["Properties"].get("SecurityGroupIngress", [])
        assert all("SourceSecurityGroupId" in rule for rule in rules), rules
        assert not [rule for rule in rules if rule["FromPort"] == 22]


def test_the_way_out_leads_to_the_web_alone_and_is_open_to_servers(data: Synthesised) -> None:
    (group,) = data.resources("AWS::EC2::SecurityGroup").values()
    out = {(rule["CidrIp"], rule["FromPort"]) for rule in group["Properties"]["SecurityGroupEgress"]}
    assert out == {("0.0.0.0/0", 80), ("0.0.0.0/0", 443)}
    (within,) = data.resources("AWS::EC2::SecurityGroupIngress").values()
    assert within["Properties"]["FromPort"] == within["Properties"]["ToPort"] == 3128


def test_each_group_keeps_one_host_and_waits_until_it_is_ready(data: Synthesised) -> None:
    groups = data.resources("AWS::AutoScaling::AutoScalingGroup")
    for name, group in groups.items():
        assert (group["Properties"]["MaxSize"], group["Properties"]["DesiredCapacity"]) == ("1", "1")
        assert group["UpdatePolicy"]["AutoScalingRollingUpdate"]["MinInstancesInService"] == 0
        assert group["CreationPolicy"]["ResourceSignal"]["Count"] == 1
        depends = [each for each in group.get("DependsOn", []) if each in groups]
        assert [each.startswith("Exit") for each in depends] == ([] if name.startswith("Exit") else [True])


def test_the_volume_outlives_its_host_and_has_snapshots(data: Synthesised, smallest: Synthesised) -> None:
    (volume,) = data.resources("AWS::EC2::Volume").values()
    assert volume["DeletionPolicy"] == volume["UpdateReplacePolicy"] == "Retain"
    assert volume["Properties"]["Encrypted"] is True
    policy = data.properties("AWS::DLM::LifecyclePolicy")["PolicyDetails"]
    (tag,) = policy["TargetTags"]
    assert {"Key": tag["Key"], "Value": tag["Value"]} in volume["Properties"]["Tags"]
    assert policy["Schedules"][0]["RetainRule"] == {"Count": 14}
    (without,) = smallest.stack("data").resources("AWS::EC2::Volume").values()
    assert without["DeletionPolicy"] == "Snapshot"


@pytest.fixture(scope="module")
def keyed(synthesise: Synthesiser) -> Synthesised:
    return synthesise(named("dev").changed(**SHAPES["self-hosted"], operations={"kms_key_arn": KEY}))


def test_a_key_of_ones_own_encrypts_disks_and_secrets(keyed: Synthesised) -> None:
    data = keyed.stack("data")
    encrypted = [said["Properties"]["KmsKeyId"] for said in data.resources("AWS::SecretsManager::Secret").values()]
    encrypted.append(data.properties("AWS::EC2::Volume")["KmsKeyId"])
    for said in launched(data).values():
        encrypted += [device["Ebs"]["KmsKeyId"] for device in said["BlockDeviceMappings"]]
    assert encrypted == [KEY] * (2 + 1 + len(HOSTS))
    assert keyed.stack("network").properties("AWS::Logs::LogGroup")["KmsKeyId"] == KEY


def test_the_data_host_alone_may_use_the_key_for_its_secrets_and_its_volume(keyed: Synthesised) -> None:
    used: dict[str, set[tuple[str, bool]]] = {}
    for name, policy in keyed.stack("data").resources("AWS::IAM::Policy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Resource"] == KEY:
                actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                granting = statement.get("Condition", {}).get("Bool") == {"kms:GrantIsForAWSResource": "true"}
                used.setdefault(name.partition("Role")[0], set()).update((each, granting) for each in actions)
    assert used == {"Data": {("kms:CreateGrant", True), ("kms:Decrypt", False), ("kms:GenerateDataKey", False)}}


def test_the_rule_packs_find_nothing_with_a_key(keyed: Synthesised) -> None:
    assert [report["violations"] for report in keyed.report["pluginReports"]] == [[], []]


def test_the_data_host_is_in_the_zone_of_its_volume(service: Synthesised, data: Synthesised) -> None:
    (group,) = [
        said for name, said in data.resources("AWS::AutoScaling::AutoScalingGroup").items() if name.startswith("Data")
    ]
    (subnet,) = group["Properties"]["VPCZoneIdentifier"]
    exported = service.stack("network").template["Outputs"][subnet["Fn::ImportValue"].split(":")[1]]["Value"]["Ref"]
    subnets = service.stack("network").resources("AWS::EC2::Subnet")
    zone = subnets[exported]["Properties"]["AvailabilityZone"]
    assert data.properties("AWS::EC2::Volume")["AvailabilityZone"] == zone


def test_no_template_and_no_script_has_a_password(service: Synthesised, data: Synthesised) -> None:
    for secret in data.resources("AWS::SecretsManager::Secret").values():
        assert "SecretString" not in secret["Properties"]
    assert "resolve:secretsmanager" not in json.dumps([data.template, service.template])
    assert "SecretString" not in json.dumps([script(said) for said in launched(data).values()])


def test_only_the_data_host_reads_passwords_and_writes_the_uri(data: Synthesised) -> None:
    reading, writing = set(), {}
    for name, policy in data.resources("AWS::IAM::Policy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            host = name.partition("Role")[0]
            if "secretsmanager:GetSecretValue" in actions:
                reading.add(host)
            if "secretsmanager:PutSecretValue" in actions:
                writing[host] = flat(statement["Resource"])
    assert reading == {"Data"}
    assert list(writing) == ["Data"]
    assert writing["Data"].startswith("Postgres")


@pytest.mark.parametrize("name", HOSTS)
def test_the_script_of_a_host_is_a_shell_script_that_says_what_the_host_does(data: Synthesised, name: str) -> None:
    text = script(launched(data)[name])
    checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    services = {"Data": "postgres neo4j", "Exit": "searxng", "Ollama": "ollama-gpu"}
    assert f"export ROLE='{name.lower()}'\n" in text
    assert f"export SERVICES='{services[name]}'\n" in text
    assert len(text) < 16_000  # user data has at most 16 KB
    assert text.rstrip().endswith("sh packaging/hosts/prepare.sh")


def test_functions_are_told_where_the_servers_are(service: Synthesised) -> None:
    variables = service.properties("AWS::Lambda::Function")["Environment"]["Variables"]
    assert variables["OLLAMA_BASE_URL"] == "http://ollama.prod.cragside.internal:11434"
    assert variables["SEARXNG_HOST"] == "http://searxng.prod.cragside.internal:8080"
    assert variables["NEO4J_URI"] == "bolt://neo4j.prod.cragside.internal:7687"
    assert {"POSTGRES_URI_SECRET", "NEO4J_PASSWORD_SECRET"} <= variables.keys()


def test_the_smallest_servers_are_postgresql_and_the_way_out(smallest: Synthesised) -> None:
    found = launched(smallest.stack("data"))
    assert set(found) == {"Data", "Exit"}
    assert "export SERVICES='postgres'\n" in script(found["Data"])
    assert "export SERVICES=''\n" in script(found["Exit"])
    variables = smallest.properties("AWS::Lambda::Function")["Environment"]["Variables"]
    assert variables["RAG_GRAPH_STORAGE"] == "PGGraphStorage"
    assert not {"NEO4J_URI", "OLLAMA_BASE_URL", "SEARXNG_HOST"} & variables.keys()
