"""Skip or fail tests whose server is missing."""

from collections.abc import Mapping
from typing import NoReturn

import pytest


def stay_down(reason: str, environment: Mapping[str, str], variable: str = "SERVERS") -> NoReturn:
    """Skip, or fail where the variable is `required`, which it is in CI by default; otherwise it is `optional`."""
    wanted = environment.get(variable) or ("required" if environment.get("CI") == "true" else "optional")
    if wanted == "required":
        pytest.fail(f"{reason}\n{variable}=optional skips these tests where that is so.", pytrace=False)
    pytest.skip(reason)
