"""The packages of the hosts: those for Python in an environment of their own, those for Node as a lock file pins them.

They are no dependencies of cragside, and some pin what cragside has in other versions.
"""

import json
import re
from pathlib import Path

from tests.services import npm, tools

FOLDER = Path(__file__).parent
_PINNED = FOLDER / "python.txt"
_NODE = FOLDER / "node"


def python() -> Path:
    """The Python with the packages, installed at the first time. Raises `Unavailable`."""
    cache = tools.cache("hosts-python")
    with tools.exclusive(cache):
        return tools.environment(cache, ("--no-deps", *_PINNED.read_text().split("\n")[:-1]))


def node_modules() -> Path:
    """The folder with the packages for Node, fetched at the first time. Raises `Unavailable`."""
    return npm.installed(_NODE, "hosts-node", "ai/package.json").parents[1]


def version(package: str, *, node: bool) -> str:
    """The pinned version of a package for Node or for Python."""
    if node:
        lock = json.loads((_NODE / "package-lock.json").read_text())
        return str(lock["packages"][f"node_modules/{package}"]["version"])
    found = re.search(rf"^{re.escape(package)}==([^\s;]+)", _PINNED.read_text(), re.MULTILINE)
    assert found, package
    return found[1]
