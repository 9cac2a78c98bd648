"""Check that all resources of an environment are in its region and account."""

import os
from collections.abc import Iterator

from infra.environments.model import Environment

_ARN_FIELDS = 6


def misplaced(environment: Environment) -> Iterator[str]:
    """Return the resources in another region or account than the environment, a line each.

    Where the environment says no region, it is the one that the CDK's command line found; where there is none either,
    everything has to be in the region of the first.
    """
    where = environment.region or os.environ.get("CDK_DEFAULT_REGION") or None
    for name, arn in _arns(environment):
        if arn is None:
            continue
        _, _, _, region, account, *_ = arn.split(":", _ARN_FIELDS)
        where = where or region
        if region != where or environment.account not in (None, account):
            yield f"{name}: it is in another account or region than the environment: {account} and {region}"


def _arns(environment: Environment) -> Iterator[tuple[str, str | None]]:
    operations = environment.operations
    yield "token_secret_arn", environment.token_secret_arn
    for name, value in environment.servers or ():
        if name.endswith("_secret_arn"):
            yield f"servers.{name}", value
    yield "operations.kms_key_arn", operations.kms_key_arn
    yield "operations.alarms.topic_arn", operations.alarms.topic_arn
    if operations.domain is not None:
        yield "operations.domain.certificate_arn", operations.domain.certificate_arn
