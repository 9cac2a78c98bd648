"""Find faults before a deployment that would show after ten minutes of it, or later."""

import os
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, ip_address
from urllib.parse import urlsplit

from infra.config import (
    COLLECTOR,
    LEAST_TMP_MB,
    Environment,
    Generations,
    ImportedNetwork,
    Indexed,
    Jwt,
    KnowledgeBucket,
    NewNetwork,
    NotDeployable,
    Writable,
)
from infra.settings import settings_problems

# AWS keeps these of an account's concurrent executions for functions that reserve none.
_UNRESERVED = 100
# Index functions that a schedule or an operator starts, whatever the queue may start.
_BESIDE_THE_QUEUE = 2
# A function's variables have at most 4 KB together; the rest is for what the stacks add.
_MOST_VARIABLES = 3072
_VISIBILITY = 6
# What a function writes to `/tmp` beside a store: its program's own small files.
_BESIDE_THE_STORE_MB = 32
_IN_TAGS = " _.:/=+-@"
_PRIVATE_NAMES = (".internal", ".local")
# Names of load balancers and endpoints, which lead to private addresses as well.
_OF_AWS = ".amazonaws.com"


def checked(environment: Environment) -> Environment:
    """Return the same environment. Raises `NotDeployable` with everything that is wrong with it, a line each."""
    found = list(_problems(environment))
    if found:
        raise NotDeployable("\n".join(found))
    return environment


def _problems(environment: Environment) -> Iterator[str]:
    yield from _of_servers(environment)
    yield from _of_addresses(environment)
    yield from _of_network(environment)
    yield from _of_knowledge(environment)
    yield from _of_concurrency(environment)
    yield from _of_api(environment)
    yield from _of_operations(environment)
    yield from _of_places(environment)
    yield from settings_problems(environment.settings, _given(environment))
    variables = {**environment.settings, **environment.servers.variables}
    if sum(len(name) + len(value) for name, value in variables.items()) > _MOST_VARIABLES:
        yield f"settings: they have more than {_MOST_VARIABLES} characters, and Lambda takes 4 KB of variables"


def _of_servers(environment: Environment) -> Iterator[str]:
    servers = environment.servers
    if servers.has_postgres and environment.network is None:
        yield "servers: PostgreSQL is reached in a network: set network=NewNetwork(), or import one"
    if not servers.has_postgres:
        for name in ("postgres_address", "postgres_user_arn", "neo4j_uri", "redis_uri_secret_arn", "qdrant_url"):
            if getattr(servers, name) is not None:
                yield f"servers.{name}: documents are in PostgreSQL: set servers.postgres_uri_secret_arn too"
    if servers.neo4j_uri is not None and servers.neo4j_password_secret_arn is None:
        yield "servers.neo4j_uri: set servers.neo4j_password_secret_arn too"


def _of_addresses(environment: Environment) -> Iterator[str]:
    """Return the hosts that functions cannot reach: servers, a collector of traces, pages."""
    network, knowledge, servers = environment.network, environment.knowledge, environment.servers
    if isinstance(network, NewNetwork) and isinstance(knowledge, Writable) and knowledge.fetch_pages:
        yield (
            "knowledge.fetch_pages: the new network has no way out to pages: leave it out, or import a network that "
            "has one"
        )
    addresses = {f"servers.{name}": url for name, url in servers.urls.items()}
    addresses |= {f"settings: {name}": url for name in COLLECTOR if (url := environment.settings.get(name))}
    for field, url in addresses.items():
        if reason := _unreachable(urlsplit(url).hostname or "", network, servers.cidrs):
            yield f"{field}: {reason}"


def _unreachable(host: str, network: NewNetwork | ImportedNetwork | None, cidrs: tuple[str, ...]) -> str | None:
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    private = address.is_private if address else "." not in host or host.endswith(_PRIVATE_NAMES)
    if network is None:
        return "functions outside of a network cannot reach this private address: set network" if private else None
    if isinstance(network, ImportedNetwork):
        return None
    if address is None:
        if private or cidrs or host.endswith(_OF_AWS):
            return None
        return "the new network has no way out to this public name. If it is private, say in servers.cidrs where it is"
    if not private:
        return "the new network has no way out to this public address"
    ranges = cidrs or (network.cidr,)
    if not any(address in IPv4Network(each) for each in ranges):
        return f"functions may reach {', '.join(ranges)} alone: say in servers.cidrs where it is"
    return None


def _of_network(environment: Environment) -> Iterator[str]:
    network, region = environment.network, environment.region
    uses_s3 = isinstance(environment.knowledge, (Indexed, KnowledgeBucket))
    if isinstance(network, NewNetwork) and uses_s3 and network.s3_prefix_list_id is None:
        yield (
            "network.s3_prefix_list_id: functions use S3. `aws ec2 describe-managed-prefix-lists --filters "
            "Name=prefix-list-name,Values=com.amazonaws.REGION.s3` prints it"
        )
    if isinstance(network, ImportedNetwork) and region and not all(zone.startswith(region) for zone in network.zones):
        yield f"network.zones: they are in another region than {region}"


def _of_knowledge(environment: Environment) -> Iterator[str]:
    knowledge, servers, tmp = environment.knowledge, environment.servers, environment.tmp_mb
    if isinstance(knowledge, Writable) and not servers.has_postgres:
        yield "knowledge: Writable needs PostgreSQL: set servers.postgres_uri_secret_arn"
    if isinstance(knowledge, Indexed) and knowledge.visibility_seconds < _VISIBILITY * knowledge.index_timeout_seconds:
        yield (
            f"knowledge.visibility_seconds: {knowledge.visibility_seconds} is less than {_VISIBILITY} times "
            f"index_timeout_seconds, so that tasks would come back while they are worked on: set "
            f"{_VISIBILITY * knowledge.index_timeout_seconds} at least"
        )
    if servers.has_postgres and knowledge is not None and not isinstance(knowledge, Writable):
        what = "in a bucket" if isinstance(knowledge, Generations) else "baked"
        yield f"knowledge: it is {what}, but servers have PostgreSQL: set knowledge=Writable(), or leave them out"
    if environment.snap_start and tmp > LEAST_TMP_MB:
        yield f"tmp_mb: with SnapStart Lambda gives {LEAST_TMP_MB} MB: set snap_start = false, or leave it out"
    if isinstance(knowledge, KnowledgeBucket) and (knowledge.size_mb or 0) + _BESIDE_THE_STORE_MB > tmp:
        yield f"tmp_mb: {tmp} has no room for a store of {knowledge.size_mb} MB and {_BESIDE_THE_STORE_MB} more"


def _of_concurrency(environment: Environment) -> Iterator[str]:
    reserved, knowledge, servers = environment.reserved_concurrency, environment.knowledge, environment.servers
    most = environment.account_concurrency - _UNRESERVED
    if reserved is not None and reserved > most:
        yield (
            f"reserved_concurrency: {reserved} leaves less than {_UNRESERVED} of the account's "
            f"{environment.account_concurrency} to other functions, which AWS refuses: at most {max(most, 0)}"
        )
    if not isinstance(knowledge, Writable) or not servers.has_postgres:
        return
    if reserved is None:
        yield "reserved_concurrency: unset, functions would open any number of connections to PostgreSQL"
        return
    functions = reserved + knowledge.index_concurrency + _BESIDE_THE_QUEUE
    if functions > most:
        yield (
            f"knowledge.index_concurrency: {functions} functions at once are more than the {max(most, 0)} that the "
            f"account's {environment.account_concurrency} leave to them"
        )
    if functions * knowledge.pool > servers.postgres_connections:
        yield (
            f"servers.postgres_connections: ({reserved} reserved + {knowledge.index_concurrency} index functions + "
            f"{_BESIDE_THE_QUEUE} for sweep and migration) x {knowledge.pool} of each pool = "
            f"{functions * knowledge.pool}, more than {servers.postgres_connections}"
        )


def _of_api(environment: Environment) -> Iterator[str]:
    api, operations = environment.api, environment.operations
    if (api.kind == "private") is not bool(api.vpc_endpoint_ids):
        yield "api.vpc_endpoint_ids: name the endpoints that reach a private API, and none for another one"
    if api.kind == "http":
        if api.web_acl_arn is not None:
            yield 'api.web_acl_arn: AWS WAF does not take HTTP APIs: set api.kind = "rest"'
    elif isinstance(operations.authorisation, Jwt):
        yield 'operations.authorisation: REST APIs check no JWT by themselves: set api.kind = "http"'
    if api.kind == "private" and operations.domain is not None:
        yield "operations.domain: a private API answers under the name of its endpoint: leave it out"


def _of_operations(environment: Environment) -> Iterator[str]:
    operations, alarms = environment.operations, environment.operations.alarms
    tokens = [name for name in ("token_secret_arn", "token_parameter") if getattr(environment, name) is not None]
    if operations.authorisation != "token":
        for name in tokens:
            yield f"{name}: API Gateway authorises requests, so that no token is read: leave it out"
    elif len(tokens) > 1:
        yield "token_parameter: token_secret_arn names the token already: leave one of them out"
    if environment.observability == "none" and (alarms.email or alarms.topic_arn or operations.monthly_budget_usd):
        yield 'observability: "none" has no alarm and no budget to tell of: set "basic", or leave them out'
    # IAM compares keys without their case.
    taken = {"application", "environment"}
    for key, value in operations.tags.items():
        if key.lower().startswith("aws:") or key.lower() in taken:
            yield f"operations.tags: {key} is taken: choose another name"
        taken.add(key.lower())
        for text, most in ((key, 128), (value, 256)):
            if not 1 <= len(text) <= most or not all(each.isalnum() or each in _IN_TAGS for each in text):
                yield (
                    f"operations.tags: {text!r} is no text for a tag: 1 to {most} letters, digits, spaces and "
                    f"{_IN_TAGS.strip()}"
                )


def _of_places(environment: Environment) -> Iterator[str]:
    """Return the resources in another region or account than the environment.

    Where the environment says no region, it is the one that the CDK's command line found; where there is none either,
    everything has to be in the region of the first.
    """
    where = environment.region or os.environ.get("CDK_DEFAULT_REGION") or None
    for name, arn in _arns(environment):
        if arn is None:
            continue
        _, _, _, region, account, *_ = arn.split(":", 6)
        where = where or region
        if region != where or environment.account not in (None, account):
            yield f"{name}: it is in another account or region than the environment: {account} and {region}"


def _arns(environment: Environment) -> Iterator[tuple[str, str | None]]:
    operations = environment.operations
    yield "token_secret_arn", environment.token_secret_arn
    for name, value in environment.servers:
        if name.endswith("_arn"):
            yield f"servers.{name}", value
    yield "api.web_acl_arn", environment.api.web_acl_arn
    yield "operations.kms_key_arn", operations.kms_key_arn
    yield "operations.alarms.topic_arn", operations.alarms.topic_arn
    if operations.domain is not None:
        yield "operations.domain.certificate_arn", operations.domain.certificate_arn


def _given(environment: Environment) -> Mapping[str, str]:
    """Return the settings that fields give, with placeholders for secret or unknown addresses."""
    servers, home = environment.servers, {"RAG_HOME": "/tmp/none"}  # noqa: S108 - nothing is opened
    if not servers.has_postgres:
        return home
    optional = {
        "NEO4J_URI": servers.neo4j_uri,
        "QDRANT_URL": servers.qdrant_url,
        "REDIS_URI": servers.redis_uri_secret_arn and "redis://redis",
    }
    given = home | {"POSTGRES_URI": "postgresql://postgres/cragside"}
    return given | {name: value for name, value in optional.items() if value}
