"""The names of the stacks of an environment."""

from infra.environments.knowledge import Writable
from infra.environments.model import Environment
from infra.environments.servers import SelfHosted

# What `make pipeline` deploys, which no other command touches.
PIPELINE = "pipeline"


def stack_prefix(environment: Environment) -> str:
    """Return the prefix of the names of all its stacks."""
    return f"cragside-{environment.name}-"


def stack_names(environment: Environment) -> tuple[str, ...]:
    """The stacks that it deploys, the first that the others need first."""
    has = {
        "network": environment.network is not None,
        "data": environment.network is not None and isinstance(environment.servers, SelfHosted),
        "knowledge": isinstance(environment.knowledge, Writable),
        "service": True,
        "observability": True,
    }
    return tuple(f"{stack_prefix(environment)}{name}" for name, there in has.items() if there)
