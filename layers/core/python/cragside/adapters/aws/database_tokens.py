"""Passwords for databases of RDS, made from AWS' credentials."""

import asyncio

from cragside.adapters.aws.client import AwsClient
from cragside.domain.errors import ServiceUnavailable

_SUBJECT = "auth=iam in POSTGRES_URI"


class DatabaseTokens:
    """Makes a password for each connection. RDS takes it for 15 minutes, and the connection stays open afterwards.

    RDS is not asked: the password is a signature by the credentials. Its region is the client's.
    """

    def __init__(self, host: str, port: int, user: str) -> None:
        self._place = {"DBHostname": host, "Port": port, "DBUsername": user}
        self._rds = AwsClient("rds", _SUBJECT, component="knowledge_base", read_seconds=3)

    async def make(self) -> str:
        """A new password. Raises `ServiceUnavailable` and `ConfigurationError`."""
        # Credentials may come from a service of the machine's, which is asked over HTTP.
        return await asyncio.to_thread(self._made)

    def _made(self) -> str:
        with self._rds.connected(_no_refusal) as client:
            return str(client.generate_db_auth_token(**self._place))


def _no_refusal(_: str) -> ServiceUnavailable | None:
    return None
