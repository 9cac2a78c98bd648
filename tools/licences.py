"""Checks the licences of all dependencies against `[tool.licences]` of pyproject.toml: python -m tools.licences.

Licences come from the installed metadata. `runtime` is for packages that cragside ships or installs, `development` for
those that only tests, builds and deployments need.
"""

import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_ROOT = "cragside[aws,ocr,office,servers]"
# The SPDX identifiers of Trove classifiers and common free texts.
_SPDX = {
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_NO_LICENCE = ("OSI Approved", "DFSG approved")


class Unreadable(Exception):
    """A licence that is not an SPDX expression."""


def stated(found: Distribution) -> str:
    """The licence as an SPDX expression, or else as in the metadata; "" for none."""
    metadata = found.metadata
    if expressions := metadata.get_all("License-Expression"):
        return str(expressions[0])
    classifiers = [entry.split(" :: ")[-1] for entry in metadata.get_all("Classifier") or [] if "License ::" in entry]
    named = [_SPDX.get(entry, entry) for entry in classifiers if entry not in _NO_LICENCE]
    if named:
        return " AND ".join(named)
    text = "".join(metadata.get_all("License") or []).strip()
    return _SPDX.get(text, text)


def permitted(expression: str, allowed: Collection[str]) -> bool:
    """Return True if an SPDX expression permits the use under the allowed licences alone. Raises `Unreadable`."""
    try:
        canonicalize_license_expression(expression)
    except InvalidLicenseExpression as error:
        raise Unreadable(expression) from error
    tokens = re.findall(r"[()]|[^()\s]+", expression)
    if "WITH" in expression.upper().split():
        raise Unreadable(expression)
    operators = {"AND": "and", "OR": "or", "(": "(", ")": ")"}
    python = " ".join(operators.get(token.upper()) or str(token in allowed) for token in tokens)
    return bool(eval(python, {"__builtins__": {}}))  # noqa: S307 - only True, False, and, or and parentheses


def shipped(root: str = _ROOT) -> set[str]:
    """The normalised names of all packages that a requirement installs here."""
    reached: set[str] = set()
    waiting = [Requirement(root)]
    while waiting:
        requirement = waiting.pop()
        name = normal(requirement.name)
        try:
            needs = [Requirement(text) for text in distribution(requirement.name).requires or []]
        except PackageNotFoundError:  # of another platform
            continue
        if name in reached and not requirement.extras:
            continue
        reached.add(name)
        extras = requirement.extras or {""}
        waiting += [
            each for each in needs if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras)
        ]
    return reached


def complaints(rules: Mapping[str, Any], installed: Iterable[Distribution], runtime: Collection[str]) -> list[str]:
    """Problems: licences that are not allowed or cannot be read, and unused rules."""
    said: list[str] = []
    unused = set(rules["stated"]) | set(rules["exceptions"])
    for found in sorted(installed, key=lambda each: normal(each.metadata["Name"])):
        name = normal(found.metadata["Name"])
        expression = rules["stated"].get(name) or stated(found)
        unused.discard(name)
        if name in rules["exceptions"]:
            continue
        allowed = rules["runtime"] if name in runtime else [*rules["runtime"], *rules["development"]]
        try:
            if not permitted(expression, allowed):
                said.append(f"{name}: {expression} is not allowed. Do without it, or give a reason in exceptions.")
        except Unreadable:
            said.append(
                f"{name}: {expression[:60]!r} is not an SPDX expression. Read its licence and enter it in stated."
            )
    return said + [f"{name}: it is not installed, so its entry can go." for name in sorted(unused)]


def normal(name: str) -> str:
    """The normalised name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Check the installed packages. Exits with 1 if there is a problem."""
    rules = tomllib.loads(_PROJECT.read_text())["tool"]["licences"]
    installed = list(distributions())
    said = complaints(rules, installed, shipped())
    print("\n".join(said) if said else f"{len(installed)} dependencies have licences that are allowed.")
    sys.exit(bool(said))


if __name__ == "__main__":
    main()
