"""Prints what an environment costs a month: python -m infra.costs build/cdk/dev."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.pricing.charges import RULES, bill
from infra.pricing.month import Month
from infra.pricing.prices import Prices, Usage, load_prices, load_usage
from infra.pricing.templates import Resource, resources_of

VOLUMES = (10_000, 1_000_000, 10_000_000)
_WIDTH = 44


def unpriced(resources: Sequence[Resource], prices: Prices) -> set[str]:
    """The types of resources that have neither a rule nor a reason to be free, and prices that are not there."""
    kinds = {resource.type for resource in resources if not resource.type.startswith("Custom::")}
    asked = {price for _, price in bill(resources, Month(1, load_usage())).quantities}
    return (kinds - RULES.keys() - prices.free.keys()) | (asked - prices.prices.keys())


def report(resources: Sequence[Resource], prices: Prices, usage: Usage, milliseconds: float | None = None) -> str:
    """Fixed and variable cost a month, what was measured, what is assumed, and which prices were not checked."""

    def known(requests: float) -> dict[tuple[str, str], float]:
        found = bill(resources, Month(requests, usage, milliseconds)).quantities
        return {key: quantity for key, quantity in found.items() if key[1] in prices.prices}

    fixed, months = known(0), [known(requests) for requests in VOLUMES]
    usd = {key: prices.prices[key[1]].usd for key in months[-1]}
    lines = [
        f"US dollars a month in {prices.region}, prices of {prices.written}, without taxes, free tiers, discounts."
    ]
    lines += ["", "fixed", *(_row(key[0], fixed[key] * usd[key]) for key in sorted(fixed) if fixed[key])]
    lines += ["", _row("requests a month", *(f"{requests:,}" for requests in VOLUMES))]
    for key in sorted(months[-1]):
        variable = [(month[key] - fixed.get(key, 0.0)) * usd[key] for month in months]
        lines += [_row(key[0], *variable)] if variable[-1] else []
    base = sum(fixed[key] * usd[key] for key in fixed)
    whole = [sum(month[key] * usd[key] for key in month) for month in months]
    lines += [_row("fixed", *[base] * len(VOLUMES)), _row("total", *whole)]
    used = {price for _, price in months[-1]}
    return "\n".join([*lines, "", *_notes(used, prices, usage, milliseconds)])


def _notes(used: set[str], prices: Prices, usage: Usage, milliseconds: float | None) -> list[str]:
    unchecked = sorted(name for name in used if not prices.prices[name].checked)
    measured = [f"  {found.value:g}: {found.what} ({found.source})" for found in usage.measured.values()]
    if milliseconds is not None:
        measured = [f"  {milliseconds:g} ms a request, as given"]
    assumed = [f"  {name} = {found.value:g}: {found.why}" for name, found in usage.assumed.items()]
    return [
        "Not checked, from memory: " + (", ".join(unchecked) or "none") + ".",
        *(["Measured on another machine, not on AWS:", *measured]),
        *(["Assumed, in infra/usage.toml:", *assumed]),
    ]


def _row(what: str, *cells: float | str) -> str:
    shown = (cell if isinstance(cell, str) else f"{cell:,.2f}" for cell in cells)
    return f"  {what:{_WIDTH}}" + "".join(f"{cell:>14}" for cell in shown)


def _milliseconds(text: str) -> float:
    """Parse a measured figure. Raises `ArgumentTypeError`."""
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = math.nan
    if not 0 < milliseconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of milliseconds above 0")
    return milliseconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the costs of a folder of templates. Return 1 if a type has no price, 2 if there is no template."""
    parser = argparse.ArgumentParser(prog="python -m infra.costs", description="What an environment costs a month.")
    parser.add_argument("assembly", type=Path, help="folder of the templates, which `make synth` writes")
    parser.add_argument("--milliseconds", type=_milliseconds, help="billed time of a request, measured in your account")
    given = parser.parse_args(arguments)
    try:
        resources = resources_of(given.assembly)
    except FileNotFoundError as error:
        print(f"{error.filename} is not there. `make synth` writes the templates.", file=sys.stderr)
        return 2
    print(report(resources, load_prices(), load_usage(), given.milliseconds))
    missing = sorted(unpriced(resources, load_prices()))
    if missing:
        print(f"No price in infra/prices.toml: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
