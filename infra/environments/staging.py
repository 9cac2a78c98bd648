"""staging: production's limits at a fraction of its traffic. Its knowledge is named when it is deployed."""

from infra.environments.model import Environment, Throttle

STAGING = Environment(
    name="staging",
    snap_start=True,
    log_retention_days=30,
    throttle=Throttle(requests_per_second=20, burst=40),
    keep_data=False,
)
