"""The keyring is made anew only when something has changed."""

from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.access import Keys
from cragside.settings import load_settings


class Outage:
    """A secret store that is down: each question fails anew."""

    def __init__(self) -> None:
        self.reason = "The secret cannot be read."

    def value(self) -> str:
        raise ServiceUnavailable("secrets", self.reason)


def test_a_continuing_outage_keeps_the_keyring() -> None:
    secret = Outage()
    keys = Keys(Container(load_settings({"RAG_API_TOKEN_SECRET": "token"}), secret=secret))
    made = keys.keyring()
    assert keys.keyring() is made
    secret.reason = "The secret is not there."
    assert keys.keyring() is not made
