"""Names the people who share a token behind one host, such as Open WebUI, and separates their memories."""

import hashlib
import json

from cragside.domain.filter import Condition, Filter

# The field of an exchange's metadata with the name of its user.
FIELD = "endUser"
_LONGEST = 128


def end_user_name(given: object) -> str:
    """The name of a user as memory keeps it, "" for none.

    A name that is long, unprintable or no text is replaced by its digest.
    """
    if given is None:
        return ""
    is_text = isinstance(given, str)
    name = str(given).strip() if is_text else json.dumps(given, sort_keys=True, default=str)
    if is_text and len(name) <= _LONGEST and name.isprintable():
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"


def exchanges_of(name: str) -> Filter:
    """The exchanges of a user; for "" those that name no user."""
    return Filter((Condition(FIELD, name) if name else Condition(FIELD, None, how="absent"),))
