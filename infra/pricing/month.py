"""A month, and what is billed in it."""

from dataclasses import dataclass

from infra.pricing.prices import Usage

HOURS = 730.0
DAYS = 30.4


@dataclass(frozen=True, slots=True)
class Month:
    """A month with this many requests. `milliseconds` replaces what benchmarks measured of a request."""

    requests: float
    usage: Usage
    milliseconds: float | None = None

    @property
    def documents(self) -> float:
        """Count the documents of a month."""
        return self.requests * self.usage["documents"]


@dataclass(frozen=True, slots=True)
class Charge:
    """A quantity in the unit of a price."""

    what: str
    price: str
    quantity: float
