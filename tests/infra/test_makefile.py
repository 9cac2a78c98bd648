"""`make` refuses bad input, and runs the right commands for good input."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def made(*arguments: str) -> str:
    return run("--dry-run", *arguments, check=True).stdout


def run(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Make's output for these arguments. A make that runs the tests passes nothing on to it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=check)


@pytest.mark.parametrize("target", ["synth", "diff", "deploy"])
def test_layers_are_built_for_the_context_that_is_synthesised(target: str) -> None:
    lines = made(target, "ENV=prod", "ARGS=-c python=3.13 -c knowledge=build/store").splitlines()
    (choosing,) = [line for line in lines if "infra.choice" in line]
    (using,) = [line for line in lines if "infra.app" in line or f"aws-cdk/bin/cdk {target} " in line]
    for line in (choosing, using):
        assert "-c env=prod " in line
        assert " -c python=3.13 -c knowledge=build/store" in line


def test_nothing_is_built_to_destroy() -> None:
    lines = made("destroy", "ENV=prod")
    assert "aws-cdk/bin/cdk destroy --all -c env=prod -c destroying=true" in lines
    for built in ("infra.choice", "layers.lightrag.build", "cragside bake"):
        assert built not in lines


def test_what_cannot_be_deployed_is_refused_before_anything_is_built() -> None:
    refused = run("synth", "ENV=nope")
    assert "There is no environment 'nope'. Name dev, staging or prod: -c env=dev" in refused.stderr
    assert refused.returncode == 2
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FILE=mine.toml", 'make has no variable FILE: say ARGS="-c file=FILE.toml" or '),
        (
            "KNOWLEDGE=none",
            'make has no variable KNOWLEDGE: say ARGS="-c file=FILE.toml" or ',
        ),
        ("ARGS=-c env=prod", "ARGS names another environment: say ENV=prod"),
    ],
)
def test_a_variable_that_would_change_nothing_is_refused(said: str, reason: str) -> None:
    refused = run("--dry-run", "deploy", said)
    assert reason in refused.stderr
    assert (refused.returncode, refused.stdout) == (2, "")


def test_variables_of_a_pipeline_are_none_of_make_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FILE", "mine.toml")
    assert "mine.toml" not in made("deploy")


@pytest.mark.parametrize("source", ["settings/model.py", "store/sqlite/storages.py", "adapters/embedded/embedder.py"])
def test_the_demo_store_is_rebuilt_when_its_code_changes(source: str, tmp_path: Path) -> None:
    store = tmp_path / "baked.json"
    store.touch()
    bake = [f"DEMO_STORE={tmp_path}", str(store)]
    assert "cragside bake" not in made(*bake)
    assert "cragside bake" in made(f"--what-if=layers/core/python/cragside/{source}", *bake)
    assert "cragside bake" in made("--what-if=uv.lock", *bake)
