"""The findings of the packs that report, but refuse nothing."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdk_nag import HIPAASecurityChecks, NIST80053R5Checks

from infra.app import compose, new_app
from infra.artifacts import Artifacts, artifacts_of
from infra.environments import named
from infra.environments.model import Environment
from infra.environments.shapes import SHAPES

_PACKS = {"HIPAA": HIPAASecurityChecks, "NIST 800-53": NIST80053R5Checks}


@dataclass(frozen=True, order=True, slots=True)
class Finding:
    """A rule of a pack that a construct does not follow. `shape` is the shape of the deployment it is in."""

    rule: str
    meaning: str
    pack: str
    construct: str
    shape: str


def findings_in_prod() -> list[Finding]:
    """All findings in the three shapes of prod, over empty layers."""
    with tempfile.TemporaryDirectory() as folder:
        return sorted(finding for shape in SHAPES for finding in _findings(shape, Path(folder) / shape))


def _findings(shape: str, folder: Path) -> Iterator[Finding]:
    prod = named("prod").changed(**({"knowledge": "none"} | dict(SHAPES[shape])))
    app = new_app(out=str(folder / "out"))
    compose(app, prod, _empty(prod, folder))
    for pack, checks in _PACKS.items():
        for violation in checks(app).validate_scope(app).violations:
            _, _, rule = violation.rule_name.rpartition("-")
            for place in violation.violating_resources or ():
                where = place.construct_path or ""
                construct = where.removeprefix("cragside-prod-").removesuffix("/Resource")
                yield Finding(rule.partition("[")[0], violation.description, pack, construct, shape)


def _empty(environment: Environment, folder: Path) -> Artifacts:
    artifacts = artifacts_of(environment, folder)
    for place in (artifacts.function, artifacts.index, *artifacts.layers.values()):
        place.mkdir(parents=True)
        (place / "handler.py").write_text(f"# {place.name}")  # equal folders would be one asset
    return artifacts
