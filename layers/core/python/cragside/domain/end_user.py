"""Separates the memories of the people who share a token behind one host, such as Open WebUI."""

import hashlib

from cragside.domain.filter import Condition, Filter

# The field of an exchange's metadata with the name of its user.
FIELD = "endUser"
_LONGEST = 128


def end_user(given: object) -> str:
    """The name of a user as memory keeps it, "" for none. A long or unprintable one is replaced by its digest."""
    name = given.strip() if isinstance(given, str) else ""
    if len(name) <= _LONGEST and name.isprintable():
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"


def exchanges_of(name: str) -> Filter:
    """The exchanges of a user; for "" those that name no user."""
    return Filter((Condition(FIELD, name) if name else Condition(FIELD, None, how="absent"),))
