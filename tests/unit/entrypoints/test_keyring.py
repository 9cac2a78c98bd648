"""The keyring is made anew only when something has changed."""

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.keyring import Keys
from cragside.settings import Settings, load_settings


class Outage:
    """A secret store that is down: each question fails anew."""

    def __init__(self) -> None:
        self.settings: Settings = load_settings({"RAG_API_TOKEN": "secret"})
        self.reason = "The secret cannot be read."

    def api_token(self) -> str | None:
        raise ServiceUnavailable("secrets", self.reason)

    def issued_tokens(self) -> tuple[()]:
        return ()


def test_an_outage_that_goes_on_makes_no_new_keyring() -> None:
    source = Outage()
    keys = Keys(source)
    made = keys.keyring()
    assert keys.keyring() is made
    source.reason = "The secret is not there."
    assert keys.keyring() is not made
