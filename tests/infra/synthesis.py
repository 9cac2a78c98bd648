"""Synthesises environments over small folders in place of the built layers. The CDK is imported when it is used."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.artifacts import Artifacts
from infra.choice import fields_of
from infra.config import Environment, Indexed, KnowledgeLayer, Writable

ROOT = Path(__file__).parents[2]
# What an environment says beside what it is: none of it for the smallest. The ARNs name nothing.
SHAPES: Mapping[str, Mapping[str, object]] = {
    "baked": {},
    "generations": {"knowledge": {"generations": 10}},
    "managed": fields_of(ROOT / "infra/examples/managed.toml"),
    "private": fields_of(ROOT / "infra/examples/private.toml"),
}
_FILES = (
    "functions/enrich/handler.py",
    "functions/index/handler.py",
    "drivers/python/asyncpg/__init__.py",
    "parsers/python/lxml/__init__.py",
    "core/python/cragside/__init__.py",
    "lightrag/python/lightrag/__init__.py",
    "demo/baked.json",
    "demo/default/store.sqlite3",
)


@dataclass(frozen=True)
class Synthesised:
    """A stack's template, and the cloud assembly around it."""

    template: dict[str, Any]
    file: Path
    report: dict[str, Any]

    def stack(self, name: str) -> "Synthesised":
        """Another stack of the same environment, such as `knowledge`."""
        file = self.file.with_name(self.file.name.replace("-service.", f"-{name}."))
        return Synthesised(json.loads(file.read_text()), file, self.report)

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """The resources of a type, by their logical names."""
        return {name: found for name, found in self.template["Resources"].items() if found["Type"] == kind}

    def properties(self, kind: str) -> dict[str, Any]:
        """The properties of the one resource of a type."""
        (found,) = self.resources(kind).values()
        return dict(found["Properties"])


class Synthesiser:
    """Synthesises each environment once, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[str, Synthesised] = {}
        for file in _FILES:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(f"# {file}" if file.endswith(".py") else "")  # equal folders are one asset
        # Node comes with the dependency group, beside the interpreter.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

    def __call__(self, environment: Environment) -> Synthesised:
        """The environment's stack."""
        key = environment.model_dump_json()
        if key not in self._done:
            self._done[key] = self.anew(environment, f"assembly-{len(self._done)}")
        return self._done[key]

    def anew(self, environment: Environment, name: str) -> Synthesised:
        """The same, whether it is there already or not; a finding that is not acknowledged is a `RuntimeError`."""
        from infra.app import compose, new_app

        out = self._folder / name
        app = new_app(out=str(out))
        compose(app, environment, self._artifacts(environment))
        app.synth()
        file = out / f"cragside-{environment.name}-service.template.json"
        report = json.loads((out / "validation-report.json").read_text())
        return Synthesised(json.loads(file.read_text()), file, report)

    def _artifacts(self, environment: Environment) -> Artifacts:
        names = {"Core": "core", "LightRag": "lightrag"}
        names |= {"Drivers": "drivers"} if isinstance(environment.knowledge, Writable) else {}
        names |= {"Parsers": "parsers"} if isinstance(environment.knowledge, Indexed) else {}
        return Artifacts(
            function=self._folder / "functions" / "enrich",
            index=self._folder / "functions" / "index",
            layers={name: self._folder / folder for name, folder in names.items()},
            knowledge=self._folder / "demo" if isinstance(environment.knowledge, KnowledgeLayer) else None,
        )


def problems_of(*templates: Path) -> list[str]:
    """Return what cfn-lint reports of templates."""
    from cfnlint.api import ManualArgs, lint

    # W3005: CDK writes dependencies out that CloudFormation would find itself.
    config = ManualArgs(ignore_checks=["W3005"], regions=["eu-central-1"])
    return [str(problem) for each in templates for problem in lint(each.read_text(), config=config)]
