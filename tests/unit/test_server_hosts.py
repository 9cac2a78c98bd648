"""The scripts of hosts on AWS, run with stand-ins for what a host has. They write below a folder."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from dotenv import dotenv_values

from cragside.databases.postgres.address import PostgresAddress
from tests import compose

HOSTS = compose.ROOT / "packaging/hosts"
PASSWORD = "Tr0ub4dorTr0ub4dor"
URI = f"postgresql://cragside:{PASSWORD}@postgres.dev.cragside.internal:5432/cragside"
NAMES = {
    "REGION": "eu-central-1",
    "ZONE": "dev.cragside.internal",
    "ZONE_ID": "Z123",
    "CIDR": "10.64.0.0/20",
    "ASSETS": "cdk-assets-1-eu-central-1",
}
DATA = {
    "ROLE": "data",
    "SERVICES": "postgres neo4j",
    "CONNECTIONS": "200",
    "VOLUME_ID": "vol-0abc",
    "POSTGRES_URI_SECRET": "arn:postgres",
    "NEO4J_PASSWORD_SECRET": "arn:neo4j",
}
# Each notes how it was called. A file that Secrets Manager is given is noted with its text.
STAND_IN = """#!/bin/sh
printf '%s' "$(basename "$0") $*" >> "$CALLS"
for said in "$@"; do case $said in file://*) printf ' <%s>' "$(cat "${said#file://}")" >> "$CALLS";; esac; done
printf '\\n' >> "$CALLS"
"""
AWS = """case "$*" in
*get-secret-value*arn:postgres*) printf '%s\\n' "$STORED" ;;
*get-secret-value*) printf 'n30pass\\n' ;;
*attach-volume*)
    mkdir -p "$ROOT/dev/disk/by-id"
    touch "$ROOT/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0abc" ;;
esac
"""
CURL = """case "$*" in *-X*) echo session ;; *instance-id) echo i-1 ;; *local-ipv4) echo 10.64.1.2 ;; esac
"""
PROGRAMS = {
    "aws": AWS,
    "curl": CURL,
    "blkid": 'exit "${BLKID:-2}"\n',
    **dict.fromkeys(("dnf", "docker", "mkfs.xfs", "mount", "systemctl", "xfs_growfs"), ""),
}


@dataclass
class Host:
    """A folder in place of a host's root."""

    root: Path
    calls: Path

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "ROOT": str(self.root),
            "CALLS": str(self.calls),
            "STORED": PASSWORD,
            **NAMES,
            **variables,
        }
        command = ["sh", str(HOSTS / script)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def called(self, program: str) -> list[str]:
        """Return the arguments of a program."""
        return [line for line in self.calls.read_text().splitlines() if line.startswith(f"{program} ")]

    def read(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    for name, does in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(STAND_IN + does)
        program.chmod(0o755)
    (tmp_path / "etc/dnf").mkdir(parents=True)
    (tmp_path / "etc/dnf/dnf.conf").write_text("[main]\n")
    (tmp_path / "var/lib/cragside").mkdir(parents=True)
    (tmp_path / "opt/cragside/packaging").mkdir(parents=True)
    (tmp_path / "opt/cragside/packaging/hosts").symlink_to(HOSTS)
    return Host(tmp_path, tmp_path / "calls")


def environment_file(host: Host) -> dict[str, str]:
    path = host.root / "run/cragside/env"
    assert path.stat().st_mode & 0o077 == 0
    # Like Compose, it keeps what is between single quotes.
    return {name: value or "" for name, value in dotenv_values(path, interpolate=False).items()}


def test_the_first_start_makes_the_uri_from_the_generated_password(host: Host) -> None:
    done = host.run("start.sh", **DATA)
    assert done.returncode == 0, done.stderr
    (put,) = [call for call in host.called("aws") if "put-secret-value" in call]
    assert put.endswith(f"<{URI}>")
    assert not (host.root / "run/cragside/uri").exists()
    given = environment_file(host)
    assert (given["CRAGSIDE_POSTGRES_PASSWORD"], given["CRAGSIDE_NEO4J_PASSWORD"]) == (PASSWORD, "n30pass")
    assert given["CRAGSIDE_POSTGRES_CONNECTIONS"] == "200"


@pytest.mark.parametrize("uri", [URI, f"postgres://cragside:{PASSWORD}@pooler.internal:6432/cragside?sslmode=require"])
def test_a_later_start_takes_the_password_out_of_the_uri(host: Host, uri: str) -> None:
    assert host.run("start.sh", **DATA, STORED=uri).returncode == 0
    assert not [call for call in host.called("aws") if "put-secret-value" in call]
    assert environment_file(host)["CRAGSIDE_POSTGRES_PASSWORD"] == PASSWORD


@pytest.mark.parametrize("password", ["pa$$w0rd", "a${HOME}b", "it's", 'say "x" # no', "$(id)`id`"])
def test_a_password_reaches_the_servers_as_it_is(host: Host, password: str) -> None:
    done = host.run("start.sh", **DATA, STORED=f"postgresql://cragside:{password}@pooler.internal:6432/cragside")
    assert done.returncode == 0, done.stderr
    assert environment_file(host)["CRAGSIDE_POSTGRES_PASSWORD"] == password
    assert "\nCRAGSIDE_POSTGRES_PASSWORD='" in host.read("run/cragside/env")  # else Compose would fill `$` in


@pytest.mark.parametrize(("written", "password"), [("p%40ss%3A%2Fw%25rd", "p@ss:/w%rd"), ("%C3%A4+%zz%2", "ä+%zz%2")])
def test_a_password_is_the_same_for_servers_and_functions(host: Host, written: str, password: str) -> None:
    uri = f"postgresql://cragside:{written}@pooler.internal:6432/cragside"
    done = host.run("start.sh", **DATA, STORED=uri)
    assert done.returncode == 0, done.stderr
    assert environment_file(host)["CRAGSIDE_POSTGRES_PASSWORD"] == password == PostgresAddress.parse(uri).password


@pytest.mark.parametrize(
    ("written", "told"),
    [
        pytest.param("pw1%0A", "Choose another", id="a line's end would be lost on its way"),
        pytest.param("pw1%00", "Choose another", id="a null byte would be lost on its way"),
        pytest.param("pw1%FF", "Choose another", id="a byte that is no text would change on its way"),
        pytest.param("pw1\\'pw1", "has a backslash", id="Compose cannot be told it"),
    ],
)
def test_a_password_that_cannot_be_passed_on_is_refused_and_not_shown(host: Host, written: str, told: str) -> None:
    done = host.run("start.sh", **DATA, STORED=f"postgresql://cragside:{written}@pooler.internal:6432/cragside")
    assert done.returncode != 0
    assert told in done.stderr
    assert "pw1" not in done.stdout + done.stderr
    assert not host.called("docker")


@pytest.mark.parametrize("uri", ["postgresql://app:pw1pw1@pooler.internal:6432/cragside", "postgres://h/pw1pw1"])
def test_a_uri_that_an_operator_wrote_is_left_as_it_is(host: Host, uri: str) -> None:
    done = host.run("start.sh", **DATA, STORED=uri)
    assert done.returncode == 0, done.stderr
    assert not [call for call in host.called("aws") if "put-secret-value" in call]
    assert "left as it is" in done.stderr
    assert "pw1pw1" not in done.stdout + done.stderr


def test_the_role_of_a_database_that_no_secret_names_has_one_password_at_each_boot(host: Host) -> None:
    given = []
    for _ in range(2):
        assert host.run("start.sh", **DATA, STORED="postgresql://app:pw1pw1@pooler.internal/cragside").returncode == 0
        given.append(environment_file(host)["CRAGSIDE_POSTGRES_PASSWORD"])
    assert given[0] == given[1]
    assert re.fullmatch(r"[0-9a-f]{48}", given[0])
    kept = host.root / "var/lib/cragside/postgres-password"
    assert (kept.read_text(), kept.stat().st_mode & 0o077) == (given[0], 0)


def test_a_volume_that_was_made_larger_is_used_before_its_databases_start(host: Host) -> None:
    assert host.run("start.sh", **DATA).returncode == 0
    assert host.called("xfs_growfs") == [f"xfs_growfs {host.root}/var/lib/cragside"]
    programs = [line.split()[0] for line in host.calls.read_text().splitlines()]
    assert programs.index("xfs_growfs") < programs.index("docker")


def test_databases_start_on_a_volume_that_does_not_grow(host: Host) -> None:
    (host.root / "bin/xfs_growfs").write_text("#!/bin/sh\nexit 1\n")
    done = host.run("start.sh", **DATA)
    assert done.returncode == 0
    assert "keeps its size" in done.stderr
    assert host.called("docker")


def test_a_host_without_a_volume_grows_none(host: Host) -> None:
    assert host.run("start.sh", ROLE="exit", SERVICES="searxng").returncode == 0
    assert not host.called("xfs_growfs")


def test_no_argument_and_no_output_has_a_password(host: Host) -> None:
    done = host.run("start.sh", **DATA)
    calls = re.sub(r"<.*>", "", host.calls.read_text())  # what a file held
    for secret in (PASSWORD, "n30pass", environment_file(host)["CRAGSIDE_SEARXNG_SECRET"]):
        assert secret not in calls + done.stdout + done.stderr


def test_a_host_takes_the_names_of_its_servers(host: Host) -> None:
    host.run("start.sh", **DATA)
    (call,) = [call for call in host.called("aws") if "route53" in call]
    (batch,) = [json.loads(found) for found in re.findall(r"--change-batch (\{.*\})", call)]
    records = [change["ResourceRecordSet"] for change in batch["Changes"]]
    assert {record["Name"] for record in records} == {f"{name}.dev.cragside.internal" for name in ("postgres", "neo4j")}
    assert all(record["ResourceRecords"] == [{"Value": "10.64.1.2"}] for record in records)


@pytest.mark.parametrize(
    ("said", "names", "brought_up"),
    [
        ({"ROLE": "exit", "SERVICES": "searxng"}, ["exit", "searxng"], ["searxng"]),
        ({"ROLE": "exit", "SERVICES": ""}, ["exit"], []),
        ({"ROLE": "ollama", "SERVICES": "ollama-gpu", "MODELS": "yes"}, ["ollama"], ["ollama-gpu", "models"]),
    ],
)
def test_a_host_brings_up_its_own_servers(
    host: Host, said: dict[str, str], names: list[str], brought_up: list[str]
) -> None:
    done = host.run("start.sh", **said)
    assert done.returncode == 0, done.stderr
    assert re.findall(r'"Name":"([a-z]+)\.dev', host.calls.read_text()) == names
    assert [call.split()[-1] for call in host.called("docker")] == brought_up


def test_a_host_without_its_secret_does_not_start_its_servers(host: Host) -> None:
    failing = host.root / "bin/aws"
    failing.write_text(STAND_IN + 'case "$*" in *get-secret-value*) exit 254 ;; esac\n')
    assert host.run("start.sh", **DATA).returncode != 0
    assert not host.called("docker")


def test_a_new_volume_is_formatted_and_mounted(host: Host) -> None:
    done = host.run("prepare.sh", **DATA)
    assert done.returncode == 0, done.stderr
    attaching = [call.split()[2] for call in host.called("aws") if " ec2 " in call]
    assert attaching == ["wait", "attach-volume"]
    assert len(host.called("mkfs.xfs")) == 1
    assert host.called("mount") == [f"mount {host.root}/var/lib/cragside"]
    assert json.loads(host.read("etc/docker/daemon.json")) == {"data-root": "/var/lib/cragside/docker"}


@pytest.mark.parametrize(("blkid", "ends"), [("0", 0), ("4", 1), ("8", 1)])
def test_a_volume_that_holds_something_is_never_formatted(host: Host, blkid: str, ends: int) -> None:
    assert host.run("prepare.sh", **DATA, BLKID=blkid).returncode == ends
    assert not host.called("mkfs.xfs")
    assert bool(host.called("mount")) is (ends == 0)


def test_a_volume_that_does_not_appear_ends_the_preparation(host: Host) -> None:
    (host.root / "bin/aws").write_text(STAND_IN)
    done = host.run("prepare.sh", **DATA, TRIES="1")
    assert (done.returncode, done.stderr) == (1, "the volume vol-0abc did not appear\n")


def test_a_host_without_a_way_out_uses_the_one_that_has_it(host: Host) -> None:
    host.run("prepare.sh", **DATA)
    proxy = "http://exit.dev.cragside.internal:3128"
    assert f"proxy={proxy}\n" in host.read("etc/dnf/dnf.conf")
    for unit in ("docker", "amazon-ssm-agent", "cragside-servers"):
        assert f"HTTPS_PROXY={proxy} " in host.read(f"etc/systemd/system/{unit}.service.d/proxy.conf")
    containers = json.loads(host.read("root/.docker/config.json"))["proxies"]["default"]
    assert containers["httpsProxy"] == proxy
    assert {"ollama", "169.254.169.254"} <= set(containers["noProxy"].split(","))
    assert "squid" not in host.calls.read_text()


def test_the_way_out_serves_the_network_alone(host: Host) -> None:
    done = host.run("prepare.sh", ROLE="exit", SERVICES="searxng")
    assert done.returncode == 0, done.stderr
    rules = host.read("etc/squid/squid.conf")
    assert "acl network src 10.64.0.0/20\n" in rules
    allowing = [line for line in rules.splitlines() if line.startswith("http_access")]
    assert allowing[0] == "http_access deny !network"
    assert allowing[-1] == "http_access deny all"
    assert not (host.root / "root/.docker/config.json").exists()


def test_the_way_out_leads_to_what_hosts_call_of_aws_and_to_no_other_service_or_region(host: Host) -> None:
    for script in ("prepare.sh", "start.sh"):
        assert host.run(script, **DATA).returncode == 0
    host.run("prepare.sh", ROLE="exit", SERVICES="searxng")
    rules = host.read("etc/squid/squid.conf")
    assert "@" not in rules
    wanted = [name for line in re.findall(r"acl wanted dstdomain (.*)", rules) for name in line.split()]

    def leads_to(name: str) -> bool:
        return any(name == each or (each.startswith(".") and f".{name}".endswith(each)) for each in wanted)

    services = {"cloudformation", "s3"} | {call.split()[1] for call in host.called("aws")}
    assert services == {"cloudformation", "ec2", "route53", "s3", "secretsmanager"}
    hosts = {f"{name}.eu-central-1.amazonaws.com" for name in {*services, "ssm", "ssmmessages"} - {"route53", "s3"}}
    hosts |= {"route53.amazonaws.com", "cdk-assets-1-eu-central-1.s3.eu-central-1.amazonaws.com"}
    hosts |= {"al2023-repos-eu-central-1-de612dc2.s3.dualstack.eu-central-1.amazonaws.com"}
    assert not [name for name in hosts if not leads_to(name)]
    others = ["lambda.eu-central-1.amazonaws.com", "ec2.us-east-1.amazonaws.com", "x.s3.us-east-1.amazonaws.com"]
    others += ["x.s3.eu-central-1.amazonaws.com", "x.s3.dualstack.eu-central-1.amazonaws.com"]
    others += [
        "s3.eu-central-1.amazonaws.com",
        "x.r2.cloudflarestorage.com",
        "x.s3.amazonaws.com",
        "evil.amazonaws.com",
        "ec2.eu-central-1.api.aws",
    ]
    assert not [name for name in others if leads_to(name)]


def test_the_service_of_a_boot_gets_names_and_no_secret(host: Host) -> None:
    host.run("prepare.sh", **DATA, DB_PASSWORD=PASSWORD)
    said = dict(line.split("=", 1) for line in host.read("etc/cragside/host.env").splitlines())
    wanted = {key: value for key, value in {**NAMES, **DATA}.items() if key not in ("CIDR", "ASSETS", "VOLUME_ID")}
    assert {key: said[key] for key in wanted} == wanted
    assert PASSWORD not in "".join(said.values())
    assert "packaging/hosts/start.sh" in host.read("etc/systemd/system/cragside-servers.service")


def test_the_overlay_publishes_each_server_that_functions_reach_and_no_other() -> None:
    overlay = yaml.safe_load((HOSTS / "compose.yml").read_text())
    published = {name: said["ports"] for name, said in overlay["services"].items()}
    assert published == {
        "postgres": ["5432:5432"],
        "neo4j": ["7687:7687"],
        "searxng": ["8080:8080"],
        "ollama-gpu": ["11434:11434"],
    }
    assert published.keys() <= compose.services().keys()
    assert set(overlay["networks"]) <= set(yaml.safe_load(compose.TEXT)["networks"])


def test_postgresql_gets_the_number_of_connections_that_the_overlay_says(host: Host) -> None:
    program = host.root / "bin/postgres"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (host.root / "PG_VERSION").write_text("17")
    command = yaml.safe_load((HOSTS / "compose.yml").read_text())["services"]["postgres"]["command"]
    said = [compose.filled_in(word, {"CRAGSIDE_POSTGRES_CONNECTIONS": "200"}) for word in command]
    variables = {"PATH": f"{host.root}/bin:{os.environ['PATH']}", "PGDATA": str(host.root), "CALLS": str(host.calls)}
    subprocess.run(["sh", str(HOSTS.parent / "postgres/start.sh"), *said], env=variables, check=True)
    assert host.called("postgres")[0].endswith(" -c max_connections=200")


def test_a_host_says_all_that_the_compose_file_asks_for(host: Host) -> None:
    host.run("start.sh", **DATA)
    assert compose.secrets() <= environment_file(host).keys()


@pytest.fixture(params=["prepare.sh", "start.sh"])
def script(request: pytest.FixtureRequest) -> Callable[[], str]:
    return (HOSTS / request.param).read_text


def test_a_script_ends_at_the_first_failure_and_at_a_missing_name(script: Callable[[], str]) -> None:
    assert "\nset -eu\n" in script()
    assert ': "${ROLE:?}"' in script()
