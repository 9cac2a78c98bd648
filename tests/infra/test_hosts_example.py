"""The example of servers on hosts of one's own."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from synthesis import ROOT, Synthesised, Synthesiser, problems_of

from infra.config import Servers

pytestmark = pytest.mark.infra

KEY = "arn:aws:kms:eu-central-1:123456789012:key/0f1e2d3c-0000-4000-8000-000000000000"
HOSTS = ("Data", "Exit", "Ollama")
FILE = ROOT / "examples/hosts_on_aws/hosts.toml"


def made(folder: Path, **changes: Any) -> Synthesised:
    from examples.hosts_on_aws.app import Hosts, HostsStack
    from infra.app import new_app

    app = new_app(out=str(folder))
    hosts = Hosts.model_validate({**tomllib.loads(FILE.read_text()), **changes})
    HostsStack(app, hosts)
    app.synth()
    file = folder / f"cragside-{hosts.name}-hosts.template.json"
    return Synthesised(json.loads(file.read_text()), file, json.loads((folder / "validation-report.json").read_text()))


@pytest.fixture(scope="module")
def data(synthesise: Synthesiser, tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return made(tmp_path_factory.mktemp("hosts"))


@pytest.fixture(scope="module")
def smallest(synthesise: Synthesiser, tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    without = {"neo4j": False, "ollama_instance": None, "searxng": False, "keep_data": False}
    return made(tmp_path_factory.mktemp("smallest"), **without)


@pytest.fixture(scope="module")
def keyed(synthesise: Synthesiser, tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return made(tmp_path_factory.mktemp("keyed"), kms_key_arn=KEY)


def launched(data: Synthesised) -> dict[str, dict[str, Any]]:
    """Images that hosts are started from."""
    found = data.resources("AWS::EC2::LaunchTemplate").items()
    return {name.partition("Template")[0]: said["Properties"]["LaunchTemplateData"] for name, said in found}


def statements(data: Synthesised) -> list[tuple[str, dict[str, Any], list[str]]]:
    """The statements of all policies, with what begins their names, and their actions."""
    found = []
    for name, policy in data.resources("AWS::IAM::Policy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            found.append((name.partition("Role")[0], statement, actions))
    return found


def flat(value: Any) -> str:
    """A text that the template joins, with the names of what it refers to."""
    if isinstance(value, dict):
        return "".join(flat(part) for part in value.values())
    return "".join(map(flat, value)) if isinstance(value, list) else str(value)


def script(said: dict[str, Any]) -> str:
    return flat(said["UserData"]["Fn::Base64"]["Fn::Join"][1])


def test_cfn_lint_reports_nothing(data: Synthesised) -> None:
    # The file names the zone on purpose: it is that of a subnet of the operator's.
    assert [each for each in problems_of(data.file) if "W3010" not in each] == []


def test_every_image_is_named_so_that_no_deployment_replaces_a_host_unseen(data: Synthesised) -> None:
    said = tomllib.loads(FILE.read_text())
    images = {name: template["ImageId"] for name, template in launched(data).items()}
    assert images == {name: said[f"{name.lower()}_image"] for name in HOSTS}
    assert "AWS::SSM::Parameter::Value" not in json.dumps(
        {name: each for name, each in data.template["Parameters"].items() if name != "BootstrapVersion"}
    )


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


def test_nobody_outside_reaches_a_host(data: Synthesised) -> None:
    rules = [said["Properties"] for said in data.resources("AWS::EC2::SecurityGroupIngress").values()]
    for group in data.resources("AWS::EC2::SecurityGroup").values():
        rules += group["Properties"].get("SecurityGroupIngress", [])
    assert rules
    assert all("SourceSecurityGroupId" in rule for rule in rules), rules
    assert not [rule for rule in rules if rule["FromPort"] == 22]


def test_functions_reach_the_servers_ports_and_no_others(data: Synthesised) -> None:
    functions = tomllib.loads(FILE.read_text())["functions_group_id"]
    out = [each["Properties"] for each in data.resources("AWS::EC2::SecurityGroupEgress").values()]
    assert {each["FromPort"] for each in out if each["GroupId"] == functions} == {5432, 7687, 8080, 11434}
    assert all("DestinationSecurityGroupId" in each for each in out)


def test_the_way_out_leads_to_the_web_alone_and_is_open_to_servers(data: Synthesised) -> None:
    (group,) = [
        each["Properties"]
        for name, each in data.resources("AWS::EC2::SecurityGroup").items()
        if name.startswith("ExitGroup")
    ]
    out = {(rule["CidrIp"], rule["FromPort"]) for rule in group["SecurityGroupEgress"]}
    assert out == {("0.0.0.0/0", 80), ("0.0.0.0/0", 443)}
    within = [
        each["Properties"]
        for name, each in data.resources("AWS::EC2::SecurityGroupIngress").items()
        if name.startswith("ExitGroup")
    ]
    assert [(each["FromPort"], each["ToPort"]) for each in within] == [(3128, 3128)]


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
    assert policy["Schedules"][0]["CopyTags"] is True
    (without,) = smallest.resources("AWS::EC2::Volume").values()
    assert without["DeletionPolicy"] == "Snapshot"


def test_old_snapshots_of_this_volume_alone_may_be_deleted(data: Synthesised) -> None:
    (deleting,) = [each for _, each, actions in statements(data) if "ec2:DeleteSnapshot" in actions]
    assert deleting["Condition"] == {"StringEquals": {"aws:ResourceTag/cragside:snapshots": "cragside-prod-hosts"}}


def test_a_key_of_ones_own_encrypts_disks_and_secrets(keyed: Synthesised) -> None:
    encrypted = [said["Properties"]["KmsKeyId"] for said in keyed.resources("AWS::SecretsManager::Secret").values()]
    encrypted.append(keyed.properties("AWS::EC2::Volume")["KmsKeyId"])
    for said in launched(keyed).values():
        encrypted += [device["Ebs"]["KmsKeyId"] for device in said["BlockDeviceMappings"]]
    assert encrypted == [KEY] * (2 + 1 + len(HOSTS))


def test_the_data_host_alone_may_use_the_key_for_its_secrets_and_its_volume(keyed: Synthesised) -> None:
    used: dict[str, set[tuple[str, bool]]] = {}
    for host, statement, actions in statements(keyed):
        if statement["Resource"] == KEY:
            granting = statement.get("Condition", {}).get("Bool") == {"kms:GrantIsForAWSResource": "true"}
            used.setdefault(host, set()).update((each, granting) for each in actions)
    assert used == {"Data": {("kms:CreateGrant", True), ("kms:Decrypt", False), ("kms:GenerateDataKey", False)}}


def test_the_data_host_is_in_the_zone_of_its_volume(data: Synthesised) -> None:
    said = tomllib.loads(FILE.read_text())
    groups = data.resources("AWS::AutoScaling::AutoScalingGroup").items()
    (group,) = [each["Properties"] for name, each in groups if name.startswith("Data")]
    assert group["VPCZoneIdentifier"] == [said["subnet_ids"][0]]
    assert data.properties("AWS::EC2::Volume")["AvailabilityZone"] == said["zones"][0]


def test_no_template_and_no_script_has_a_password(data: Synthesised) -> None:
    for secret in data.resources("AWS::SecretsManager::Secret").values():
        assert "SecretString" not in secret["Properties"]
    assert "resolve:secretsmanager" not in json.dumps(data.template)
    assert "SecretString" not in json.dumps([script(said) for said in launched(data).values()])


def test_only_the_data_host_reads_passwords_and_writes_the_uri(data: Synthesised) -> None:
    reading, writing = set(), {}
    for host, statement, actions in statements(data):
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


def test_the_outputs_are_the_servers_of_an_environment(data: Synthesised, smallest: Synthesised) -> None:
    told = {each["Description"].removeprefix("servers."): each["Value"] for each in data.template["Outputs"].values()}
    assert told["ollama_url"] == "http://ollama.prod.cragside.internal:11434"
    assert told["searxng_url"] == "http://searxng.prod.cragside.internal:8080"
    assert told["neo4j_uri"] == "bolt://neo4j.prod.cragside.internal:7687"
    assert set(told) <= set(Servers.model_fields)
    assert [each["Description"] for each in smallest.template["Outputs"].values()] == [
        "servers.postgres_uri_secret_arn"
    ]


def test_the_smallest_servers_are_postgresql_and_the_way_out(smallest: Synthesised) -> None:
    found = launched(smallest)
    assert set(found) == {"Data", "Exit"}
    assert "export SERVICES='postgres'\n" in script(found["Data"])
    assert "export SERVICES=''\n" in script(found["Exit"])
