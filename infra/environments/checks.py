"""Find faults before a deployment that would show after ten minutes of it, or later."""

from collections.abc import Iterator, Mapping

from infra.environments.knowledge import KnowledgeBucket, Writable
from infra.environments.model import Environment, NotDeployable
from infra.environments.network import ImportedNetwork, NewNetwork
from infra.environments.places import misplaced
from infra.environments.reach import unreachable
from infra.environments.servers import SelfHosted
from infra.environments.settings import problems_of

# AWS keeps these of an account's concurrent executions for functions that reserve none.
_UNRESERVED = 100
# Index functions that a schedule or an operator starts, whatever the queue may start.
_BESIDE_THE_QUEUE = 2
# A function's variables have at most 4 KB together; the rest is for what the stacks add.
_MOST_VARIABLES = 3072
_VISIBILITY = 6
_IN_TAGS = " _.:/=+-@"


def checked(environment: Environment) -> Environment:
    """The same environment. Raises `NotDeployable` with everything that is wrong with it, a line each."""
    found = list(_problems(environment))
    if found:
        raise NotDeployable("\n".join(found))
    return environment


def _problems(environment: Environment) -> Iterator[str]:
    yield from _of_servers(environment)
    yield from unreachable(environment)
    yield from _of_network(environment)
    yield from _of_knowledge(environment)
    yield from _of_concurrency(environment)
    yield from _of_operations(environment)
    yield from misplaced(environment)
    yield from problems_of(environment.settings, _given(environment))
    variables = {**environment.settings, **environment.endpoints.variables}
    if sum(len(name) + len(value) for name, value in variables.items()) > _MOST_VARIABLES:
        yield f"settings: they have more than {_MOST_VARIABLES} characters, and Lambda takes 4 KB of variables"


def _of_servers(environment: Environment) -> Iterator[str]:
    servers, endpoints = environment.servers, environment.endpoints
    if isinstance(servers, SelfHosted) and environment.network is None:
        yield "servers: SelfHosted needs a network: set network=NewNetwork(), or import one"
    if endpoints.has_postgres and environment.network is None:
        yield "servers: PostgreSQL is reached in a network: set network=NewNetwork(), or import one"
    if not endpoints.has_postgres:
        for name in ("neo4j_uri", "redis_uri_secret_arn", "qdrant_url"):
            if getattr(endpoints, name) is not None:
                yield f"servers.{name}: documents are in PostgreSQL: set servers.postgres_uri_secret_arn too"
    if endpoints.neo4j_uri is not None and endpoints.neo4j_password_secret_arn is None:
        yield "servers.neo4j_uri: set servers.neo4j_password_secret_arn too"


def _of_network(environment: Environment) -> Iterator[str]:
    network, knowledge = environment.network, environment.knowledge
    uses_s3 = isinstance(knowledge, (Writable, KnowledgeBucket))
    if isinstance(network, NewNetwork) and uses_s3 and network.s3_prefix_list_id is None:
        yield (
            "network.s3_prefix_list_id: functions use S3. `aws ec2 describe-managed-prefix-lists --filters "
            "Name=prefix-list-name,Values=com.amazonaws.REGION.s3` prints it"
        )
    if not isinstance(network, ImportedNetwork):
        return
    if environment.region is not None and not all(zone.startswith(environment.region) for zone in network.zones):
        yield f"network.zones: they are in another region than {environment.region}"
    hosted = environment.servers
    if isinstance(hosted, SelfHosted) and hosted.searxng_instance and not network.exit_subnet_ids:
        yield "network.exit_subnet_ids: SearXNG needs a way out: name public subnets, or searxng_instance=None"


def _of_knowledge(environment: Environment) -> Iterator[str]:
    knowledge, servers = environment.knowledge, environment.servers
    if not isinstance(knowledge, Writable):
        if servers is not None and servers.has_postgres and knowledge is not None:
            yield "knowledge: it is baked, but servers have PostgreSQL: set knowledge=Writable(), or leave them out"
        return
    if servers is None or not servers.has_postgres:
        yield "knowledge: Writable needs PostgreSQL: set servers=Endpoints(postgres_uri_secret_arn=...) or SelfHosted()"
    if knowledge.visibility_seconds < _VISIBILITY * knowledge.index_timeout_seconds:
        yield (
            f"knowledge.visibility_seconds: {knowledge.visibility_seconds} is less than {_VISIBILITY} times "
            f"index_timeout_seconds, so that tasks would come back while they are worked on: set "
            f"{_VISIBILITY * knowledge.index_timeout_seconds} at least"
        )


def _of_concurrency(environment: Environment) -> Iterator[str]:
    reserved, knowledge, servers = environment.reserved_concurrency, environment.knowledge, environment.servers
    most = environment.account_concurrency - _UNRESERVED
    if reserved is not None and reserved > most:
        yield (
            f"reserved_concurrency: {reserved} leaves less than {_UNRESERVED} of the account's "
            f"{environment.account_concurrency} to other functions, which AWS refuses: at most {max(most, 0)}"
        )
    if not isinstance(knowledge, Writable) or servers is None:
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


def _of_operations(environment: Environment) -> Iterator[str]:
    operations = environment.operations
    if operations.authorisation != "token" and environment.token_secret_arn is not None:
        yield "token_secret_arn: API Gateway authorises requests, so that no token is read: leave it out"
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


def _given(environment: Environment) -> Mapping[str, str]:
    """Return the settings that fields give, with placeholders for secret or unknown addresses."""
    servers, home = environment.servers, {"RAG_HOME": "/tmp/none"}  # noqa: S108 - nothing is opened
    if servers is None or not servers.has_postgres:
        return home
    given = home | {"POSTGRES_URI": "postgresql://postgres/cragside"}
    if isinstance(servers, SelfHosted):
        return given | ({"NEO4J_URI": "neo4j://neo4j"} if servers.neo4j else {})
    optional = {
        "NEO4J_URI": servers.neo4j_uri,
        "QDRANT_URL": servers.qdrant_url,
        "REDIS_URI": servers.redis_uri_secret_arn and "redis://redis",
    }
    return given | {name: value for name, value in optional.items() if value}
