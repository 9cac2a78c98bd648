"""A writer of generations that is killed while it publishes: `before` or `after` S3 has the new one."""

import os
import signal
import sys
from typing import Any

from cragside.adapters.aws.versions import S3VersionedStore
from cragside.entrypoints.aws_lambda.publishing import start


class Context:
    """Lambda's context, with a minute left."""

    function_name = function_version = memory_limit_in_mb = invoked_function_arn = aws_request_id = "killed"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def main(moment: str, workspace: str) -> None:
    """Write what waits for a workspace, until the process kills itself."""
    replace = S3VersionedStore.replace

    async def killed(self: S3VersionedStore, name: str, *given: Any, **named: Any) -> str:
        if not name.startswith("ws/"):
            return await replace(self, name, *given, **named)
        if moment == "after":
            await replace(self, name, *given, **named)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    S3VersionedStore.replace = killed  # type: ignore[method-assign]
    start()({"Records": [record(workspace)]}, Context())


def record(workspace: str) -> dict[str, Any]:
    """Return a message that has the workspace as its group."""
    attributes = {"MessageGroupId": workspace, "ApproximateReceiveCount": "1"}
    return {"messageId": "1", "receiptHandle": "none", "body": '{"look":true}', "attributes": attributes}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
