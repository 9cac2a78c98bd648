"""Prices and usage, read from prices.toml and usage.toml."""

import datetime
import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

_INFRA = Path(__file__).parent.parent


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Price(_Data):
    """US dollars for one unit. A unit of a million counts in millions."""

    usd: float = Field(gt=0)
    unit: str
    source: str = Field(pattern=r"^https://aws\.amazon\.com/")
    seen: str | None = Field(None, pattern=r"^https://")

    @property
    def checked(self) -> bool:
        """Return True if the figure was read on a page, rather than remembered."""
        return self.seen is not None


class Prices(_Data):
    """The prices of one region on one day, and the types of resources that cost nothing, with reasons."""

    region: str
    written: datetime.date
    prices: dict[str, Price]
    free: dict[str, str]


class Measured(_Data):
    """A figure of a benchmark; `quote` are the words of the file `source` that have it."""

    value: float
    what: str
    source: str
    quote: str


class Assumed(_Data):
    """A guess and its reason."""

    value: float
    why: str


class Usage(_Data):
    """Consumption of a request."""

    measured: dict[str, Measured]
    assumed: dict[str, Assumed]

    def __getitem__(self, name: str) -> float:
        """The figure of this name, measured or assumed."""
        found = self.measured.get(name) or self.assumed[name]
        return found.value


@cache
def load_prices() -> Prices:
    """The prices of prices.toml."""
    return Prices.model_validate(tomllib.loads((_INFRA / "prices.toml").read_text()))


@cache
def load_usage() -> Usage:
    """The figures of usage.toml."""
    return Usage.model_validate(tomllib.loads((_INFRA / "usage.toml").read_text()))
