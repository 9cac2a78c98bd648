"""Where a Neo4j database is."""

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlunsplit

from cragside.adapters.bad_address import ENCODED, BadAddress, split_address

_SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


@dataclass(frozen=True, slots=True)
class Neo4jAddress:
    """A server's address, a user, the password, and the name of a database, None for the user's own."""

    uri: str
    user: str
    password: str = field(repr=False)
    database: str | None = None

    @classmethod
    def parse(
        cls,
        uri: str,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        password_apart: bool = False,
    ) -> "Neo4jAddress":
        """The parts of `neo4j://USER:PASSWORD@HOST:PORT`. Those given beside it come first.

        With `password_apart`, it needs none: it is kept elsewhere. Raises `BadAddress`.
        """
        parts = split_address(uri, *_SCHEMES)
        try:
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise BadAddress(f"the port has to be a number up to 65535. {ENCODED}") from None
        if not host:
            raise BadAddress("name the host: neo4j://HOST:7687")
        if parts.path.strip("/"):
            raise BadAddress("name the database in NEO4J_DATABASE, not behind the host")
        user = user or unquote(parts.username or "")
        password = password or unquote(parts.password or "")
        if not user or not (password or password_apart):
            raise BadAddress("set NEO4J_USERNAME and NEO4J_PASSWORD too")
        _check_options(parts)
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return cls(bare, user, password, database or None)

    def __str__(self) -> str:
        """For messages: without user, password and options."""
        return self.uri.partition("?")[0]


def _check_options(parts: SplitResult) -> None:
    options = parse_qsl(parts.query, keep_blank_values=True)
    if parts.query and not parts.scheme.startswith("neo4j"):
        raise BadAddress("an address that begins with bolt has no options. Leave out what follows the question mark")
    if parts.query and ([name for name, _ in options] != ["policy"] or not options[0][1]):
        raise BadAddress("the only option that it can have is policy, as neo4j://HOST:7687?policy=NAME")
