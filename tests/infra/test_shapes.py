"""Three environments in three shapes."""

from itertools import product
from pathlib import Path

import pytest
from synthesis import Synthesised, Synthesiser

from infra.environments import NAMES, named
from infra.environments.checks import checked
from infra.environments.model import Environment
from infra.environments.shapes import SHAPES

pytestmark = pytest.mark.infra

STACKS = {
    "baked": {"service"},
    "managed": {"network", "knowledge", "service"},
    "self-hosted": {"network", "knowledge", "service"},
}
PAIRS = list(product(NAMES, SHAPES))


def environment(name: str, shape: str) -> Environment:
    own = named(name)
    knowledge = {} if own.knowledge else {"knowledge": "none"}
    return checked(own.changed(**(knowledge | dict(SHAPES[shape]))))


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    name, shape = request.param
    return name, shape


@pytest.fixture
def stack(pair: tuple[str, str], synthesise: Synthesiser) -> Synthesised:
    return synthesise(environment(*pair))


def templates(stack: Synthesised) -> list[Path]:
    return sorted(stack.file.parent.glob("*.template.json"))


# cdk-nag has run when the stack is there: a finding that nobody acknowledged fails the synthesis.
def test_every_shape_is_synthesised_and_its_exceptions_have_reasons(stack: Synthesised, pair: tuple[str, str]) -> None:
    name, shape = pair
    found = {path.name.removesuffix(".template.json").removeprefix(f"cragside-{name}-") for path in templates(stack)}
    assert found == STACKS[shape]
    packs = {report["pluginName"]: report for report in stack.report["pluginReports"]}
    for pack in ("AwsSolutions", "Serverless"):
        assert packs[pack]["violations"] == []
        assert all(len(accepted["reason"].split()) > 5 for accepted in packs[pack]["suppressedViolations"])


def test_cfn_lint_reports_nothing(stack: Synthesised) -> None:
    from cfnlint.api import ManualArgs, lint

    # W3005: CDK writes dependencies out that CloudFormation would find itself.
    config = ManualArgs(ignore_checks=["W3005"], regions=["eu-central-1"])
    found = [problem for path in templates(stack) for problem in lint(path.read_text(), config=config)]
    assert [str(problem) for problem in found] == []
