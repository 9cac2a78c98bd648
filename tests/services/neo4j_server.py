"""The real Neo4j 5.26 Community from Maven, on a free loopback port.

    python -m tests.services.neo4j_server        # prints the address, serves until interrupted

It needs Java 17 or 21 and Maven. Its jars are 116 MB.
"""

import os
import secrets
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import neo4j

from tests.services import tools
from tests.services.server import LoggingServer
from tests.services.tools import Unavailable

VERSION = "5.26.16"
_ARTIFACTS = (("org.neo4j", "neo4j"), ("org.neo4j.app", "neo4j-server"))
_PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>server</artifactId><version>1</version>
<dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_CONFIGURATION = """\
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=32m
db.tx_log.preallocate=false
dbms.usage_report.enabled=false
"""
_OPENED = ("java.nio", "java.io", "sun.nio.ch")


class Neo4jServer(LoggingServer):
    """One with an empty database. Raises `Unavailable` from `start`."""

    ready = "INFO  Started."

    def __init__(self, *, heap: str = "512m") -> None:
        super().__init__("neo4j")
        self._heap = heap
        self._password = secrets.token_hex(8)
        self._has_password = False

    @property
    def uri(self) -> str:
        """Its address, with name and password."""
        return f"bolt://neo4j:{self._password}@127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Return its output since it was started, with its own log."""
        own = self.home / "logs" / "neo4j.log"
        return super().log + (own.read_text(errors="replace") if own.exists() else "")

    def version(self) -> str:
        """Return name and version as the server tells them."""
        return Neo4j(self.uri).version()

    def start(self) -> None:
        """Start it, with a password of its own from the first time on. Raises `Unavailable`."""
        super().start()
        if not self._has_password:
            change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password"
            with _driver(f"bolt://neo4j:neo4j@127.0.0.1:{self.port}") as driver:
                driver.execute_query(change, password=self._password, database_="system")
            self._has_password = True

    def command(self) -> list[str]:
        """Java, with the jars of the cache folder."""
        jars = jars_folder()
        configuration = self.home / "conf"
        configuration.mkdir(exist_ok=True)
        (configuration / "neo4j.conf").write_text(_CONFIGURATION.format(port=self.port))
        (self.home / "logs" / "neo4j.log").unlink(missing_ok=True)
        small = [f"-Xmx{self._heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        folders = [f"--home-dir={self.home}", f"--config-dir={configuration}"]
        return ["java", *small, *opened, "-cp", f"{jars}/*", "org.neo4j.server.CommunityEntryPoint", *folders]

    def environment(self) -> dict[str, str]:
        """Nothing but the path, the home folder and Java's own."""
        kept = ("HOME", "JAVA_HOME")
        return super().environment() | {name: os.environ[name] for name in kept if name in os.environ}


class Neo4j:
    """A running server, in whose only database each test gets labels of its own."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @property
    def address(self) -> str:
        """Its address without name and password, as Neo4j's drivers want it."""
        parts = urlsplit(self.uri)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    @property
    def auth(self) -> tuple[str, str]:
        """Name and password."""
        return _auth(self.uri)

    @asynccontextmanager
    async def label(self) -> AsyncIterator[str]:
        """A label that no other test has. Nodes, constraints and indexes of labels that begin with it are removed."""
        label = f"test_{secrets.token_hex(4)}"
        yield label
        async with neo4j.AsyncGraphDatabase.driver(self.address, auth=self.auth) as driver:
            mine = "WHERE any(label IN labelsOrTypes WHERE label STARTS WITH $label)"
            for kind in ("CONSTRAINT", "INDEX"):
                asked = f"SHOW {kind} YIELD name, labelsOrTypes {mine} RETURN name"
                found = await driver.execute_query(asked, label=label)
                for (name,) in found.records:
                    await driver.execute_query(f"DROP {kind} `{name}` IF EXISTS")
            nodes = "MATCH (n) WHERE any(label IN labels(n) WHERE label STARTS WITH $label) DETACH DELETE n"
            await driver.execute_query(nodes, label=label)

    def version(self) -> str:
        """Return name and version as the server tells them. Raises `Unavailable` if it does not answer."""
        try:
            with _driver(self.uri) as driver:
                asked = "CALL dbms.components() YIELD name, versions, edition RETURN versions[0], edition"
                number, edition = driver.execute_query(asked).records[0]
        except neo4j.exceptions.Neo4jError as error:
            raise Unavailable(f"Neo4j refused: {error.code}") from error
        except neo4j.exceptions.DriverError as error:
            raise Unavailable(f"Neo4j did not answer: {type(error).__name__}") from error
        return f"Neo4j {number} {edition}"


def _driver(uri: str) -> neo4j.Driver:
    return neo4j.GraphDatabase.driver(Neo4j(uri).address, auth=_auth(uri), connection_timeout=10)


def _auth(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return unquote(parts.username or "neo4j"), unquote(parts.password or "")


def jars_folder() -> Path:
    """The folder of the jars, fetched at the first call."""
    for tool, wanted in (("java", "Java 17 or 21"), ("mvn", "Maven")):
        if shutil.which(tool) is None:
            raise Unavailable(f"Neo4j needs {wanted} ({tool} is not on the path)")
    folder = tools.cache(f"neo4j-{VERSION}")
    jars = folder / "jars"
    with tools.exclusive(folder):
        if not jars.exists():
            listed = "".join(_DEPENDENCY.format(*artifact, VERSION) for artifact in _ARTIFACTS)
            (folder / "pom.xml").write_text(_PROJECT.format(listed))
            fetched = folder / "fetched"
            tools.remove(fetched)
            copy = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
            tools.run(["mvn", "--quiet", "--batch-mode", *copy], cwd=folder)
            fetched.rename(jars)
    return jars


def main() -> None:
    """Serve until interrupted."""
    with Neo4jServer() as running, suppress(KeyboardInterrupt):
        print(running.uri, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
