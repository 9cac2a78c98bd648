"""The environments, each in its own file."""

from infra.environments.dev import DEV
from infra.environments.model import Environment, UnknownEnvironment
from infra.environments.prod import PROD
from infra.environments.staging import STAGING

_ALL: dict[str, Environment] = {environment.name: environment for environment in (DEV, STAGING, PROD)}
NAMES = tuple(_ALL)


def named(name: str | None) -> Environment:
    """The environment with this name. Raises `UnknownEnvironment`, which lists them all."""
    if name not in _ALL:
        raise UnknownEnvironment(name, NAMES)
    return _ALL[name]
