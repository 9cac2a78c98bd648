"""axe-core from npm: it finds what bars people with disabilities from a page."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services import npm
from tests.services.run import Report

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAME = "axe-core"
_PINNED = Path(__file__).parents[2] / "tools/axe"
_RUN = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.map(({id, impact, help, nodes}) => ({
        id, impact: impact ?? "", help, places: nodes.map(({target, html}) => `${target.flat().join(" ")}: ${html}`),
    }));
}"""


@dataclass(frozen=True)
class Violation:
    """A rule that a page breaks, and the elements that break it."""

    id: str
    impact: str
    help: str
    places: tuple[str, ...]


def report() -> Report:
    """The script as the address of the report. Raises `Unavailable`."""
    script = npm.installed(_PINNED, NAME, "axe-core/axe.min.js")
    version = json.loads((script.parent / "package.json").read_text())["version"]
    return Report(NAME, str(script), f"axe-core {version}", "from npm")


def violations(page: "Page", script: str) -> list[Violation]:
    """Run axe-core in a page as it is now, past its Content-Security-Policy, and return the violations."""
    if not page.evaluate("() => 'axe' in globalThis"):
        page.evaluate(script)
    return [
        Violation(str(each["id"]), str(each["impact"]), str(each["help"]), tuple(map(str, each["places"])))
        for each in page.evaluate(_RUN)
    ]
