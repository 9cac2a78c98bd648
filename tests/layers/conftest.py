"""The layers that the tests look at: for the default runtime, or for this interpreter's where there is none of it."""

import sys

import pytest

from tests.layers.built_layers import ROOT, Built, build
from tools.toolchain import interpreter


@pytest.fixture(scope="session")
def python() -> str:
    return "3.12" if interpreter("3.12") else "{}.{}".format(*sys.version_info[:2])


@pytest.fixture(scope="session")
def x86_64(python: str) -> Built:
    return build(ROOT / "build/layers", "x86_64", python)


@pytest.fixture(scope="session")
def arm64(python: str) -> Built:
    return build(ROOT / "build/layers", "arm64", python)


@pytest.fixture(params=["x86_64", "arm64"])
def built(request: pytest.FixtureRequest) -> Built:
    return request.getfixturevalue(request.param)
