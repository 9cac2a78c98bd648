"""The resources of synthesised templates."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource, and the others of its template by their logical names."""

    name: str
    type: str
    properties: Mapping[str, Any]
    template: Mapping[str, "Resource"]

    def beside(self, kind: str) -> list["Resource"]:
        """The resources of this type in the same template."""
        return [found for found in self.template.values() if found.type == kind]

    def refers_to(self, other: "Resource") -> bool:
        """Return True if a property of this one names the other, directly or by its alias."""
        aliases = [alias.name for alias in other.beside("AWS::Lambda::Alias") if other.name in _names(alias.properties)]
        return not _names(self.properties).isdisjoint({other.name, *aliases})


def resources_of(assembly: Path) -> list[Resource]:
    """The resources of all stacks of a cloud assembly. Raises `FileNotFoundError` if the folder holds none."""
    manifest = json.loads((assembly / "manifest.json").read_text())
    stacks = [found for found in manifest["artifacts"].values() if found["type"] == "aws:cloudformation:stack"]
    files = [assembly / stack["properties"]["templateFile"] for stack in stacks]
    return [resource for file in files for resource in in_template(json.loads(file.read_text()))]


def in_template(template: Mapping[str, Any]) -> list[Resource]:
    """The resources of one template."""
    found: dict[str, Resource] = {}
    for name, described in template.get("Resources", {}).items():
        found[name] = Resource(name, described["Type"], described.get("Properties", {}), found)
    return list(found.values())


def _names(value: Any) -> set[str]:
    return set(_referred(value))


def _referred(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            if key == "Ref":
                yield str(below)
            elif key == "Fn::GetAtt":
                yield below[0] if isinstance(below, Sequence) and not isinstance(below, str) else below.split(".")[0]
            else:
                yield from _referred(below)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for below in value:
            yield from _referred(below)
