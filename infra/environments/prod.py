"""prod: the secret and the logs outlive the stack. Its knowledge is named when it is deployed."""

from infra.environments.model import Environment, Throttle
from infra.environments.operations import Operations

PROD = Environment(
    name="prod",
    snap_start=True,
    log_retention_days=365,
    throttle=Throttle(requests_per_second=100, burst=200),
    operations=Operations(canary=True),
    keep_data=True,
)
