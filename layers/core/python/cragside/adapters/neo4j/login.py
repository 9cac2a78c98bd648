"""How the driver logs in to Neo4j."""

import neo4j
from neo4j.auth_management import AsyncAuthManager
from neo4j.exceptions import Neo4jError

from cragside.adapters.renewable import Renewable

_WRONG = "Neo.ClientError.Security.Unauthorized"


class Login(AsyncAuthManager):
    """A user with a password that may be exchanged. The driver asks for it before each use of a connection."""

    def __init__(self, user: str, passwords: Renewable[str]) -> None:
        self._user = user
        self._passwords = passwords

    async def get_auth(self) -> neo4j.Auth:
        """See the driver. Raises `Unreadable`."""
        return neo4j.basic_auth(self._user, await self._passwords.current())

    async def handle_security_exception(self, auth: object, error: Neo4jError) -> bool:
        """See the driver. True if there is another password to try again with."""
        if error.code != _WRONG or not isinstance(auth, neo4j.Auth) or auth.credentials is None:
            return False
        return await self._passwords.after_refusal(auth.credentials) is not None
