"""The three shapes of a deployment, as examples: docs/deployment.md says which to choose. Their ARNs name nothing."""

from collections.abc import Mapping
from pathlib import Path

from infra.environments.files import fields_of

_EXAMPLES = Path(__file__).parent / "examples"

# What an environment says beside what it is: none of it for the smallest.
SHAPES: Mapping[str, Mapping[str, object]] = {
    "baked": {},
    "managed": fields_of(_EXAMPLES / "managed.toml"),
    "self-hosted": fields_of(_EXAMPLES / "self-hosted.toml"),
}
