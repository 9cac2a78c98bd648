"""Bills of materials in CycloneDX: uv's export of the lock, reduced to the contents of an artifact.

    python -m tools.bill FOLDER

Writes `FOLDER/cragside-VERSION.cdx.json` with the dependencies of the wheel and its extras on all platforms.
`make layers` writes the bills of the layers. Equal locks give equal bills, without time and serial number.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from tools import toolchain

_ROOT = Path(__file__).parents[1]
# CycloneDX lists each component with hashes and origin. uv's export is a preview feature.
EXPORT = ("export", "--quiet", "--frozen", "--no-dev", "--all-extras", "--format", "cyclonedx1.5")


class Unlisted(Exception):
    """An artifact contains a package that is not in the lock."""


def held(folder: Path) -> dict[str, str]:
    """The versions of the distributions in a folder, by normalised name."""
    return {_normal(found.metadata["Name"]): found.version for found in distributions(path=[str(folder)])}


def bill(exported: str, artifact: str | None = None, contents: Mapping[str, str] | None = None) -> str:
    """The bill as JSON: of the project with all dependencies, or of an artifact with these distributions.

    Raises `Unlisted` if the lock lacks one of them in its version.
    """
    document: dict[str, Any] = json.loads(exported)
    document.pop("serialNumber", None)
    document["metadata"].pop("timestamp", None)
    if artifact is not None and contents is not None:
        _cut(document, artifact, contents)
    return json.dumps(document, indent=1) + "\n"


def _cut(document: dict[str, Any], artifact: str, contents: Mapping[str, str]) -> None:
    known = [document["metadata"]["component"], *document["components"]]
    kept = [component for component in known if contents.get(_normal(component["name"])) == component["version"]]
    if missing := contents.keys() - {_normal(component["name"]) for component in kept}:
        raise Unlisted(f"{artifact} holds what the lock does not have: {', '.join(sorted(missing))}.")
    references = [component["bom-ref"] for component in kept]
    edges = {edge["ref"]: edge.get("dependsOn", []) for edge in document["dependencies"]}
    document["metadata"]["component"] = {"type": "application", "bom-ref": artifact, "name": artifact}
    document["components"] = kept
    document["dependencies"] = [{"ref": artifact, "dependsOn": references}] + [
        {"ref": reference, "dependsOn": [other for other in edges.get(reference, []) if other in references]}
        for reference in references
    ]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def exported_lock() -> str:
    """uv's export of the lock: the wheel with the dependencies of all its extras."""
    command = [toolchain.uv() or "uv", *EXPORT]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - uv


def main() -> None:
    """Write the bill of the wheel."""
    exported = exported_lock()
    version = json.loads(exported)["metadata"]["component"]["version"]
    path = Path(sys.argv[1], f"cragside-{version}.cdx.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(bill(exported))
    print(path)


if __name__ == "__main__":
    main()
