"""The three shapes of a deployment, as examples: docs/deployment.md says which to choose. Their ARNs name nothing."""

from collections.abc import Mapping

from infra.environments.knowledge import Writable
from infra.environments.network import NewNetwork
from infra.environments.servers import Endpoints, SelfHosted

_NETWORK = NewNetwork(s3_prefix_list_id="pl-0123456789abcdef0")
_URI = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:cragside/postgres-AbC123"

# What an environment says beside what it is: none of it for the smallest.
SHAPES: Mapping[str, Mapping[str, object]] = {
    "baked": {},
    "managed": {
        "region": "eu-central-1",
        "network": _NETWORK,
        "servers": Endpoints(
            ollama_url="http://ollama.internal:11434",
            searxng_url="http://searxng.internal:8080",
            postgres_uri_secret_arn=_URI,
        ),
        "knowledge": Writable(),
        "reserved_concurrency": 20,
    },
    "self-hosted": {
        "region": "eu-central-1",
        "network": _NETWORK,
        "servers": SelfHosted(),
        "knowledge": Writable(),
        "reserved_concurrency": 40,
    },
}
