"""dev: the demo corpus, small limits, nothing kept."""

from infra.environments.knowledge import KnowledgeLayer
from infra.environments.model import Environment, Throttle

DEV = Environment(
    name="dev",
    log_retention_days=7,
    throttle=Throttle(requests_per_second=10, burst=20),
    knowledge=KnowledgeLayer(path="build/knowledge/demo"),
    keep_data=False,
)
